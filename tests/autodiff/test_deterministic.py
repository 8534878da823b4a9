"""Deterministic tapes and blocks: seeds of draws, one thread for BLAS, and what is refused."""

import inspect
import json
import os
import re
import subprocess
import sys
import threading
import types
import warnings

import numpy as np
import pytest

import gradtape as gt
from gradtape.core import blas_threads
from gradtape.core.blas_threads import libraries, on_one_thread
from gradtape.errors import (
    ArgumentError,
    NondeterministicError,
    NondeterministicWarning,
    TapeError,
)
from gradtape.ops.generator import DRAWING, default_generator
from paths import ROOT, SOURCE

X = np.linspace(-1.0, 1.0, 12).reshape(3, 4)
SEED = gt.DeterministicConfig(global_seed=7)


def mask(x, **config):
    """What dropout keeps of an array on a tape."""
    tape = gt.GradientTape(deterministic=gt.DeterministicConfig(**{"global_seed": 7, **config}))
    return np.asarray(gt.nn.dropout(tape.watch(x)).detach())


@pytest.fixture
def two_threads():
    """BLAS with two threads, and what it has been asked for since."""
    before = [library.get_num_threads() for library in libraries()]
    for library in libraries():
        library.set_num_threads(2)
    if any(n != 2 for n in threads()):
        pytest.skip("the threads of this BLAS cannot be set")
    yield
    for library, number in zip(libraries(), before, strict=True):
        library.set_num_threads(number)


def threads():
    return [library.get_num_threads() for library in libraries()]


# ---- draws ----


def test_a_tape_begins_with_its_seed():
    x = np.ones(50)
    np.testing.assert_array_equal(mask(x), mask(x))
    assert (mask(x) != mask(x, global_seed=8)).any()
    assert (mask(x) != mask(x, global_seed=(7, 1))).any()
    generator = gt.random.Generator(7)
    np.testing.assert_array_equal(mask(x), gt.nn.dropout(x, generator=generator))
    tape = gt.GradientTape.with_deterministic_config(SEED)
    h = tape.watch(x)
    first, second = gt.nn.dropout(h).detach(), gt.nn.dropout(h).detach()
    np.testing.assert_array_equal(first, mask(x))
    np.testing.assert_array_equal(second, gt.nn.dropout(x, generator=generator))


DRAWS = {
    "uniform": lambda x: gt.uniform(x, 1.0),
    "normal": lambda x: gt.normal(0.0, x, (2, 3, 4)),
    "bernoulli": lambda x: gt.bernoulli(gt.sigmoid(x)),
    "permutation": gt.permutation,
    "dropout2d": lambda x: gt.nn.dropout2d(x[:, :, None, None] * np.ones((2, 2))),
    "alpha_dropout": lambda x: gt.nn.alpha_dropout(x, training=True),
    "rrelu": lambda x: gt.nn.rrelu(x, training=True),
    "gumbel_softmax": gt.nn.gumbel_softmax,
    "exponential": lambda x: gt.random.exponential(x + 2.0),
    "gamma": lambda x: gt.random.gamma(2.0, x + 2.0),
    "beta": lambda x: gt.random.beta(1.0, x + 2.0),
    "dirichlet": lambda x: gt.random.dirichlet(x + 2.0),
    "categorical": gt.random.categorical,
    "poisson": lambda x: gt.random.poisson(x + 2.0),
    "fractional_max_pool2d": lambda x: gt.nn.fractional_max_pool2d(
        (x[:, :, None] * X[:, None])[None], 2, output_size=2
    ),
    "scaled_dot_product_attention": lambda x: gt.nn.scaled_dot_product_attention(
        X, X, x, dropout_p=0.5
    ),
}


