"""`gt.fit`: the loop over epochs and batches."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from itertools import islice
from typing import Any

from gradtape.amp.config import AmpConfig
from gradtape.autodiff.checkpoint_config import CheckpointConfig
from gradtape.core.state import checked_flag
from gradtape.errors import ArgumentError, NonFiniteError, a_type
from gradtape.io.atomic import Path
from gradtape.nn.module import Module
from gradtape.ops.checks import check_callable, check_count, one_of
from gradtape.training.evaluation import batches_of, check_batches, evaluate
from gradtape.training.logs import JSONLog
from gradtape.training.progress import Progress
from gradtape.training.run import Run, SaveEvery, copy_into, is_callback
from gradtape.training.step import Clip, Loss, TrainingStep

LOG = "log.jsonl"
# What the history has besides metrics.
_TAKEN = ("epoch", "loss", "lr", "seconds", "validation_loss")


def fit(
    model: Any,
    loss: Loss,
    optimizer: Any,
    data: Any,
    *,
    epochs: int,
    folder: Path | None = None,
    validation: Any = None,
    metrics: Mapping[str, Callable[[Any, Any], Any]] | None = None,
    callbacks: Sequence[Any] = (),
    accumulate: int = 1,
    clip: Clip = None,
    checkpoint: CheckpointConfig | None = None,
    amp: AmpConfig | None = None,
    compile: bool = False,
    save: SaveEvery | None = None,
    progress: bool = True,
) -> Run:
    """Train a model for some epochs, or go on with a training that a folder holds.

    Epochs are numbered from 0, or from the checkpoint, whatever was iterated before. A training
    that was interrupted at any moment, by `kill -9` also, goes on from its last checkpoint when it
    is called again, and ends with the same bits as one that was not: the checkpoint has the model,
    the state of the optimizer, random generators, and the place in the data.

    Args:
        model: A module, which is trained in place, or nested containers of arrays. A module in
            `eval` is put into training; otherwise modules are left in the mode they are in.
        loss: `loss(model, batch)`, a number.
        optimizer: An optimizer with `init` and `apply`, such as `gt.optim.Adam(lr=0.01)`. One that
            was made with parameters of the module, perhaps in groups, will do if nothing is
            compiled.
        data: A `gt.data.DataLoader`, or anything that can be iterated once for each epoch, such as
            a list of batches.
        epochs: How many epochs there are to be, those before a checkpoint included.
        folder: Where checkpoints (`checkpoint.safetensors`) and a log (`log.jsonl`) are kept.
        validation: Data of the same form, for the loss and the metrics after each epoch.
        metrics: `metric(model, batch)` by name; each returns a number, the mean over the batch.
        callbacks: Objects with methods of `gt.training.Callback`, or functions of the run that are
            called at the end of each epoch.
        accumulate: How many batches make one step, with the mean of their gradients; the last step
            of an epoch may have fewer.
        clip: The largest norm of all gradients together, or a function from gradients to gradients,
            such as `gt.gradients.AutoClip()`.
        checkpoint: How to compute gradients with less memory.
        amp: How to compute in 16 bits. With a loss scaler, a step whose gradients are not finite
            changes neither parameters nor the state of the optimizer; the scale is lowered.
        compile: Whether to compile the step with `gt.jit`. The loss is then called once for each
            kind of batch, so it must not depend on values otherwise than by functions of arrays.
        save: How often a checkpoint is saved; each epoch if None.
        progress: Whether to show progress, if the output is a terminal.

    Returns:
        The run: `.model`, `.losses`, one for each epoch, `.history` with all metrics.

    Raises:
        ArgumentError: The folder holds a training of another model or optimizer, or of more epochs;
            or an option has no meaning.
        NonFiniteError: The loss, or a gradient that is clipped, is NaN or infinite. What the folder
            holds is not.
        SaveError: A checkpoint cannot be written; the one before it is whole.

    >>> gt.manual_seed(0)
    >>> x = np.linspace(-1, 1, 64, dtype=np.float32)[:, None]
    >>> loader = gt.data.DataLoader(gt.data.TensorDataset(x, x**2), batch_size=16, shuffle=True)
    >>> net = gt.nn.Linear(1, 1)
    >>> loss = lambda net, batch: gt.mean((net(batch[0]) - batch[1]) ** 2)
    >>> run = gt.fit(net, loss, gt.optim.Adam(lr=0.1), loader, epochs=20)
    >>> len(run.losses), run.losses[-1] < run.losses[0]
    (20, True)
    """
    check_count("fit", 0, epochs=epochs)
    check_count("fit", 1, accumulate=accumulate)
    check_batches(data)
    _check_validation(validation, metrics)
    _check_others(folder, callbacks, save, progress)
    step = TrainingStep(loss, optimizer, clip=clip, checkpoint=checkpoint, amp=amp, compile=compile)
    logs = [] if folder is None else [JSONLog(os.path.join(folder, LOG))]
    has_own = any(isinstance(one, Progress) for one in callbacks)
    shown = [Progress()] if progress and not has_own else []
    called = [*callbacks, *logs, *shown]
    run = Run(model, step.init(model), optimizer, epochs, folder, called, save or SaveEvery(), data)
    run.resume()
    if isinstance(model, Module) and not model.training:
        model.train()
    functions = {"validation_loss": loss, **(metrics or {})}
    try:
        run.call("on_start")
        while run.epoch < epochs and run.stopped is None:
            _train_epoch(run, step, data, accumulate)
            run.end_epoch({} if validation is None else evaluate(run.model, validation, functions))
    finally:
        run.model = copy_into(model, run.model)
        run.call("on_end")
    return run


def _check_validation(validation: Any, metrics: Any) -> None:
    if validation is not None:
        check_batches(validation)
    elif metrics:
        raise ArgumentError("fit: got metrics, but no data for them; use validation=")
    if not isinstance(metrics or {}, Mapping):
        raise ArgumentError(f"fit: got {a_type(metrics)} for metrics, expected a dict of functions")
    for name, metric in (metrics or {}).items():
        if not isinstance(name, str) or name in _TAKEN:
            raise ArgumentError(
                f"fit: got a metric with the name {name!r}, expected a string other than "
                f"{one_of(_TAKEN)}, which the history has anyway"
            )
        check_callable("fit", **{f"the metric {name!r}": metric})


def _check_others(folder: Any, callbacks: Any, save: Any, progress: Any) -> None:
    checked_flag("fit", "progress", progress)
    if not (folder is None or (folder and isinstance(folder, str | os.PathLike))):
        raise ArgumentError(f"fit: got {folder!r} for folder, expected a path, or None")
    if not (save is None or isinstance(save, SaveEvery)):
        raise ArgumentError(
            f"fit: got {a_type(save)} for save, expected a gt.training.SaveEvery(epochs=2), or None"
        )
    if not isinstance(callbacks, list | tuple):
        raise ArgumentError(
            f"fit: got {a_type(callbacks)} for callbacks, expected a list of them: [callback]"
        )
    for one in callbacks:
        if not is_callback(one):
            raise ArgumentError(
                f"fit: got {one!r} as a callback, expected a function of the run, or an object "
                "with methods of gt.training.Callback; a scheduler goes into "
                "gt.training.ScheduleRate(scheduler)"
            )


def _train_epoch(run: Run, step: TrainingStep, data: Any, accumulate: int) -> None:
    """Go through the rest of an epoch."""
    with closing(batches_of(data, run.epoch, run.batch)) as batches:
        for group in _grouped(batches, accumulate):
            try:
                losses, model, state = step(run.model, run.state, group)
            except NonFiniteError as error:
                raise run.failed(error) from error
            run.add(losses, group)
            run.model, run.state = model, state
            run.advance(len(group))


def _grouped(batches: Iterator[Any], count: int) -> Iterator[list[Any]]:
    while group := list(islice(batches, count)):
        yield group
