"""Variables: ids, names, namespaces, values that nobody can change from outside."""

import threading

import ml_dtypes
import numpy as np
import pytest

import gradtape as gt
from gradtape.errors import (
    ArgumentError,
    ConversionError,
    DTypeError,
    FileFormatError,
    ShapeError,
    VariableError,
)


@pytest.fixture
def env():
    return gt.VariableEnvironment()


def test_ids_count_from_zero_over_all_namespaces(env):
    ids = [env.name("w").set(1.0), env.namespace("a/b").name("w").set(2.0), env.set(3.0)]
    assert ids == [0, 1, 2]
    assert [env.name_of(number) for number in ids] == ["w", "a/b/w", "#0"]
    assert [env.id_of(name) for name in ("w", "a/b/w", "#0")] == ids
    assert env.namespace("a/b").id_of("w") == 1
    assert [float(env.array(number)) for number in ids] == [1.0, 2.0, 3.0]


def test_a_path_is_a_name_in_its_namespace(env):
    env.name("a/b/w").set(1.0)
    env.namespace("a").name("b/v").set(2.0)
    assert env.namespace("a/b").current_var_names() == ["w", "v"]
    assert env.namespace("a").current_var_names() == []


def test_namespaces_have_their_own_variables_only(env):
    for name in ("w", "a/w", "a/b/w", "v"):
        env.name(name).set(np.zeros(2))
    assert env.namespace_names() == ["", "a", "a/b"]
    assert env.default_namespace().current_var_ids() == [0, 3]
    a = env.namespace("a")
    assert a.current_var_ids() == [1]
    assert len(a) == 1
    assert "w" in a
    assert "b/w" not in a
    assert 1 in a
    assert 2 not in a
    assert [name for name, _ in env] == ["w", "a/w", "a/b/w", "v"]
    assert "a/b/w" in env
    assert "b" not in env
    assert 3 in env
    assert 4 not in env
    assert True not in env


def test_slots_are_numbered_in_their_namespace(env):
    env.slot().set(1.0)
    env.namespace("a").slot().set(2.0)
    env.namespace("a").slot().set(3.0)
    assert [name for name, _ in env] == ["#0", "a/#0", "a/#1"]


def test_values_are_copies_that_cannot_be_written(env):
    given = np.zeros(3)
    number = env.set(given)
    given[0] = 5.0
    value = env.array(number)
    assert value.tolist() == [0, 0, 0]
    with pytest.raises(ValueError, match="read-only"):
        value[0] = 1.0
    with pytest.raises(ValueError, match="WRITEABLE"):
        value.flags.writeable = True
    env.assign(number, np.ones(3))
    assert value.tolist() == [0, 0, 0]
    assert env.array(number).tolist() == [1, 1, 1]


def test_assigned_arrays_are_copied(env):
    number = env.set(np.zeros(2))
    new = np.ones(2)
    env.assign(number, new)
    new[0] = 7.0
    assert env.array(number).tolist() == [1, 1]
    assert new.flags.writeable


@pytest.mark.parametrize(
    "dtype", ["float64", "float32", "float16", "complex64", "int8", "bool", ml_dtypes.bfloat16]
)
def test_dtypes_stay(env, dtype):
    number = env.set(np.ones((2, 3), dtype))
    assert env.array(number).dtype == dtype
    env.assign(number, np.zeros((2, 3), dtype))
    assert env.array(number).dtype == dtype


def test_foreign_byte_order_becomes_native(env):
    value = env.array(env.set(np.array([1.0, 2.0], ">f8")))
    assert value.dtype == np.float64
    assert value.dtype.isnative
    assert value.tolist() == [1.0, 2.0]


def test_tensors_are_read_unless_recorded(env):
    assert env.array(env.set(gt.ones(2))).tolist() == [1, 1]
    x = gt.tensor([1.0], requires_grad=True)
    with pytest.raises(ConversionError):
        env.set(x * 2)
    assert len(env) == 1


@pytest.mark.parametrize(
    "value", ["text", None, [[1.0], [1.0, 2.0]], {"a": 1}, np.array(["a"]), np.array([None])]
)
def test_what_is_no_array_of_numbers_is_refused(env, value):
    with pytest.raises(DTypeError, match="expected an array of numbers"):
        env.name("w").set(value)
    assert len(env) == 0
    assert "w" not in env


def test_assign_casts_within_a_kind(env):
    narrow = env.set(np.zeros(2, np.float32))
    env.assign(narrow, np.array([0.1, 0.2]))
    assert env.array(narrow).dtype == np.float32
    small = env.set(np.zeros(2, ml_dtypes.bfloat16))
    env.assign(small, np.array([1.0, 2.0], np.float32))
    assert env.array(small).dtype == ml_dtypes.bfloat16
    for value in (np.ones(2, int), np.ones(2, complex), np.ones(2, bool)):
        with pytest.raises(DTypeError, match="variable '#0', expected float32"):
            env.assign(narrow, value)


def test_nothing_is_assigned_if_one_value_does_not_fit(env):
    first, second = env.name("a").set(1.0), env.name("b").set(2.0)
    with pytest.raises(ShapeError, match=r"got shape \(2,\) for variable 'b', expected \(\)"):
        env.assign_all({first: 5.0, second: np.ones(2)})
    with pytest.raises(VariableError):
        env.assign_all({first: 5.0, 9: 1.0})
    assert float(env.array(first)) == 1.0


def test_arrays_can_be_handed_over(env):
    number, new = env.set(np.zeros(2)), np.ones(2)
    env.assign_all({number: new}, copy=False)
    assert np.shares_memory(env.array(number), new)
    assert not new.flags.writeable
    with pytest.raises(ShapeError):
        env.assign_all({number: np.ones(3)}, copy=False)
    with pytest.raises(DTypeError):
        env.assign_all({number: np.array(["a", "b"])}, copy=False)