@pytest.mark.parametrize("name", DRAWS)
def test_a_tape_governs_draws_with_an_operand_of_it(name):
    state = default_generator().state
    tape = gt.GradientTape(deterministic=SEED)
    made = DRAWS[name](tape.watch(X))
    assert default_generator().state == state, "it came from the default generator"
    with gt.deterministic(SEED):
        np.testing.assert_array_equal(made.detach(), DRAWS[name](X))
    # Of other arrays it does not come from the tape.
    DRAWS[name](X)
    assert default_generator().state != state


def test_all_drawing_functions_have_a_name():
    """Those that take a generator; `log_normal` is `normal` inside."""
    named = {
        name
        for space in (gt.random, gt.nn)
        for name in dir(space)
        if inspect.isfunction(function := getattr(space, name))
        and "generator" in inspect.signature(function).parameters
    }
    assert named - {"log_normal"} <= DRAWING
    assert DRAWING - named == {"fractional_max_pool2d", "fractional_max_pool3d"}
    for path in (SOURCE / "ops").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert set(re.findall(r'source_of\(\w+, "(\w+)"\)', text)) <= DRAWING


def test_who_governs_a_draw():
    tape = gt.GradientTape(deterministic=SEED)
    state = default_generator().state
    with tape:
        inside = gt.rand(3)  # without an operand of the tape
        assert default_generator().state == state
        named = gt.rand(3, generator=gt.random.Generator(1))
    generator = gt.random.Generator(7)
    np.testing.assert_array_equal(inside, gt.rand(3, generator=generator))
    np.testing.assert_array_equal(named, gt.rand(3, generator=gt.random.Generator(1)))
    gt.rand(3)
    assert default_generator().state != state

    # The innermost one decides: a block, or the inner one of two tapes.
    tape = gt.GradientTape(deterministic=SEED)
    x, of_block = tape.watch(np.ones(50)), mask(np.ones(50), global_seed=1)
    with gt.deterministic(global_seed=1):
        np.testing.assert_array_equal(gt.nn.dropout(x).detach(), of_block)
    inner = gt.GradientTape(deterministic=gt.DeterministicConfig(global_seed=2))
    y = gt.nn.dropout(inner.watch(x))
    np.testing.assert_array_equal(y.detach().detach(), mask(np.ones(50), global_seed=2))


def test_a_block_entered_again_goes_on_and_a_function_begins_again():
    block = gt.deterministic(SEED)
    with block:
        first = gt.rand(3)
    with block:
        second = gt.rand(3)
    np.testing.assert_array_equal(
        np.concatenate([first, second]),
        np.concatenate([gt.rand(3, generator=g) for g in [gt.random.Generator(7)] * 2]),
    )
    draw = gt.deterministic(SEED)(lambda: gt.rand(3))
    np.testing.assert_array_equal(draw(), first)
    np.testing.assert_array_equal(draw(), first)


def test_operations_have_streams_of_their_own():
    def drawn(also, seeds):
        with gt.deterministic(global_seed=7, operation_seeds=seeds):
            if also:
                gt.nn.dropout(np.ones(100))
            return np.asarray(gt.randn(3)), np.asarray(gt.nn.dropout(np.ones(30)))

    assert (drawn(True, False)[0] != drawn(False, False)[0]).all()
    np.testing.assert_array_equal(drawn(True, True)[0], drawn(False, True)[0])
    assert (drawn(False, True)[0] != drawn(False, False)[0]).all()
    normal, kept = drawn(False, {"dropout": 3})
    np.testing.assert_array_equal(normal, drawn(False, False)[0])
    seeded = gt.nn.dropout(np.ones(30), generator=gt.random.Generator(3))
    np.testing.assert_array_equal(kept, seeded)


