"""After Ctrl-C, wherever it comes, the next call works and nothing is left switched on."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import gradtape as gt
from gradtape.core.state import current
from interrupts import interrupted_everywhere


def assert_nothing_is_left_on() -> None:
    """The state is that of a fresh thread, and gradients come out right."""
    state = current()
    assert state.modes == ()
    assert state.outer is None
    assert state.context is gt.default_context()
    x = gt.tensor([1.0, 2.0], requires_grad=True)
    gt.sum(x * x).backward()
    np.testing.assert_array_equal(x.grad.numpy(), [2.0, 4.0])
    np.testing.assert_array_equal(gt.grad(lambda x: np.sum(x**3))(np.ones(2)), [3.0, 3.0])
    gt.clear_tape()


def no_grad_block() -> None:
    with gt.no_grad():
        gt.ones(2) * 2.0


def nested_blocks() -> None:
    with gt.GradientContext() as context, gt.no_grad(), gt.enable_grad(), context:
        gt.ones(2, requires_grad=True) * 2.0


def default_context_again() -> None:
    with gt.GradientContext(), gt.default_context():
        gt.ones(2, requires_grad=True) * 2.0


def mode_block() -> None:
    class Pass:
        kind = "observing"

        def run(self, op: Any, args: Any, params: Any, proceed: Any) -> Any:
            return proceed(op, args, params)

    with gt.using_mode(Pass()):
        gt.ones(2) * 2.0


def writes_block() -> None:
    with gt.detect_writes():
        gt.ones(2) * 2.0


@gt.no_grad()
def decorated() -> None:
    gt.ones(2) * 2.0


BLOCKS = [no_grad_block, nested_blocks, default_context_again, mode_block, writes_block, decorated]


# At each point, or at some of them, which takes less time.
every = pytest.mark.parametrize("every", [13, pytest.param(1, marks=pytest.mark.slow)])


@every
@pytest.mark.parametrize("program", BLOCKS, ids=lambda program: program.__name__)
def test_blocks_interrupted_anywhere_are_undone(program: Callable[[], None], every: int) -> None:
    points = 0
    for _ in interrupted_everywhere(
        program, "core/state.py", "tools/writes.py", every=every // 6 + 1
    ):
        assert_nothing_is_left_on()
        points += 1
    assert points > 5


def traced() -> None:
    gt.jit(lambda x: np.sum(x * x))(np.ones(2))


def traced_gradient() -> None:
    gt.jit(gt.grad(lambda x: np.sum(x * x)))(np.ones(2))


def transforms() -> None:
    x = np.ones(2)
    gt.grad(lambda x: np.sum(x * x))(x)
    gt.jvp(lambda x: x * x, (x,), (x,))
    gt.vmap(lambda x: x * x)(x)
    with gt.GradientTape() as tape:
        y = tape.watch(x)
        z = gt.sum(y * y)
    tape.gradient(z, y)


@every
@pytest.mark.parametrize(
    ("program", "files"),
    [
        (traced, ("core/state.py", "graph/trace.py")),
        (traced_gradient, ("core/state.py", "graph/trace.py")),
        (transforms, ("core/state.py", "core/walk.py", "autodiff/")),
    ],
    ids=["jit", "jit of grad", "transforms"],
)
def test_transforms_interrupted_anywhere_are_undone(
    program: Callable[[], None], files: tuple[str, ...], every: int
) -> None:
    program()  # what is loaded at first use is there
    points = 0
    for _ in interrupted_everywhere(program, *files, every=every):
        assert_nothing_is_left_on()
        points += 1
    assert points > 5


def test_an_interrupted_context_is_deleted() -> None:
    made: list[gt.GradientContext] = []

    def program() -> None:
        context = gt.GradientContext()
        made.append(context)
        with context:
            gt.ones(2, requires_grad=True) * 2.0

    for _ in interrupted_everywhere(program, "core/state.py"):
        assert_nothing_is_left_on()
        entered = len(made[-1].tape) > 0 if made else False
        if entered:
            with pytest.raises(gt.errors.ContextError, match="was deleted"):
                made[-1].__enter__()


def test_blocks_entered_by_hand_last_until_they_are_left() -> None:
    scope = gt.no_grad()
    scope.__enter__()
    try:
        assert not (gt.ones(2, requires_grad=True) * 2.0).requires_grad
    finally:
        scope.__exit__(None, None, None)
    with contextlib.ExitStack() as stack:
        stack.enter_context(gt.no_grad())
        assert not (gt.ones(2, requires_grad=True) * 2.0).requires_grad
    assert (gt.ones(2, requires_grad=True) * 2.0).requires_grad


LOADING = """
    import sys
    import numpy as np
    import gradtape as gt
    from interrupts import Interrupter

    t, interrupted = gt.tensor(np.arange(4.0)), 0
    for at in [3, 17, 60, 120, 200, 350, 500, 700, 900]:
        sys.settrace(Interrupter(at, ("ops/", "core/")))
        try:
            np.fft.fft(t)
        except KeyboardInterrupt:
            interrupted += 1
        finally:
            sys.settrace(None)
    assert interrupted > 5, interrupted
    np.testing.assert_allclose(np.fft.fft(t).numpy(), np.fft.fft(np.arange(4.0)))
    np.testing.assert_allclose(np.linalg.det(gt.tensor(np.eye(2))).item(), 1.0)
