"""Checkpoints: one file with all that a training needs to go on as if it had never stopped."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import numpy as np

from gradtape import containers
from gradtape.core.finite import is_finite
from gradtape.core.state import STATE
from gradtape.core.tensor import Tensor
from gradtape.errors import ArgumentError, FileFormatError, NonFiniteError, SaveError
from gradtape.io.atomic import Path
from gradtape.io.leaf_names import named_leaves
from gradtape.io.tensor_files import check_fit, load, load_metadata, save
from gradtape.nn.module import Module
from gradtape.ops.generator import Generator, default_generator
from gradtape.training.optimizers import (
    changed_numbers,
    described_optimizer,
    holder_of,
    numbers_with,
    set_numbers,
)

_KEY = "training"
_VERSION = 1
_MODEL, _OPTIMIZER, _STATE, _ARRAYS = "model.", "optimizer.", "state.", "arrays."
_DEFAULT = "default"
# What a header has, and of which types.
_HEADER: dict[str, Any] = {
    "model": list, "optimizer": list, "numbers": dict, "random": dict, "progress": dict,
}  # fmt: skip


@dataclass(frozen=True)
class Checkpoint:
    """What `gt.training.load_checkpoint` returns.

    Attributes:
        model: The model: a module that was given, with the values that were saved, or new
            containers.
        state: The state of a pure optimizer; None for one that has its parameters.
        progress: The dict that was saved with it.
        arrays: The further arrays that were saved with it, by name.

    >>> gt.training.Checkpoint(None, None, progress={"epoch": 3}, arrays={}).progress["epoch"]
    3
    """

    model: Any
    state: Any
    progress: dict[str, Any]
    arrays: dict[str, Any]


def save_checkpoint(
    path: Path,
    model: Any,
    optimizer: Any,
    state: Any = None,
    *,
    progress: Mapping[str, Any] | None = None,
    arrays: Mapping[str, Any] | None = None,
) -> None:
    """Save model, optimizer, random generators and progress to one file, or leave the old one.

    The generators are the default one, those that modules have as attributes, and those of a block
    of `gt.deterministic` around the call.

    Args:
        path: The file.
        model: A module, or nested containers of arrays.
        optimizer: The optimizer; its class and numbers are saved, too.
        state: The state of a pure optimizer; None for one that was made with its parameters.
        progress: A dict of what `json` can write: the number of the epoch, the state of a loader.
        arrays: Further arrays by name, such as a running mean of the weights.

    Raises:
        ArgumentError: The progress is not a dict of what `json` can write.
        NonFiniteError: A parameter is NaN or infinite: the old checkpoint is of more use.
        SaveError: The file cannot be written, since the disk is full, say.

    >>> import tempfile
    >>> net = gt.nn.Linear(2, 1)
    >>> optimizer = gt.optim.SGD(net.parameters(), lr=0.1, momentum=0.9)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = f"{folder}/checkpoint.safetensors"
    ...     gt.training.save_checkpoint(path, net, optimizer, progress={"epoch": 3})
    ...     gt.training.load_checkpoint(path, net, optimizer).progress
    {'epoch': 3}
    """
    check_model(model, "save_checkpoint")
    known = {
        "version": _VERSION,
        "model": described_model(model),
        "optimizer": described_optimizer(optimizer),
        "numbers": changed_numbers(optimizer),
        "random": {name: _words(one) for name, one in _generators(model).items()},
        "progress": dict(progress or {}),
    }
    try:
        text = json.dumps(known)
    except (TypeError, ValueError) as error:
        raise ArgumentError(
            f"save_checkpoint: got a progress, or a state of a callback, that json cannot write: "
            f"{error}; arrays are allowed in the state of a callback and in arrays="
        ) from None
    content = {"model": model, "arrays": dict(arrays or {})}
    if _has_state(optimizer, state):
        content["optimizer"] = optimizer.state_dict()
    if state is not None:
        content["state"] = state
    with saving(path):
        save(path, content, metadata={_KEY: text})


def check_model(model: Any, name: str) -> None:
    """Raise a NonFiniteError if an array of a model has NaN or infinity."""
    leaves, _ = named_leaves(model, name)
    for leaf_name, leaf in leaves.items():
        if not is_finite(_array(leaf)):
            raise NonFiniteError(
                f"{name}: {leaf_name!r} has elements that are NaN or infinite; it was not saved. "
                "Lower the learning rate, clip gradients, or look with gt.detect_anomaly()"
            )


@contextmanager
def saving(path: Path) -> Iterator[None]:
    """Turn errors of the system in a block that writes a file into one that says what to do."""
    try:
        yield
    except OSError as error:
        raise SaveError(
            f"{os.fspath(path)} could not be written: {error}; the last checkpoint is whole. Free "
            "some space and go on from it"
        ) from error


def load_checkpoint(path: Path, model: Any, optimizer: Any = None, state: Any = None) -> Checkpoint:
    """Load what `save_checkpoint` or `fit` saved: all of it, or nothing if it does not fit.

    A module gets the values that were saved, an optimizer its learning rate and what else a
    scheduler sets, one that has its parameters its state, and generators the places where they
    were. Without an optimizer the model alone is loaded, to be used; generators stay as they are.

    Args:
        path: The file.
        model: A model as the one that was saved; nested containers are not changed.
        optimizer: An optimizer of the same class, made with the same numbers but for the learning
            rate; None for the model alone.
        state: A state of a pure optimizer, as `optimizer.init(model)` makes it.

    Returns:
        The model, the state, the progress, and further arrays.

    Raises:
        ArgumentError: Model or optimizer differ from those that were saved, or there is a state
            without an optimizer.
        FileFormatError: The file is no checkpoint, or damaged.
        OSError: The file cannot be read.

    >>> import tempfile
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = f"{folder.name}/checkpoint.safetensors"
    >>> w, sgd = {"w": np.ones(2)}, gt.optim.SGD(lr=0.1, momentum=0.9)
    >>> gt.training.save_checkpoint(path, w, sgd, sgd.init(w), progress={"epoch": 3})
    >>> gt.training.load_checkpoint(path, w, sgd, sgd.init(w)).model
    {'w': array([1., 1.])}
    >>> gt.training.load_checkpoint(path, w, gt.optim.SGD(lr=0.1), {})
    Traceback (most recent call last):
        ...
    gradtape.errors.ArgumentError: ...: the optimizer that was saved differs: 'momentum=0.9' there,
    'momentum=0.0' here; use what was saved, or another folder
    >>> folder.cleanup()
    """
    if optimizer is None and state is not None:
        raise ArgumentError("load_checkpoint: got a state, but not the optimizer it belongs to")
    known = header_of(path)
    words = _words_of(path, known)
    _compare("model", path, known["model"], described_model(model))
    arrays = load(path)
    wanted, structure = named_leaves(model, "load_checkpoint")
    values = _part(arrays, _MODEL)
    check_fit(values, {name: _array(leaf) for name, leaf in wanted.items()}, f"{path}: model")
    loaded = None
    if optimizer is not None:
        _compare("optimizer", path, known["optimizer"], described_optimizer(optimizer))
        numbers = numbers_with(optimizer, known["numbers"])
        generators = _generators(model)
        _compare("set of random generators", path, sorted(known["random"]), sorted(generators))
        slots, places = named_leaves({} if state is None else state, "load_checkpoint")
        held = _part(arrays, _STATE)
        check_fit(held, slots, f"{path}: state of the optimizer")
        made = [_like(leaf, held[name]) for name, leaf in slots.items()]
        loaded = None if state is None else containers.unflatten(places, made)
        with _set_back_on_error(generators):
            for name, state_of_generator in words.items():
                generators[name].load_state_dict(state_of_generator)
            if _has_state(optimizer, state):
                optimizer.load_state_dict(_part(arrays, _OPTIMIZER))
        set_numbers(optimizer, numbers)
    if isinstance(model, Module):
        for name, leaf in wanted.items():
            leaf.value = values[name]
    else:
        leaves = [_like(leaf, values[name]) for name, leaf in wanted.items()]
        model = containers.unflatten(structure, leaves)
    return Checkpoint(model, loaded, known["progress"], _part(arrays, _ARRAYS))


# ---- what it is a checkpoint of -----------------------------------------------------------------


def described_model(model: Any) -> list[str]:
    """A model in lines of text: classes, settings and shapes, but no values."""
    lines = repr(model).splitlines() if isinstance(model, Module) else [type(model).__name__]
    leaves, _ = named_leaves(model, "fit")
    return lines + [f"{name}: {_array(x).dtype}{list(x.shape)}" for name, x in leaves.items()]


def _has_state(optimizer: Any, state: Any) -> bool:
    """Whether an optimizer keeps a state itself, and not only in the one that is given."""
    return state is None or bool(getattr(holder_of(optimizer), "param_groups", None))


def _compare(what: str, path: Path, there: list[str], here: list[str]) -> None:
    for one, other in zip_longest(there, here, fillvalue="nothing"):
        if one != other:
            raise ArgumentError(
                f"{path}: the {what} that was saved differs: {one.strip()!r} there, "
                f"{other.strip()!r} here; use what was saved, or another folder"
            )


def _generators(model: Any) -> dict[str, Any]:
    """What random numbers come from: the default generator, those of modules, and of blocks."""
    found: dict[str, Any] = {_DEFAULT: default_generator()}
    for place, mode in enumerate(STATE.get().modes):
        if hasattr(mode, "source"):  # that of `gt.deterministic`
            found[f"block {place}"] = mode
    for start, module in model.named_modules() if isinstance(model, Module) else ():
        for name, value in vars(module).items():
            found |= dict(_generators_in(value, f"{start}.{name}"))
    return found


def _generators_in(value: Any, name: str) -> Iterator[tuple[str, Generator]]:
    """The generators in an attribute of a module, by name: itself, or those in containers."""
    if isinstance(value, Generator):
        yield name, value
    elif isinstance(value, list | tuple | dict):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, part in items:
            yield from _generators_in(part, f"{name}.{key}")


@contextmanager
def _set_back_on_error(generators: Mapping[str, Any]) -> Iterator[None]:
    """Set generators back to where they were if an error is raised."""
    before = {name: one.state_dict() for name, one in generators.items()}
    try:
        yield
    except BaseException:
        for name, state in before.items():
            generators[name].load_state_dict(state)
        raise


def _words_of(path: Path, known: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The states of generators in a header, as arrays."""
    try:
        return {
            name: {key: np.array(value, np.uint64) for key, value in words.items()}
            for name, words in known["random"].items()
        }
    except (AttributeError, ValueError, TypeError, OverflowError) as error:
        raise FileFormatError(
            f"load_checkpoint: got {path} with states of generators that are none: {error}"
        ) from None


