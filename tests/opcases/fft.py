"""Samples of Fourier transforms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.fft

import gradtape as gt
from gradtape.errors import ArgumentError, AxisError, DTypeError, ShapeError, UnsupportedError
from opcases.case import At, OpCase, Raises, draw

REAL = (np.float64, np.float32, np.int32)
ANY = (*REAL, np.float16, np.complex128, np.complex64, np.bool_)
COMPLEX = draw(2, 3) + 1j * draw(2, 3, seed=1)
PAIR = ("rfft", "irfft")


def case(
    name: str, label: str, x: Any, *, ops: Any = ("fft",), numpy: bool = True, **more: Any
) -> OpCase:
    """A case of a function by that of NumPy, or SciPy, and PyTorch's."""
    reference: Callable[..., Any] = getattr(np.fft if numpy else scipy.fft, name)
    params = more.pop("params", {})
    torch = more.pop("torch", in_torch(name) if "d" not in name else None)
    function = getattr(gt.fft, name)
    return OpCase(function, (x,), reference, params, ops=ops, label=label, torch=torch, **more)


def in_torch(name: str) -> Callable[..., Any]:
    """PyTorch's function, which says `dim` for an axis."""

    def function(torch: Any, x: Any, **params: Any) -> Any:
        for ours in ("axis", "axes"):
            if ours in params:
                params["dim"] = params.pop(ours)
        return getattr(torch.fft, name)(x, **params)

    return function


ALONG = [
    case(
        "fft",
        "",
        draw(2, 3),
        dtypes=ANY,
        raises=[
            Raises((draw(2),), AxisError, "fft: got axis 1", {"axis": 1}),
            Raises((draw(2),), ArgumentError, "fft: got norm='no'.*ortho", {"norm": "no"}),
            Raises((draw(2),), ShapeError, "fft: got 0 points", {"n": 0}),
            Raises((draw(0),), ShapeError, r"fft: got 0 points along axis 0 of shape \(0,\)"),
            Raises((draw(2),), UnsupportedError, "fft: got out=", {"out": 1}),
            Raises((np.array(1.0),), AxisError, "fft"),
        ],
    ),
    case("fft", "complex", COMPLEX, params={"norm": "forward"}),
    case("fft", "longer", draw(3), params={"n": 5}),
    case("fft", "shorter", draw(4, 2), params={"n": 3, "axis": 0, "norm": "ortho"}),
    case("fft", "empty", draw(0, 3), torch=None),
    case("ifft", "", draw(2, 4), dtypes=ANY),
    case("ifft", "complex", COMPLEX, params={"axis": -2, "norm": "ortho"}),
    case("ifft", "longer", COMPLEX, params={"n": 4, "norm": "forward"}),
]

OVER = [
    case("fft2", "", draw(2, 3), dtypes=ANY),
    case("fft2", "axes", draw(2, 1, 2), params={"axes": (0, 2), "s": (3, -1)}),
    case("ifft2", "", COMPLEX, params={"norm": "ortho"}),
    case(
        "fftn",
        "",
        draw(2, 3),
        raises=[
            Raises((draw(2, 2),), AxisError, "fftn.*named twice", {"axes": (0, 0)}),
            Raises((draw(2, 2),), ShapeError, "fftn: got s=", {"s": (2,), "axes": (0, 1)}),
            Raises((draw(2, 2),), ShapeError, "fftn: got 0 points", {"s": (0, 1)}),
        ],
    ),
    case("fftn", "sizes", draw(3, 2), params={"s": (2, 4), "axes": (0, 1), "norm": "forward"}),
    case("ifftn", "", COMPLEX, params={"axes": (1,)}),
]

