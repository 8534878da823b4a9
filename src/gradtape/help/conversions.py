"""What to write instead, where a recorded tensor is turned into an array or a number.

SciPy converts what it is given with `np.asarray`, unless it was told to look for the Array API.
Some functions of NumPy do not ask tensors before they convert them, and some of ours want plain
numbers. By then the error is certain, so there is time to look at the calling frames for the
function that was called, and to name the one that has a gradient.
"""

from __future__ import annotations

import contextlib
import inspect
import sys
from collections.abc import Iterator, Mapping
from types import FrameType, TracebackType
from typing import Any

from gradtape.core.tensor import Tensor
from gradtape.errors import ConversionError
from gradtape.help.frames import LIBRARIES, own_function, package, public_names, running
from gradtape.help.scipy_counterparts import counterpart

# What runs on tensors, and differentiates, once SCIPY_ARRAY_API is set; without it, it raises.
# docs/scipy.md lists the same, and both are tested.
WITH_ARRAY_API = frozenset(
    f"scipy.{namespace}.{name}"
    for namespace, names in {
        "cluster.vq": "whiten",
        "constants": "convert_temperature lambda2nu nu2lambda",
        "differentiate": "derivative jacobian",
        "fft": "fft ifft fft2 ifft2 fftn ifftn rfft irfft rfft2 irfft2 rfftn irfftn hfft ihfft "
        "hfft2 ihfft2 hfftn ihfftn fht ifht",
        "integrate": "trapezoid cumulative_trapezoid cumulative_simpson romb tanhsinh cubature",
        "linalg": "block_diag fiedler orthogonal_procrustes",
        "optimize": "rosen rosen_der rosen_hess rosen_hess_prod",
        "optimize.elementwise": "find_root find_minimum",
        "signal": "fftconvolve oaconvolve hilbert hilbert2 envelope resample freqz freqs freqz_zpk "
        "freqs_zpk freqz_sos group_delay zpk2tf tf2zpk sos2tf normalize lp2lp lp2hp lp2bp lp2bs "
        "lp2lp_zpk lp2hp_zpk lp2bp_zpk lp2bs_zpk bilinear_zpk vectorstrength gauss_spline",
        "spatial.transform": "Rotation RigidTransform",
        "special": "logsumexp softmax log_softmax multigammaln polygamma",
        "stats": "zscore zmap gzscore skew kurtosis moment kstat kstatvar lmoment describe sem "
        "variation gmean hmean pmean gstd tmean tvar tstd tsem tmin tmax trim_mean sigmaclip mode "
        "quantile iqr median_abs_deviation circmean circvar circstd directional_stats entropy "
        "differential_entropy pearsonr boxcox_llf yeojohnson_llf ttest_1samp ttest_ind ttest_rel "
        "f_oneway alexandergovern bartlett levene chisquare power_divergence skewtest kurtosistest "
        "normaltest jarque_bera combine_pvalues",
    }.items()
    for name in names.split()
)

# What takes derivatives instead of tensors, and what takes tensors instead of it.
_GIVE = {
    **{
        f"scipy.optimize.{name}": "use scipy.optimize.newton(f, x0), from an x0 near the root, "
        "which takes tensors"
        for name in ("brentq", "brenth", "ridder", "bisect", "toms748", "root_scalar")
    },
    "scipy.integrate.quad": "use scipy.integrate.fixed_quad(f, a, b, n=20)[0], with as many points "
    "as a smooth function needs, which takes tensors",
    "scipy.optimize.curve_fit": "give it arrays, and jac= made of gt.jacobian",
    "scipy.optimize.minimize_scalar": "give it arrays, and differentiate at the minimum",
    "scipy.optimize.minimize": "give it arrays, and gt.value_and_grad(f) with jac=True",
    "scipy.optimize.root": "give it arrays, and jac=gt.jacobian(f)",
    "scipy.optimize.least_squares": "give it arrays, and jac=gt.jacobian(f)",
}

# Functions of NumPy that convert without asking.
_POLYNOMIAL = (
    "a tensor can be the x of polyval, chebval, …; with coefficients that have a gradient use "
    "np.polyval(c[::-1], x), or write the sum"
)
_IN_PLACE_OF_NUMPY = {
    "np.c_": "use np.column_stack, or np.concatenate along the last of three axes or more",
    "np.r_": "use np.concatenate",
    "np.pad": "use gt.pad, which has a gradient by constant_values and end_values",
    "np.full": "use np.full_like(t, t, shape=shape), or gt.full",
    "np.vectorize": "use gt.vmap, or NumPy's functions on whole arrays",
}

_DETACHED = "; t.detach() computes without gradient"
_OF_NUMPY = (
    "To keep it, use np.sin instead of math.sin, np.stack instead of np.array, a buffer of "
    "np.zeros_like(x, shape=n) instead of np.zeros(n); to print or log the value, use t.item() or "
    "t.detach().numpy(), which have no gradient"
)