def test_compiled_functions_draw_where_they_are_called():
    drop = gt.jit(lambda x: gt.nn.dropout(x) + 0 * gt.rand(50))
    x, state = np.ones(50), default_generator().state
    with gt.deterministic(SEED):
        first, second = drop(x), drop(x)
        assert default_generator().state == state
    assert (first != second).any()
    with gt.deterministic(SEED):
        np.testing.assert_array_equal(drop(x), first)
        np.testing.assert_array_equal(drop(x), second)
    with gt.deterministic(SEED):
        np.testing.assert_array_equal(gt.nn.dropout(x), first)
    for _ in range(2):
        tape = gt.GradientTape(deterministic=SEED)
        h = tape.watch(x)
        np.testing.assert_array_equal(drop(h).detach(), first)
        np.testing.assert_array_equal(tape.gradient(gt.sum(drop(h)), h), second)
    gt.manual_seed(0)
    expected = gt.nn.dropout(x)
    gt.manual_seed(0)
    np.testing.assert_array_equal(drop(x), expected)


def test_a_seed_inside_a_compiled_function():
    seeded = gt.DeterministicConfig(global_seed=7, mode=gt.DeterministicMode.Seeded)

    @gt.jit
    def slope(x):
        tape = gt.GradientTape(deterministic=seeded)
        x = tape.watch(x)
        return tape.gradient(gt.sum(gt.nn.dropout(x)), x)

    for _ in range(2):
        np.testing.assert_array_equal(slope(np.ones(50)), mask(np.ones(50)))

    @gt.jit
    def strict(x):
        with gt.deterministic(SEED):
            return gt.exp(x)

    with pytest.raises(NondeterministicError, match="inside of a compiled function"):
        strict(np.ones(3))


def test_draws_are_saved_and_loaded():
    config = gt.DeterministicConfig(global_seed=7, operation_seeds=True)
    with gt.deterministic(config) as block:
        gt.rand(3)
        gt.nn.dropout(np.ones(5))
        state = block.state_dict()
        expected = np.concatenate([gt.rand(3), gt.nn.dropout(np.ones(9)), gt.randn(2)])
    with gt.deterministic(config) as block:
        gt.randn(5)
        block.load_state_dict(state)
        again = np.concatenate([gt.rand(3), gt.nn.dropout(np.ones(9)), gt.randn(2)])
    np.testing.assert_array_equal(again, expected)
    other = gt.deterministic(global_seed=7)
    with pytest.raises(ArgumentError, match=r"operation\.\w+'.*no seed"):
        other.load_state_dict(state)
    with other:
        np.testing.assert_array_equal(gt.rand(3), gt.rand(3, generator=gt.random.Generator(7)))


# ---- one thread ----


def asked():
    """A function without arrays that notes how many threads BLAS has when it is called."""
    noted = []

    def call(x):
        noted.append(threads())
        return np.array(x)

    return call, noted


@pytest.mark.usefixtures("two_threads")
def test_blas_has_one_thread_for_ops_and_rules():
    function, noted = asked()

    def copied(x):
        def rule(ct, out, x):
            return (function(ct),)

        return gt.host_call(function, x, x, vjp=rule, deterministic=True)

    one, two = [1] * len(libraries()), [2] * len(libraries())
    with gt.deterministic():
        gt.grad(lambda x: gt.sum(copied(x)))(X)
        gt.jit(copied)(X)
    assert noted == [one] * 3
    assert threads() == two
    noted.clear()
    tape = gt.GradientTape(deterministic=SEED)
    x = tape.watch(X)
    y = gt.sum(copied(x))
    assert threads() == two
    assert noted == [one]
    tape.gradient(y, x)
    assert noted == [one, one]
    assert threads() == two
    noted.clear()
    with gt.deterministic(mode=gt.DeterministicMode.Seeded):
        copied(X)
    copied(X)
    assert noted == [two, two]