HALVES = [
    case(
        "rfft",
        "even",
        draw(2, 4),
        ops=PAIR,
        dtypes=(*REAL, np.float16),
        raises=[
            Raises((COMPLEX,), DTypeError, "rfft: got complex128, expected real numbers"),
            Raises((draw(2),), ShapeError, "rfft: got 0 points", {"n": 0}),
            Raises((draw(2),), AxisError, "rfft", {"axis": 1}),
        ],
    ),
    case("rfft", "odd", draw(5), ops=PAIR, params={"norm": "ortho"}),
    case("rfft", "one", draw(1), ops=PAIR),
    case("rfft", "two", draw(2), ops=PAIR, params={"norm": "forward"}),
    case("rfft", "sized", draw(4, 2), ops=PAIR, params={"n": 3, "axis": 0}),
    case(
        "irfft",
        "even",
        COMPLEX,
        ops=PAIR,
        dtypes=(np.float64,),
        raises=[
            Raises((draw(1),), ShapeError, r"irfft: got 0 points for shape \(1,\).*give n"),
            Raises((draw(2),), ShapeError, "irfft: got -2 points", {"n": -2}),
            Raises((draw(),), AxisError, "irfft"),
        ],
        # Imaginary parts of the first and the last coefficient are not used.
        at=[At((np.array([1 + 1j, 2 - 1j, 3j]),), (np.array([1.0, 0.0, 0.0]),))],
    ),
    case("irfft", "odd", COMPLEX, ops=PAIR, params={"n": 5, "norm": "ortho"}),
    case("irfft", "real", draw(3), ops=PAIR, dtypes=REAL),
    case("irfft", "longer", COMPLEX, ops=PAIR, params={"n": 7, "norm": "forward"}),
    case("irfft", "shorter", COMPLEX.T, ops=PAIR, params={"n": 2, "axis": 0}),
    case("irfft", "one", COMPLEX, ops=PAIR, params={"n": 1}),
    case("rfft2", "", draw(2, 3), ops=PAIR),
    case("rfft2", "axes", draw(4, 1, 2), ops=PAIR, params={"axes": (2, 0), "norm": "ortho"}),
    case("irfft2", "", COMPLEX, ops=PAIR, params={"norm": "forward"}),
    case("irfft2", "odd", COMPLEX, ops=PAIR, params={"s": (3, 3), "axes": (-2, -1)}),
    case(
        "rfftn",
        "",
        draw(2, 2, 3),
        ops=PAIR,
        second_order=False,
        raises=[Raises((np.array(1.0),), ShapeError, "rfftn: got no axes")],
    ),
    case("irfftn", "", COMPLEX, ops=PAIR),
    case("irfftn", "axes", COMPLEX, ops=PAIR, params={"s": (3,), "axes": (0,)}),
    case("hfft", "", COMPLEX, ops=PAIR),
    case("hfft", "odd", COMPLEX, ops=PAIR, params={"n": 5, "norm": "forward"}),
    case("hfft", "real", draw(3), ops=PAIR, dtypes=REAL, params={"norm": "ortho"}),
    case("ihfft", "even", draw(4), ops=PAIR, dtypes=REAL),
    case("ihfft", "odd", draw(5), ops=PAIR, params={"norm": "ortho"}),
    case("hfft2", "", COMPLEX, ops=PAIR, numpy=False),
    case("hfftn", "", COMPLEX, ops=PAIR, numpy=False, params={"s": (2, 5), "axes": (0, 1)}),
    case("ihfft2", "", draw(2, 3), ops=PAIR, numpy=False),
    case("ihfftn", "", draw(2, 3), ops=PAIR, numpy=False, params={"norm": "forward"}),
]

WEIGHTED = (
    *(("dct", type, norm) for type in (1, 2, 3) for norm in ("backward", "ortho")),
    *(("dct", 4, "forward"), ("dst", 1, "forward"), ("dst", 4, "ortho")),
    *(("dst", type, norm) for type in (2, 3) for norm in ("forward", "ortho")),
)


def trigonometric(name: str, label: str, x: Any, **params: Any) -> OpCase:
    """A case of a cosine or sine transform."""
    op = name.removeprefix("i")[:3]
    return case(name, label, x, ops=(op,), numpy=False, params=params)


def by_parts(x: Any, **params: Any) -> Any:
    """SciPy's transform of both parts; for complex numbers it does not look at `orthogonalize`."""
    return scipy.fft.dct(x.real, **params) + 1j * scipy.fft.dct(x.imag, **params)


def sines_by_parts(x: Any, **params: Any) -> Any:
    return scipy.fft.dst(x.real, **params) + 1j * scipy.fft.dst(x.imag, **params)