def add_ways_out(error: ConversionError, recorded: bool) -> None:
    """Add to an error what to write instead of the conversion that is being refused.

    Args:
        error: Changed in place.
        recorded: Whether the tensor has a value and a history; otherwise it has no value, and none
            without its history either.
    """
    advice = _specific_advice()
    if recorded:
        error.args = (f"{error}. {advice or _OF_NUMPY}",)
    elif advice:
        error.add_note(advice.removesuffix(_DETACHED))


def note_hidden_conversion(error: BaseException) -> None:
    """Note what to write instead on an error of compiled code that hides what a tensor said.

    `_sigtools`, for one, answers any error of a conversion with one of its own. Then the function
    that called it is found in the traceback, if it has a recorded tensor among its variables.
    """
    frames = list(_frames_below(error.__traceback__))
    called = [frame for frame in frames if package(frame) in LIBRARIES]
    if called and frames[-1] is called[-1] and any(map(_is_recorded, frames[-1].f_locals.values())):
        advice = _library_advice(called)
        if advice is not None:
            error.add_note(f"It was given a tensor that is being recorded. {advice}")


def _frames_below(traceback: TracebackType | None) -> Iterator[FrameType]:
    while traceback is not None:
        yield traceback.tb_frame
        traceback = traceback.tb_next


def _is_recorded(value: Any) -> bool:
    return isinstance(value, Tensor) and value.requires_grad


def _specific_advice() -> str | None:
    """What to write instead of the call that asks for an array or a number; None if none does."""
    frames = running()
    outermost = package(frames[0]) if frames else None
    if outermost == "gradtape":
        return _own_advice(frames)
    return _numpy_advice(frames[0]) if outermost == "numpy" else _library_advice(frames)


def _own_advice(frames: list[FrameType]) -> str | None:
    """Of a function of gradtape that wants a plain array or number as one of its arguments."""
    name = own_function(frames)
    return name and (
        f"{name} takes arrays and numbers without history for this argument: give it t.item() or "
        "t.detach(), or join tensors with gt.stack"
    )


def _numpy_advice(frame: FrameType) -> str | None:
    """Of a function of NumPy that does not ask its arguments whether they are arrays."""
    module, owner = frame.f_globals["__name__"], frame.f_locals.get("self")
    if module.startswith("numpy.polynomial"):
        return f"np.polynomial asks for arrays: {_POLYNOMIAL}{_DETACHED}"
    kinds = {"RClass": "np.r_", "CClass": "np.c_", "vectorize": "np.vectorize"}
    name = kinds.get(type(owner).__name__, f"np.{frame.f_code.co_name}")
    advice = _IN_PLACE_OF_NUMPY.get(name)
    return advice and f"{name} asks for an array: {advice}{_DETACHED}"


def _library_advice(frames: list[FrameType]) -> str | None:
    """Of a function of SciPy or scikit-learn."""
    names = (name for frame in frames for name in public_names(frame))
    call = next((name for name in names if name is not None), None)
    if call is None:
        return None
    other = counterpart(call, frames[0].f_code.co_name, _arguments(call, frames))
    possible = (_array_api(call), other and f"use {other}", _GIVE.get(call))
    ways = [way for way in possible if way]
    if not ways:
        ways = ["write it with NumPy's functions", "give it a rule with gt.custom_vjp"]
    return f"{call} asks for an array: {', or '.join(ways)}{_DETACHED}"


def _arguments(call: str, frames: list[FrameType]) -> Mapping[str, Any]:
    """The arguments that a function of SciPy was called with, by name, as far as they are found."""
    place, _, name = call.rpartition(".")
    for frame in frames:
        if frame.f_code.co_name == name:
            return frame.f_locals
    # It was not reached: what decorates it has them all in two variables.
    _, positional, by_name, values = inspect.getargvalues(frames[0])
    function = getattr(sys.modules.get(place), name, None)
    if not (positional and by_name and inspect.isfunction(function)):
        return values
    with contextlib.suppress(TypeError, KeyError):  # a decorator may have deleted them
        args, options = values[positional], values[by_name]
        return inspect.signature(function).bind_partial(*args, **options).arguments
    return {}


def _array_api(call: str) -> str | None:
    """What has to be set for a function to take tensors as they are."""
    setting = "set SCIPY_ARRAY_API=1 before SciPy is imported"
    if call.startswith("scipy."):
        # What SciPy saw when it was imported, which is what counts.
        module = sys.modules.get("scipy._lib._array_api")
        useful = call in WITH_ARRAY_API or _outer(call) in WITH_ARRAY_API
        return setting if useful and not getattr(module, "SCIPY_ARRAY_API", False) else None
    if not sys.modules["sklearn"].get_config()["array_api_dispatch"]:
        return (
            f"{setting}, and call it inside of sklearn.config_context(array_api_dispatch=True), "
            "which some of scikit-learn supports"
        )
    place, _, name = call.rpartition(".")
    function = getattr(sys.modules.get(place), name, None)
    if inspect.isfunction(function) and "multioutput" in inspect.signature(function).parameters:
        return "pass multioutput='raw_values', without which the result is a Python number"
    return None


def _outer(call: str) -> str:
    """The class of a method: `scipy.spatial.transform.Rotation` of `….Rotation.apply`."""
    return call.rpartition(".")[0]