@pytest.mark.usefixtures("two_threads")
def test_threads_come_back_after_errors_and_nested_blocks():
    before = threads()

    @gt.deterministic()
    def fails():
        with gt.deterministic():
            pass
        assert set(threads()) == {1}
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails()
    assert threads() == before

    # A block that is still open in another thread keeps them down.
    entered, leave = threading.Event(), threading.Event()

    def work():
        with gt.deterministic():
            entered.set()
            leave.wait(10)

    thread = threading.Thread(target=work)
    thread.start()
    assert entered.wait(10)
    with gt.deterministic():
        pass
    meanwhile = threads()
    leave.set()
    thread.join()
    assert set(meanwhile) == {1}
    assert threads() == before

    # A generator that was left in the middle of its block gives them back with its frame.
    def suspended():
        with gt.deterministic():
            yield

    running = suspended()
    next(running)
    assert set(threads()) == {1}
    del running
    gt.exp(gt.ones(1))
    assert threads() == before


class FakeLibrary:
    """A library with a number of threads for each thread, as with OpenMP, or for all."""

    def __init__(self, by_thread):
        self.by_thread, self.numbers = by_thread, {}

    def set_num_threads(self, number):
        self.numbers[threading.get_ident() if self.by_thread else 0] = number

    def get_num_threads(self):
        return self.numbers.get(threading.get_ident() if self.by_thread else 0, 8)


@pytest.mark.parametrize("by_thread", [False, True])
def test_numbers_of_threads_for_all_and_for_each(monkeypatch, by_thread):
    library = FakeLibrary(by_thread)
    monkeypatch.setattr(blas_threads, "libraries", lambda: (library,))
    monkeypatch.setattr(blas_threads, "_held", blas_threads._Held())
    get, noted = library.get_num_threads, {}

    def work():
        noted["before"] = get()
        noted["inside"] = on_one_thread(get)
        noted["after"] = get()

    def outer():
        assert on_one_thread(get) == get() == 1
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()

    on_one_thread(outer)
    others = 8 if by_thread else 1
    assert noted == {"before": others, "inside": 1, "after": others}
    assert get() == 8


def products(dtype):
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=(230, 230)).astype(dtype) for _ in range(2))

    def of(a):
        return gt.sum(gt.linalg.inv(a @ b) ** 2) + gt.linalg.norm(gt.ravel(a))

    return [*gt.value_and_grad(of)(a), *gt.value_and_grad(gt.jit(of))(a)]


@pytest.mark.usefixtures("two_threads")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bits_in_a_block_are_those_of_one_thread(dtype):
    alone = on_one_thread(products, dtype)
    with gt.deterministic():
        inside = products(dtype)
    for one, other in zip(alone, inside, strict=True):
        np.testing.assert_array_equal(one, other)


def run_program(blas, kernels, seed, *parts):
    """Start the program in another process, with numbers of threads and a seed for hashes."""
    names = {"OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"}
    env = {**os.environ, **dict.fromkeys(names, str(blas)), "PYTHONHASHSEED": str(seed)}
    program = [sys.executable, str(ROOT / "tests/support/reproducible_program.py"), str(kernels)]
    return subprocess.Popen([*program, *parts], env=env, stdout=subprocess.PIPE, text=True)


def outputs(*processes):
    """What programs that run at the same time have printed."""
    printed = [process.communicate(timeout=300)[0] for process in processes]
    assert [process.returncode for process in processes] == [0] * len(processes)
    return [json.loads(text) for text in printed]


def test_processes_give_the_same_bits():
    first, second = outputs(run_program(1, 1, 0, "float32"), run_program(2, 3, 1, "float32"))
    assert first == second
    assert len(first) == 2


@pytest.mark.slow
def test_programs_give_the_same_bits_for_any_thread_count():
    settings = [(1, 1, 0), (2, 2, 1), (4, 7, 2), (16, 16, 3)]
    first, *others = [outputs(run_program(*each))[0] for each in settings]
    assert len(first) == 13
    for other in others:
        assert other == first


# ---- what is refused ----


