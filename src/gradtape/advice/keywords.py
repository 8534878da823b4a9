"""Arguments as other libraries take them, and how to pass them here."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Container, Iterable
from typing import Any, NoReturn

from gradtape.errors import UnsupportedError

# Keywords of other libraries, with our names for them.
_OURS = {
    "argnum": "argnums",
    "dim": "axis",
    "dims": "axis",
    "keepdim": "keepdims",
    "keep_dims": "keepdims",
    "unbiased": "ddof",
    "in_dims": "in_axes",
    "out_dims": "out_axes",
    "collate_fn": "collate",
    "epsilon": "eps",
    "filters": "out_channels",
    "generator": "seed",
    "input_dim": "num_embeddings",
    "learning_rate": "lr",
    "lora_alpha": "alpha",
    "lora_dropout": "dropout",
    "output_dim": "embedding_dim",
    "pool_size": "kernel_size",
    "prefetch_factor": "prefetch",
    "r": "rank",
    "rate": "p",
    "strides": "stride",
    "target_modules": "where",
    "units": "out_features",
    "validation_data": "validation",
    "val_loader": "validation",
    "verbose": "progress",
}
# Keywords of other libraries that nothing stands for, with what does it here.
_ELSEWHERE = {
    "activation": "call an activation after it",
    "batch_size": "batches are made by gt.data.DataLoader(dataset, batch_size)",
    **dict.fromkeys(
        ("donate_argnames", "donate_argnums"), "leave it out: arguments are not written to"
    ),
    **dict.fromkeys(
        ("dynamic", "fullgraph", "inline", "jit_compile", "reduce_retracing"),
        "leave it out: everything is compiled, once for each form of the arguments",
    ),
    "input_signature": "leave it out: functions are compiled for what they are called with",
    "device": "leave it out: ops run where their arrays are",
    "device_type": "leave it out: ops run where their arrays are",
    "inplace": "leave it out: values of tensors are not overwritten",
    "map_location": "leave it out: arrays are in main memory",
    "weights_only": "leave it out: nothing in a file is executed",
    "last_epoch": "use load_state_dict to go on from a step",
    "persistent_workers": "leave it out: workers begin and end with an epoch",
    "none_is_leaf": "give is_leaf=lambda x: x is None",
    "pin_memory": "leave it out: ops run where their arrays are",
    "restore_best_weights": "gt.training.KeepBest saves the best model",
    "worker_init_fn": "draw from gt.data.item_rng(), which needs no setting up of workers",
}
_NUMPYS = ("axis", "keepdims", "ddof")

# Methods whose first argument is the axis, or a tuple of axes.
_ALONG_AXES = ("sum", "mean", "prod", "max", "min", "var", "std", "any", "all", "squeeze")


def keyword_advice(options: Iterable[str], parameters: Container[str] = _NUMPYS) -> str | None:
    """The message for the first keyword that has another name here: "got dim=; …".

    Args:
        options: The keywords of a call.
        parameters: The names of the function's parameters.
    """
    for option in options:
        ours = _OURS.get(option)
        if option in parameters or ours not in parameters:
            continue
        if option == "unbiased":
            return f"got {option}=; unbiased=True is ddof=1 here, and False ddof=0, as in NumPy"
        return f"got {option}=; it is called {ours}= here" + ", as in NumPy" * (ours in _NUMPYS)
    return None


def unknown_keyword(option: str, known: list[str]) -> str:
    """The message for a keyword that a function does not have: "got zzz=, expected axis=; …".

    Args:
        option: The keyword.
        known: The options that the function has.
    """
    near = difflib.get_close_matches(option, known, n=1, cutoff=0.7)
    listed = ", ".join(f"{one}=" for one in known) or "arrays only"
    guess = f"did you mean {near[0]}=?" if near else "leave it out"
    advice = _ELSEWHERE.get(option, guess)
    return f"got {option}=, expected {listed}; {advice}"


def raise_misfit(
    name: str, parameters: Collection[str], options: Iterable[str], error: TypeError
) -> NoReturn:
    """Raise an error about a call that does not fit the signature of SciPy's function.

    Args:
        name: The function.
        parameters: Those it has.
        options: The keywords of the call.
        error: What Python says.
    """
    for option in options:
        if option not in parameters:
            advice = keyword_advice([option], parameters) or unknown_keyword(option, [*parameters])
            advice = advice.removeprefix(f"got {option}=").lstrip(",; ")
            raise UnsupportedError(f"{name}: {error}; {advice}") from None
    raise TypeError(f"{name}: {error}") from None


def position_advice(name: str, args: tuple[Any, ...]) -> str | None:
    """The message for positional arguments as in other libraries' methods: "got 0, 1; …".

    Args:
        name: The method.
        args: Its arguments.
    """
    numbers = [type(arg) is int for arg in args]
    advice = None
    if name == "flatten" and args and all(numbers):
        advice = ", expected no axes; use t.reshape(len(t), -1), or all sizes: t.reshape(2, -1, 3)"
    elif name == "repeat" and len(args) > 1 and all(numbers):
        advice = f", expected repeats and one axis; use gt.tile(t, {args}) to repeat the whole"
    elif name in _ALONG_AXES and len(args) > 1 and numbers[0]:
        if all(numbers):
            advice = f"; axes go into one tuple: t.{name}({args})"
        elif isinstance(args[1], bool):
            advice = f"; flags go by name: t.{name}({args[0]}, keepdims={args[1]})"
    return advice and f"got {', '.join(map(repr, args))}{advice}"
