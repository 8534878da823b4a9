"""Averages of weights over a training: SWA and EMA."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from gradtape import containers
from gradtape.core.state import no_grad
from gradtape.core.tensor import Tensor
from gradtape.errors import ArgumentError, a_type
from gradtape.nn.layers.normalization import BatchNorm1d, BatchNorm2d, BatchNorm3d
from gradtape.nn.module import Module
from gradtape.optim.numbers import Number, checked
from gradtape.optim.parameters import held
from gradtape.optim.pure import State

_STATE = {"average", "count"}
_BATCH_NORMS = (BatchNorm1d, BatchNorm2d, BatchNorm3d)


class WeightAverage:
    """The average of weights over the steps of a training, as a pure rule.

    Args:
        decay: How much of the average is kept at each step (EMA), in [0, 1); None for the plain
            mean of all steps (SWA; Izmailov et al., 2018).

    Raises:
        ArgumentError: It is out of its range.

    >>> average = gt.optim.WeightAverage(decay=0.9)
    >>> state = average.init({"w": np.zeros(2)})
    >>> for step in range(3):
    ...     state = average.apply({"w": np.full(2, float(step))}, state)
    >>> state["average"]["w"].round(3)
    array([0.29, 0.29])
    """

    def __init__(self, decay: Number | None = None) -> None:
        self.decay = decay if decay is None else _checked_decay(decay)

    def init(self, params: Any) -> State:
        """Return the state before the first step: zeros, and no step.

        Args:
            params: Parameters, as they are given to `apply`: a container, or a module.
        """
        leaves, structure = containers.flatten(params)
        zeros = [np.zeros_like(held(leaf)) for leaf in leaves]
        return {"average": containers.unflatten(structure, zeros), "count": 0}

    def apply(self, params: Any, state: Mapping[str, Any]) -> State:
        """Return the state after one more step; the average is `state["average"]`.

        Args:
            params: The parameters. Of a module, buffers are taken as they are.
            state: What `init` or the last `apply` returned.

        Raises:
            ArgumentError: The state is none, or has other containers than the parameters.
        """
        if not isinstance(state, Mapping) or set(state) != _STATE:
            raise ArgumentError(
                f"WeightAverage: got {a_type(state)} as a state, expected one made by init(params)"
            )
        leaves, structure = containers.flatten(params)
        means, found = containers.flatten(state["average"])
        if found != structure:
            raise ArgumentError(
                f"WeightAverage: got parameters of {structure} and averages of {found}, expected "
                "the same containers"
            )
        count = state["count"]
        share = self.share(count)
        new = [mixed(mean, leaf, share) for mean, leaf in zip(means, leaves, strict=True)]
        return {"average": containers.unflatten(structure, new), "count": count + 1}

    def share(self, count: Any) -> Any:
        """How much of the weights goes into the average of `count` earlier ones."""
        if self.decay is None:
            return 1.0 / (count + 1)
        if isinstance(count, Tensor):
            return np.where(np.equal(count, 0), 1.0, 1.0 - self.decay)
        return 1.0 - self.decay if count else 1.0


def _checked_decay(decay: Any) -> Any:
    return checked(decay, "WeightAverage", "decay", "a number in [0, 1)", lambda x: 0 <= x < 1)


def mixed(mean: Any, value: Any, share: Any) -> Any:
    """(1 − share)·mean + share·value, in the dtype of the mean."""
    dtype, value = mean.dtype, held(value)
    if dtype.itemsize <= 2:
        mean, value = mean.astype(np.float32), value.astype(np.float32)
    new = mean + share * (value - mean)
    return new if new.dtype == dtype else new.astype(dtype)


class AveragedModel(Module):
    """A copy of a model whose weights are averages over the training of that model.

    `update_parameters(model)` takes the weights as they are into the average; the first time they
    are copied. Buffers that count are copied; if the model has batch normalization, `update_bn`
    computes its statistics for the averaged weights when the training is over.

    Args:
        model: The model, which is copied.
        decay: How much of the average is kept each time (EMA), in [0, 1); None for the plain mean
            (SWA).
        use_buffers: Whether floating-point buffers are averaged as well; they are copied if not.

    Attributes:
        module: The copy.
        n_averaged: How many times weights have been taken, a buffer.

    Raises:
        ArgumentError: It is not a module, or `decay` is out of its range.

    >>> net = gt.nn.Linear(2, 1)
    >>> averaged = gt.optim.AveragedModel(net, decay=0.99)
    >>> optimizer = gt.optim.SGD(net.parameters(), lr=0.1)
    >>> for _ in range(3):
    ...     optimizer.zero_grad()
    ...     gt.mean(net(np.ones((4, 2), np.float32)) ** 2).backward()
    ...     optimizer.step()
    ...     averaged.update_parameters(net)
    >>> averaged(np.ones((4, 2), np.float32)).shape, averaged.n_averaged.item()
    ((4, 1), 3)
    """

    n_averaged: Tensor

    def __init__(
        self, model: Module, decay: float | None = None, *, use_buffers: bool = False
    ) -> None:
        if not isinstance(model, Module):
            raise ArgumentError(f"AveragedModel: got {a_type(model)}, expected a gt.nn.Module")
        self.module = copy.deepcopy(model)
        self.register_buffer("n_averaged", np.array(0, np.int64))
        self.decay = None if decay is None else float(_checked_decay(decay))
        self.use_buffers = bool(use_buffers)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the averaged model."""
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Take the weights of a model into the average, as they are now.

        Args:
            model: The model, which has the parameters and buffers of the copy.

        Raises:
            ArgumentError: It has not; nothing is changed then.
        """
        own, given = _all_of(self.module), _all_of(model)
        if [(name, x.shape) for name, x in own.items()] != [
            (name, x.shape) for name, x in given.items()
        ]:
            raise ArgumentError(
                "update_parameters: got a model with other parameters or buffers than the one that "
                "is averaged"
            )
        averaged = dict(self.module.named_parameters())
        if self.use_buffers:
            averaged |= {
                name: x for name, x in self.module.named_buffers() if x.dtype.kind not in "biu"
            }
        count = int(self.n_averaged.item())
        share = WeightAverage(self.decay).share(count)
        with no_grad():
            new = {
                name: mixed(own[name].value, value.detach().value, share)
                if name in averaged and count
                else np.array(value.detach().value)
                for name, value in given.items()
            }
        for name, value in new.items():
            own[name].value = np.asarray(value)
        self.n_averaged[...] = count + 1

    def extra_repr(self) -> str:
        """Show the decay."""
        return f"decay={self.decay}"


def _all_of(model: Any) -> dict[str, Tensor]:
    if not isinstance(model, Module):
        raise ArgumentError(f"update_parameters: got {a_type(model)}, expected a gt.nn.Module")
    return dict(model.named_parameters()) | dict(model.named_buffers())


def update_bn(loader: Iterable[Any], model: Module) -> None:
    """Compute the statistics of batch normalization for the weights as they are.

    Args:
        loader: Batches: arrays, or tuples and lists whose first item is the array for the model.
        model: The model, such as an `AveragedModel`. Its running means and variances are those of
            all batches afterwards.

    Raises:
        ArgumentError: There are no batches; the statistics are as before then. They are as well if
            the model raises an error.

    >>> net = gt.nn.Sequential(gt.nn.Linear(3, 2), gt.nn.BatchNorm1d(2))
    >>> batches = [np.ones((4, 3), np.float32), np.zeros((4, 3), np.float32)]
    >>> gt.optim.update_bn(batches, net)
    >>> net[1].num_batches_tracked.item()
    2
    """
    layers: list[Any] = [module for module in model.modules() if _tracks(module)]
    if not layers:
        return
    before = [(layer, layer.momentum, _statistics(layer)) for layer in layers]
    modes = [(module, module.training) for module in model.modules()]
    count = 0
    try:
        model.train()
        for layer in layers:
            layer.momentum = None  # the mean over all batches
            layer.running_mean = np.zeros_like(layer.running_mean.value)
            layer.running_var = np.ones_like(layer.running_var.value)
            layer.num_batches_tracked = np.array(0, np.int64)
        with no_grad():
            for batch in loader:
                model(batch[0] if isinstance(batch, tuple | list) else batch)
                count += 1
        if not count:
            raise ArgumentError("update_bn: got no batches, expected at least one")
    except BaseException:
        for layer, _, statistics in before:
            for name, value in statistics.items():
                setattr(layer, name, value)
        raise
    finally:
        for layer, momentum, _ in before:
            layer.momentum = momentum
        for module, mode in modes:
            module.training = mode


def _tracks(layer: Any) -> bool:
    """Whether a layer keeps statistics of batches."""
    return isinstance(layer, _BATCH_NORMS) and layer.running_mean is not None


def _statistics(layer: Any) -> dict[str, Any]:
    names = ("running_mean", "running_var", "num_batches_tracked")
    return {name: np.array(getattr(layer, name).value) for name in names}