def test_draws_without_a_seed_are_refused(monkeypatch):
    monkeypatch.setattr(default_generator(), "_fixed", False)
    drop = gt.jit(lambda x: gt.nn.dropout(x))
    fresh = gt.random.Generator()
    with gt.deterministic():
        for draw, name in (
            (lambda: gt.randn(3), "randn"),
            (lambda: drop(np.ones(3)), "dropout"),
            (lambda: gt.rand(3, generator=fresh), "rand"),
            (lambda: gt.rand(3, generator=fresh.split(1)[0]), "rand"),
        ):
            with pytest.raises(NondeterministicError, match=f"{name}: draws from a generator wit"):
                draw()
        gt.rand(3, generator=gt.random.Generator(3).split(1)[0])
        gt.rand(3, generator=gt.random.Generator().manual_seed(0))
    with gt.deterministic(global_seed=1):
        gt.randn(3)
        drop(np.ones(3))
    tape = gt.GradientTape(deterministic=gt.DeterministicConfig())
    x = tape.watch(X)
    gt.rand(3)
    with pytest.raises(NondeterministicError, match=r"dropout: .* gt\.manual_seed\(0\) first"):
        gt.nn.dropout(x)


def of_users():
    @gt.custom_vjp
    def custom(x):
        return x * 2

    @gt.custom_jvp
    def forward(x):
        return x * 2

    custom.defvjp(lambda ct, out, x: (2 * ct,))
    forward.defjvp(lambda tangents, out, x: 2 * tangents[0])
    return custom, forward, lambda x: gt.host_call(lambda x: x * 2, x, x)


@pytest.mark.parametrize("number", range(3))
def test_functions_of_users_are_refused_without_a_promise(number):
    function = of_users()[number]
    ways = [
        function,
        gt.vmap(function),
        gt.jit(function),
        gt.jit(lambda x: gt.scan(lambda c, x: (c, function(x)), 0.0, x)[1]),
        gt.jit(lambda x: gt.cond(x[0, 0] < 0, function, gt.exp, x)),
    ]
    if number < 2:
        ways.append(gt.grad(lambda x: gt.sum(function(x))))
    for way in ways:
        way(X)
        with gt.deterministic(), pytest.raises(NondeterministicError, match="deterministic=True"):
            way(X)
    tape = gt.GradientTape(deterministic=SEED)
    x = tape.watch(X)
    function(X)
    with pytest.raises(NondeterministicError, match="a function of yours"):
        function(x)


def test_functions_of_users_with_a_promise():
    @gt.custom_vjp(deterministic=True)
    def custom(x):
        return x * 2

    @gt.custom_jvp(deterministic=True)
    def forward(x):
        return x * 2

    custom.defvjp(lambda ct, out, x: (2 * ct,))
    forward.defjvp(lambda tangents, out, x: 2 * tangents[0])

    def host(x):
        return gt.host_call(lambda x: x * 2, x, x, deterministic=True)

    with gt.deterministic():
        for function in (custom, forward, host):
            for way in (function, gt.vmap(function), gt.jit(function)):
                np.testing.assert_array_equal(way(X), 2 * X)
        np.testing.assert_array_equal(gt.grad(lambda x: gt.sum(custom(x)))(X), 2 * np.ones((3, 4)))
        # Solvers are functions of ours.
        assert abs(gt.implicit.root(lambda x: x**3 - 8.0)(1.0) - 2) < 1e-6


def test_arrays_of_initialisers_have_the_seed_of_a_block():
    def drawn(**options):
        with gt.deterministic(**options):
            rngs = [gt.nn.init.ArrayRng(), gt.nn.init.ArrayRng()]
            return np.stack([rng.standard_normal(3) for rng in rngs])

    np.testing.assert_array_equal(drawn(global_seed=1), drawn(global_seed=1))
    assert len(np.unique(drawn(global_seed=1))) == 6
    assert (drawn(global_seed=1) != drawn(global_seed=2)).all()
    seeded = drawn(mode=gt.DeterministicMode.Off)
    assert (seeded != drawn(mode=gt.DeterministicMode.Off)).all()
    with gt.deterministic():
        gt.nn.init.ArrayRng(0)
        with pytest.raises(NondeterministicError, match="ArrayRng: draws from a generator without"):
            gt.nn.init.ArrayRng()


