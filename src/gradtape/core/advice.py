"""What to do instead, when SciPy or scikit-learn turns a recorded tensor into an array.

SciPy converts what it is given with `np.asarray`, unless it was told to look for the Array API. By
then the error is certain, so there is time to look at the calling frames for the function that was
called, and to name the one of gradtape that has a gradient.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from types import FrameType

# Their functions call each other: the first one called is the one the user knows.
_LIBRARIES = ("scipy", "sklearn")

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

# Counterparts that do not go by the same name.
_COUNTERPARTS = {
    "scipy.differentiate.derivative": "gt.grad",
    "scipy.differentiate.hessian": "gt.hessian",
    "scipy.differentiate.jacobian": "gt.jacobian",
    "scipy.integrate.trapezoid": "gt.trapezoid",
    "scipy.interpolate.interp1d": "gt.interp",
}

# What takes derivatives instead of tensors.
_GIVE = {
    "scipy.optimize.minimize": "give it arrays, and gt.value_and_grad(f) with jac=True",
    "scipy.optimize.root": "give it arrays, and jac=gt.jacobian(f)",
    "scipy.optimize.least_squares": "give it arrays, and jac=gt.jacobian(f)",
}

_OF_NUMPY = (
    "Read the value with t.item() or t.detach().numpy(); fill a buffer of np.zeros_like(x, "
    "shape=n) instead of np.zeros(n); join with np.stack instead of np.array; use np.sin instead "
    "of math.sin"
)


def ways_out() -> str:
    """What to write instead of the conversion that is being refused."""
    return library_advice() or _OF_NUMPY


def library_advice() -> str | None:
    """What to write instead of the call of a library that asks for an array; None if none does."""
    call = _library_call(inspect.currentframe())
    if call is None:
        return None
    other = counterpart(call)
    possible = (_array_api(call), other and f"use {other}", _GIVE.get(call))
    ways = [way for way in possible if way]
    if not ways:
        ways = ["write it with NumPy's functions", "give it a rule with gt.custom_vjp"]
    return f"{call} asks for an array: {', or '.join(ways)}; t.detach() computes without gradient"


def counterpart(call: str) -> str | None:
    """The function of gradtape that goes by the name of one of SciPy: `gt.linalg.det`."""
    if call in _COUNTERPARTS:
        return _COUNTERPARTS[call]
    library, _, path = call.partition(".")
    if library != "scipy":
        return None
    # By name: the core does not know what is built upon it.
    found: object = sys.modules["gradtape"]
    for part in path.split("."):
        found = getattr(found, part, None)
    return f"gt.{path}" if callable(found) else None


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


# ---- who called ---------------------------------------------------------------------------------


def _library_call(frame: FrameType | None) -> str | None:
    """The public function of a library that the user called, and that asks for a conversion."""
    # Between the library and us lies what NumPy passed on.
    while frame is not None and _package(frame) in ("gradtape", "numpy"):
        frame = frame.f_back
    frames = []
    while frame is not None and _package(frame) in _LIBRARIES:
        frames.append(frame)
        frame = frame.f_back
    names = (name for frame in reversed(frames) for name in _names(frame))
    return next((name for name in names if name is not None), None)


def _package(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", "")).partition(".")[0]


def _names(frame: FrameType) -> Iterator[str | None]:
    """The public names that a frame may belong to, or None in place of one that is private."""
    module = frame.f_globals["__name__"]
    code, values = frame.f_code, frame.f_locals
    if "self" in values:
        # SciPy's distributions are the only instances of their classes: `norm` of `norm_gen`.
        owner = type(values["self"])
        name = owner.__name__.removesuffix("_gen")
        method = "" if code.co_name.startswith("_") else f".{code.co_name}"
        yield _public(owner.__module__, name, method)
    name, _, method = code.co_qualname.partition(".")
    yield _public(module, name, f".{method}" if method and not method.startswith("_") else "")
    # A decorated function is called by one that has it among its variables.
    for value in values.values():
        called = getattr(value, "__name__", None) if callable(value) else None
        if isinstance(called, str):
            yield _public(getattr(value, "__module__", None) or module, called)


def _public(module: str, name: str, method: str = "") -> str | None:
    """`scipy.linalg.det` of `det` in `scipy.linalg._basic`, if it is found there."""
    parts = module.split(".")
    if parts[0] not in _LIBRARIES or name.startswith("_"):
        return None
    private = (number for number, part in enumerate(parts) if part.startswith("_"))
    package = ".".join(parts[: next(private, len(parts))])
    # Or next to it: `scipy.optimize.elementwise` has what is in `scipy.optimize._elementwise`.
    for place in (package, module.replace("._", ".")):
        found = sys.modules.get(place) if "." in place else None
        # Not by getattr, at which modules that SciPy wants to be rid of would warn.
        if found is not None and name in vars(found):
            return f"{place}.{name}{method}"
    return None