"""


def test_families_whose_loading_was_interrupted_load_again() -> None:
    run_script(LOADING)


def run_script(script: str, *args: str) -> str:
    """What a script prints that runs in a process of its own."""
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), *args],
        capture_output=True,
        text=True,
        timeout=600,
        env={**os.environ, "GRADTAPE_CACHE": "0", "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert result.returncode == 0, result.stderr
    return result.stdout


SIGNALS = """
    import signal, sys
    import numpy as np
    import gradtape as gt
    from random_ways import check, gradient_of, programs

    def interrupt(number, frame):
        raise KeyboardInterrupt

    signal.signal(signal.SIGALRM, interrupt)
    x = np.linspace(0.0, 1.0, 50)
    compiled = gt.jit(gt.grad(lambda x: np.sum(np.sin(x))))
    random = [
        (made, gradient_of(made), made.arguments())
        for made in programs(80_000, 20, floating=True)
    ]

    def program(n):
        with gt.no_grad():
            gt.tensor(x) * 2.0
        with gt.GradientContext():
            y = gt.tensor(x, requires_grad=True)
            gt.sum(gt.sin(y)).backward()
        gt.jit(lambda x: x * float(n))(x)
        np.fft.fft(gt.tensor(x))
        compiled(x)
        _, gradient, arguments = random[n % len(random)]
        gt.jit(gradient)(*arguments)

    got = 0
    for n in range(int(sys.argv[1])):
        try:
            signal.setitimer(signal.ITIMER_REAL, 0.0002 * (n % 50) + 0.00002)
            for _ in range(100):
                program(n)
        except KeyboardInterrupt:
            got += 1
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        y = gt.tensor(x, requires_grad=True)
        gt.sum(gt.sin(y)).backward()
        np.testing.assert_allclose(y.grad.numpy(), np.cos(x), rtol=1e-12)
        np.testing.assert_allclose(compiled(x), np.cos(x), rtol=1e-12)
        np.testing.assert_allclose(np.fft.fft(gt.tensor(x)).numpy(), np.fft.fft(x))
        if n % 10 == 0:
            check(gradient_of, random[n // 10 % len(random)][0])
        gt.clear_tape()
        gt.random.normal((3,))
    print(got)
"""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no interval timers here")
@pytest.mark.parametrize("count", [15, pytest.param(2000, marks=pytest.mark.slow)])
def test_signals_at_any_time(count: int) -> None:
    assert int(run_script(SIGNALS, str(count)).split()[-1]) > count // 2