def test_modes():
    custom = of_users()[0]
    with gt.deterministic(mode=gt.DeterministicMode.Warn):
        with pytest.warns(NondeterministicWarning, match="custom is a function of yours") as caught:
            custom(X)
        assert caught[0].filename == __file__
        with pytest.warns(NondeterministicWarning, match="in the compiled"):
            gt.jit(lambda x: custom(x) + 1)(X)
    for mode in (gt.DeterministicMode.Seeded, gt.DeterministicMode.Off):
        with gt.deterministic(mode=mode, global_seed=7), warnings.catch_warnings():
            warnings.simplefilter("error")
            custom(X)
            gt.rand(2, generator=gt.random.Generator())
            drawn = np.asarray(gt.rand(3))
        same = drawn == np.asarray(gt.rand(3, generator=gt.random.Generator(7)))
        assert same.all() == (mode is gt.DeterministicMode.Seeded)


def test_a_thread_that_flushes_small_numbers_is_refused(monkeypatch):
    monkeypatch.setattr("gradtape.autodiff.deterministic._SMALLEST_NORMAL", np.float64(0.0))
    with pytest.raises(NondeterministicError, match="-ffast-math"):
        gt.deterministic()
    gt.deterministic(mode=gt.DeterministicMode.Seeded)


def test_blas_that_cannot_be_held_is_refused(monkeypatch):
    monkeypatch.setattr("gradtape.autodiff.deterministic.libraries", list)
    with gt.deterministic(), pytest.raises(NondeterministicError, match="install both from PyPI"):
        gt.matmul(X, X.T)


class OnDevice:
    """Looks like an array of CuPy's."""

    shape, dtype, ndim = (3,), np.dtype(np.float64), 1


OnDevice.__module__ = "cupy"


def test_arrays_of_cupy_are_refused(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", types.ModuleType("cupy"))
    config = gt.DeterministicConfig()
    op = gt.core.op.op_of(gt.ops.gather.gather_leading)
    with pytest.raises(NondeterministicError, match=r"gather: got CuPy's arrays"):
        config.tape_mode().run(op, (OnDevice(), np.ones(3)), {}, lambda *call: None)


def test_bad_configs():
    for options, match in (
        ({"mode": "strict"}, r"got 'strict' for mode, expected one of gt\.DeterministicMode\.Off"),
        ({"global_seed": -1}, "got -1"),
        ({"global_seed": 1.5}, "got 1.5"),
        ({"operation_seeds": {"droput": 1}}, "got 'droput' in operation_seeds, .* dropout, "),
        ({"operation_seeds": {"dropout": -1}}, "got -1"),
        ({"operation_seeds": True}, "needs a global_seed"),
        ({"operation_seeds": 3}, "expected True or False"),
        ({"cudnn_deterministic": None}, "expected True or False"),
    ):
        with pytest.raises(ArgumentError, match=match):
            gt.DeterministicConfig(**options)
    for make, match in (
        (lambda: gt.deterministic(3), "got an int, expected a gt.DeterministicConfig"),
        (lambda: gt.deterministic(SEED, mode=gt.DeterministicMode.Off), "a config and mode"),
        (lambda: gt.deterministic(sed=3), "unexpected keyword argument 'sed'"),
        (lambda: gt.GradientTape(deterministic=True), "expected a gt.DeterministicConfig"),
        (lambda: gt.GradientTape.with_deterministic_config(3), "expected a gt.DeterministicConf"),
        (lambda: gt.custom_vjp(np.exp, deterministic=1), "expected True or False"),
    ):
        with pytest.raises(ArgumentError, match=match):
            make()
    tape = gt.GradientTape()
    tape.watch(X)
    with pytest.raises(TapeError, match="watches something already"):
        tape.with_deterministic_config(SEED)