PARTS = [
    OpCase(
        function,
        (COMPLEX,),
        by_parts if function is gt.fft.dct else sines_by_parts,
        {"type": type, "norm": norm, "orthogonalize": norm != "ortho"},
        ops=(function.__name__,),
        label=f"{type}-{norm}-complex",
        dtypes=(np.complex128, np.complex64),
        second_order=False,
    )
    for function, type, norm in (
        *((gt.fft.dct, 1, "backward"), (gt.fft.dct, 2, "backward"), (gt.fft.dct, 3, "ortho")),
        *((gt.fft.dst, 2, "ortho"), (gt.fft.dst, 3, "forward")),
    )
]

COSINES = [
    *PARTS,
    *(
        trigonometric(name, f"{type}-{norm}", draw(4), type=type, norm=norm)
        for name, type, norm in WEIGHTED
    ),
    *(
        trigonometric(name, f"{type}-{on}", draw(3), type=type, norm=norm, orthogonalize=on)
        for name, type, norm, on in (
            *(("dct", 1, "ortho", False), ("dct", 2, "forward", True), ("dct", 3, "ortho", False)),
            *(("dst", 2, "ortho", False), ("dst", 3, "backward", True), ("idct", 1, None, True)),
        )
    ),
    case(
        "dct",
        "",
        draw(2, 3),
        ops=("dct",),
        numpy=False,
        dtypes=ANY,
        raises=[
            Raises((draw(3),), ArgumentError, "dct: got type=5", {"type": 5}),
            Raises((draw(1),), ShapeError, "dct: got shape.*type 1 needs two", {"type": 1}),
            Raises((draw(0),), ShapeError, "dct: got 0 points"),
            Raises((draw(3),), AxisError, "dct: got axis 2", {"axis": 2}),
        ],
    ),
    trigonometric("dct", "complex", COMPLEX, type=3, axis=0, n=3),
    trigonometric("dct", "two", draw(2), type=1),
    trigonometric("dst", "one", draw(1), type=3),
    trigonometric("idct", "", draw(3), norm="ortho"),
    trigonometric("idct", "3", draw(3), type=3, norm="forward"),
    trigonometric("idst", "", draw(3)),
    trigonometric("idst", "1", draw(3), type=1),
    trigonometric("dctn", "", draw(2, 3)),
    trigonometric("dctn", "1", draw(2, 3), type=1, norm="ortho", orthogonalize=False),
    trigonometric("idctn", "", draw(2, 3), s=(3, 2), axes=(0, 1), norm="forward"),
    trigonometric("dstn", "", draw(2, 3), type=3, axes=(1,)),
    trigonometric("idstn", "", draw(2, 3), type=2),
]

SHIFTS = [
    case("fftshift", "", draw(2, 3), ops=("roll",)),
    case("fftshift", "axis", draw(2, 3), ops=("roll",), params={"axes": 1}),
    case(
        "ifftshift",
        "",
        draw(2, 3),
        ops=("roll",),
        raises=[Raises((draw(2),), AxisError, "ifftshift", {"axes": 1})],
    ),
]


def hankel(name: str, label: str, x: Any, *constants: float, **more: Any) -> OpCase:
    """A row of a Hankel transform, whose constants are positional."""
    function, reference = getattr(gt.fft, name), getattr(scipy.fft, name)
    ops = ("rfft", "irfft")
    return OpCase(function, (x, *constants), reference, ops=ops, label=label, rtol=1e3, **more)


HANKEL = [
    hankel(
        "fht",
        "",
        draw(2, 5),
        0.1,
        0.5,
        raises=[
            Raises((draw(3) + 1j, 0.1, 0.5), DTypeError, "fht: got complex128"),
            Raises((draw(0), 0.1, 0.5), DTypeError, "expected real numbers along an axis"),
        ],
    ),
    hankel("fht", "biased", draw(4), 0.1, 2.0, 0.3, -0.4, dtypes=(np.float64,)),
    hankel("fht", "pole", draw(4), 0.1, -1.0),
    hankel(
        "ifht",
        "",
        draw(4),
        0.1,
        2.0,
        0.3,
        0.2,
        dtypes=(np.float64,),  # with a bias, SciPy leaves single precision
        raises=[
            Raises((draw(4), 0.1, 0, 0, 1), ArgumentError, "ifht: .*the transform is singular")
        ],
    ),
]


CASES = [*ALONG, *OVER, *HALVES, *COSINES, *SHIFTS, *HANKEL]

NOT_NATIVE = dict.fromkeys(
    ("fft", "rfft", "irfft", "dct", "dst"), "a library of transforms does it"
)