@pytest.mark.parametrize("number", [-1, 1, 1.0, "w", None, True])
def test_unknown_ids(env, number):
    with pytest.raises(VariableError, match="no variables yet"):
        env.array(number)
    env.set(1.0)
    with pytest.raises(VariableError, match="from 0 to 0"):
        env.array(number)
    with pytest.raises(KeyError):
        env.assign(number, 1.0)


def test_numpy_integers_are_ids(env):
    env.set(1.5)
    assert float(env.array(np.int64(0))) == 1.5
    assert np.int64(0) in env


def test_unknown_names_list_those_there_are(env):
    env.name("w1").set(1.0)
    env.name("a/w2").set(1.0)
    with pytest.raises(VariableError, match=r"^id_of: got 'w', .* there are 'w1', 'a/w2'$"):
        env.id_of("w")
    with pytest.raises(VariableError, match=r"of namespace 'a'; there are 'w2'$") as raised:
        env.namespace("a").id_of("w1")
    assert isinstance(raised.value, KeyError)
    with pytest.raises(VariableError):
        env.id_of(0)


def test_many_names_are_not_all_listed(env):
    for n in range(100):
        env.name(f"w{n}").set(n)
    with pytest.raises(VariableError, match="and 80 more"):
        env.id_of("v")


@pytest.mark.parametrize("name", ["", "/w", "w/", "a//w", "a\nb", " ", "\ud800", "#0", "a/#0", 3])
def test_bad_names(env, name):
    with pytest.raises(ArgumentError):
        env.name(name)
    if name != "":
        with pytest.raises(ArgumentError):
            env.namespace(name)


def test_a_name_is_taken_once(env):
    late = env.name("w")
    env.name("w").set(1.0)
    with pytest.raises(ArgumentError, match=r"'w', which is .* env.assign\(env.id_of\('w'\)"):
        env.name("w")
    with pytest.raises(ArgumentError, match="already"):
        late.set(2.0)
    assert len(env) == 1
    assert float(env.array(0)) == 1.0


def test_repr_has_names_and_shapes(env):
    assert repr(env) == "VariableEnvironment()"
    env.name("a/w").set(np.zeros((2, 3), np.float32))
    assert repr(env) == "VariableEnvironment(\n    a/w: float32[2, 3]\n)"
    assert repr(env.namespace("a")) == "Namespace('a',\n    w: float32[2, 3]\n)"


def test_threads_get_variables_of_their_own(env):
    made = [[] for _ in range(8)]
    start = threading.Barrier(len(made))

    def make(ids):
        start.wait()
        for _ in range(50):
            ids.append(env.slot().set(0.0))

    threads = [threading.Thread(target=make, args=(ids,)) for ids in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    ids = [number for some in made for number in some]
    assert sorted(ids) == list(range(400))
    assert [env.id_of(name) for name, _ in env] == list(range(400))


def test_readers_see_all_of_an_assignment_or_none(env):
    a, b = env.set(0), env.set(0)
    done = threading.Event()
    torn = []

    def read():
        while not done.is_set():
            (_, first), (_, second) = env
            if int(first) != int(second):
                torn.append((int(first), int(second)))

    reader = threading.Thread(target=read)
    reader.start()
    for n in range(300):
        env.assign_all({a: n, b: n})
    done.set()
    reader.join()
    assert torn == []


# ---- files ----


@pytest.fixture
def path(tmp_path):
    return tmp_path / "variables.safetensors"


def test_files_keep_ids_names_and_namespaces(env, path):
    env.name("z").set(np.arange(3))
    env.namespace("a/b").slot().set(np.ones(2, np.float32))
    env.name("a/w").set(1 + 2j)
    env.slot().set(True)
    env.save(path)
    again = gt.VariableEnvironment.from_file(path)
    assert repr(again) == repr(env)
    for (name, got), (_, expected) in zip(again, env, strict=True):
        np.testing.assert_array_equal(got, expected, err_msg=name)
    assert again.namespace_names() == ["", "a/b", "a"]
    assert again.slot().set(0.0) == 4
    assert again.name_of(4) == "#1"
    with pytest.raises(ValueError, match="read-only"):
        again.array(0)[0] = 1


def test_load_into_takes_values(env, path):
    w, slot = env.name("w").set(np.ones(2)), env.slot().set(5)
    env.save(path)
    env.assign_all({w: np.zeros(2), slot: 0})
    env.load(path)
    assert env.array(w).tolist() == [1, 1]
    assert int(env.array(slot)) == 5


def test_load_into_lists_all_that_does_not_fit_and_changes_nothing(env, path):
    for name in ("a", "b", "c"):
        env.name(name).set(np.ones(2))
    env.save(path)
    other = gt.VariableEnvironment()
    a = other.name("a").set(np.zeros(2))
    other.name("b").set(np.zeros(3))
    other.name("d").set(np.zeros(2))
    message = r"missing 'd'; unexpected 'c'; 'b' is float64\[2\], expected float64\[3\]$"
    with pytest.raises(ArgumentError, match=message):
        other.load(path)
    assert other.array(a).tolist() == [0, 0]


def test_files_of_arrays_become_variables(path):
    gt.save(path, {"b/x": np.ones(1), "a": np.zeros(1)})
    assert [name for name, _ in gt.VariableEnvironment.from_file(path)] == ["a", "b/x"]


@pytest.mark.parametrize("name", ["a//b", "#x", "#0/a", "a\n", "/a"])
def test_names_in_files_are_checked(path, name):
    gt.save(path, {name: np.ones(1)})
    with pytest.raises(FileFormatError, match="expected a file of variables"):
        gt.VariableEnvironment.from_file(path)