def _words(generator: Any) -> dict[str, list[int]]:
    """The state of generators, as numbers that `json` can write."""
    return {name: array.tolist() for name, array in generator.state_dict().items()}


# ---- values -------------------------------------------------------------------------------------


def _array(leaf: Any) -> Any:
    return leaf.detach().numpy() if isinstance(leaf, Tensor) else np.asarray(leaf)


def _like(leaf: Any, array: Any) -> Any:
    """An array as the kind of leaf it takes the place of."""
    if isinstance(leaf, Tensor):
        return Tensor(array)
    return array.item() if type(leaf) in (bool, int, float, complex) else array


def _part(arrays: Mapping[str, Any], start: str) -> dict[str, Any]:
    return {name.removeprefix(start): x for name, x in arrays.items() if name.startswith(start)}


def header_of(path: Path) -> dict[str, Any]:
    """What a checkpoint has beside arrays."""
    text = load_metadata(path).get(_KEY)
    try:
        known = json.loads(text or "")
        if known["version"] != _VERSION:
            raise FileFormatError(
                f"load_checkpoint: {path} is of version {known['version']}, expected {_VERSION}; "
                "use the release of gradtape that wrote it, or a later one"
            )
        held = {name: known[name] for name in _HEADER}
        if not all(isinstance(held[name], kind) for name, kind in _HEADER.items()):
            raise ValueError
        return held
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        if isinstance(error, FileFormatError):
            raise
        raise FileFormatError(
            f"load_checkpoint: got {path}, expected a file that save_checkpoint wrote"
        ) from None
