"""gradtape: automatic differentiation for people who write NumPy."""

from inspect import unwrap as _unwrap
from sys import _getframe
from types import FrameType as _FrameType, FunctionType as _FunctionType
from typing import TYPE_CHECKING

from numpy import e as e, inf as inf, nan as nan, newaxis as newaxis, pi as pi

from gradtape import (
    config as _config,
    dtypes as dtypes,
    ops as ops,
)
from gradtape.advice.public import (
    explained as _explained,
    install as _install_help,
    missing_name as _missing_name,
)
from gradtape.autodiff.checkpoint_config import (
    CheckpointConfig as CheckpointConfig,
    CheckpointStrategy as CheckpointStrategy,
)
from gradtape.autodiff.context import compute_gradients as compute_gradients
from gradtape.autodiff.deterministic import (
    DeterministicConfig as DeterministicConfig,
    DeterministicMode as DeterministicMode,
    deterministic as deterministic,
)
from gradtape.autodiff.jacobians import (
    hessian as hessian,
    hvp as hvp,
    jacfwd as jacfwd,
    jacobian as jacobian,
    jacrev as jacrev,
)
from gradtape.autodiff.reverse import (
    grad as grad,
    value_and_grad as value_and_grad,
    vjp as vjp,
)
from gradtape.autodiff.scheduler import (
    SchedulerConfig as SchedulerConfig,
    SchedulingStrategy as SchedulingStrategy,
)
from gradtape.autodiff.tape import GradientTape as GradientTape
from gradtape.autodiff.transforms import jvp as jvp, vmap as vmap
from gradtape.core.deferrable import deferrable as _deferrable
from gradtape.core.kernels import INSTALLED as _INSTALLED, Kernels as _Kernels
from gradtape.core.lazy import found_at as _found_at
from gradtape.core.needed_ops import needed as _needed
from gradtape.core.state import (
    GradientContext as GradientContext,
    clear_default_context_tape as clear_default_context_tape,
    clear_tape as clear_tape,
    current_context as current_context,
    default_context as default_context,
    enable_grad as enable_grad,
    no_grad as no_grad,
    set_grad_enabled as set_grad_enabled,
    using_mode as using_mode,
)
from gradtape.core.tensor import Tensor as Tensor
from gradtape.dtypes import *  # noqa: F403 - they are a list of names
from gradtape.errors import GradtapeError as GradtapeError
from gradtape.locks import load as _load
from gradtape.ops.activation import (
    elu as elu,
    gelu as gelu,
    leaky_relu as leaky_relu,
    log_sigmoid as log_sigmoid,
    relu as relu,
    relu6 as relu6,
    sigmoid as sigmoid,
    silu as silu,
    softplus as softplus,
    softsign as softsign,
)
from gradtape.ops.arithmetic import (
    abs as abs,
    absolute as absolute,
    add as add,
    divide as divide,
    floor_divide as floor_divide,
    fmod as fmod,
    hypot as hypot,
    multiply as multiply,
    negative as negative,
    positive as positive,
    pow as pow,
    power as power,
    reciprocal as reciprocal,
    remainder as remainder,
    sign as sign,
    square as square,
    subtract as subtract,
)
from gradtape.ops.arrays import NAMES as _ARRAYS, place_of as _place_of
from gradtape.ops.assign import setitem as setitem
from gradtape.ops.cast import (
    astype as astype,
    conj as conj,
    copy as copy,
    imag as imag,
    real as real,
    stop_gradient as stop_gradient,
)
from gradtape.ops.comparison import (
    bitwise_and as bitwise_and,
    bitwise_invert as bitwise_invert,
    bitwise_or as bitwise_or,
    bitwise_xor as bitwise_xor,
    equal as equal,
    greater as greater,
    greater_equal as greater_equal,
    isfinite as isfinite,
    isinf as isinf,
    isnan as isnan,
    less as less,
    less_equal as less_equal,
    logical_and as logical_and,
    logical_not as logical_not,
    logical_or as logical_or,
    logical_xor as logical_xor,
    not_equal as not_equal,
    signbit as signbit,
)
from gradtape.ops.contract import tensordot as tensordot
from gradtape.ops.counted import (
    arange as arange,
    linspace as linspace,
    meshgrid as meshgrid,
)
from gradtape.ops.creation import (
    array as array,
    asarray as asarray,
    empty as empty,
    eye as eye,
    full as full,
    identity as identity,
    ones as ones,
    tensor as tensor,
    zeros as zeros,
)
from gradtape.ops.cumulative import (
    cumprod as cumprod,
    cumsum as cumsum,
)
from gradtape.ops.device import from_dlpack as from_dlpack
from gradtape.ops.diagonal import (
    diag as diag,
    diagonal as diagonal,
    trace as trace,
    tril as tril,
    triu as triu,
)
from gradtape.ops.einsum import einsum as einsum
from gradtape.ops.erf import (
    erf as erf,
    erfc as erfc,
    erfinv as erfinv,
    ndtr as ndtr,
)
from gradtape.ops.exponential import (
    cbrt as cbrt,
    exp as exp,
    exp2 as exp2,
    exp10 as exp10,
    expm1 as expm1,
    log as log,
    log1p as log1p,
    log2 as log2,
    log10 as log10,
    sqrt as sqrt,
)
from gradtape.ops.gather import (
    gather as gather,
    index_add as index_add,
    scatter_add as scatter_add,
    take as take,
    take_along_axis as take_along_axis,
)
from gradtape.ops.index import getitem as getitem
from gradtape.ops.inspection import (
    can_cast as can_cast,
    finfo as finfo,
    iinfo as iinfo,
    isdtype as isdtype,
    namespace_info as __array_namespace_info__,  # noqa: F401 - the standard names it so
    result_type as result_type,
)
from gradtape.ops.join import (
    column_stack as column_stack,
    concat as concat,
    concatenate as concatenate,
    dstack as dstack,
    hstack as hstack,
    stack as stack,
    vstack as vstack,
)
from gradtape.ops.like import (
    empty_like as empty_like,
    full_like as full_like,
    ndim as ndim,
    ones_like as ones_like,
    shape as shape,
    size as size,
    zeros_like as zeros_like,
)
from gradtape.ops.locate import one_hot as one_hot
from gradtape.ops.logaddexp import logaddexp as logaddexp, logaddexp2 as logaddexp2
from gradtape.ops.matmul import (
    dot as dot,
    inner as inner,
    kron as kron,
    matmul as matmul,
    outer as outer,
    vdot as vdot,
)
from gradtape.ops.moments import (
    std as std,
    var as var,
)
from gradtape.ops.nonzero import (
    argwhere as argwhere,
    flatnonzero as flatnonzero,
    nonzero as nonzero,
)
from gradtape.ops.norm import norm as norm
from gradtape.ops.pad_modes import pad as pad
from gradtape.ops.product import prod as prod
from gradtape.ops.rearrange import (
    flip as flip,
    fliplr as fliplr,
    flipud as flipud,
    repeat as repeat,
    roll as roll,
    rot90 as rot90,
    tile as tile,
)
from gradtape.ops.reduce import (
    amax as amax,
    amin as amin,
    max as max,
    mean as mean,
    min as min,
    sum as sum,
)
from gradtape.ops.rounding import (
    ceil as ceil,
    copysign as copysign,
    floor as floor,
    rint as rint,
    round as round,
    trunc as trunc,
)
from gradtape.ops.select import (
    clip as clip,
    fmax as fmax,
    fmin as fmin,
    maximum as maximum,
    minimum as minimum,
    nan_to_num as nan_to_num,
    where as where,
)
from gradtape.ops.shape import (
    atleast_1d as atleast_1d,
    atleast_2d as atleast_2d,
    atleast_3d as atleast_3d,
    broadcast_arrays as broadcast_arrays,
    broadcast_to as broadcast_to,
    expand_dims as expand_dims,
    flatten as flatten,
    matrix_transpose as matrix_transpose,
    moveaxis as moveaxis,
    permute_dims as permute_dims,
    ravel as ravel,
    reshape as reshape,
    squeeze as squeeze,
    swapaxes as swapaxes,
    transpose as transpose,
    unsqueeze as unsqueeze,
)
from gradtape.ops.softmax import (
    log_softmax as log_softmax,
    logsumexp as logsumexp,
    softmax as softmax,
)
from gradtape.ops.split import array_split as array_split, chunk as chunk, split as split
from gradtape.ops.trigonometric import (
    acos as acos,
    acosh as acosh,
    arccos as arccos,
    arccosh as arccosh,
    arcsin as arcsin,
    arcsinh as arcsinh,
    arctan as arctan,
    arctan2 as arctan2,
    arctanh as arctanh,
    asin as asin,
    asinh as asinh,
    atan as atan,
    atan2 as atan2,
    atanh as atanh,
    cos as cos,
    cosh as cosh,
    deg2rad as deg2rad,
    degrees as degrees,
    rad2deg as rad2deg,
    radians as radians,
    sin as sin,
    sinc as sinc,
    sinh as sinh,
    tan as tan,
    tanh as tanh,
)
from gradtape.ops.which import (
    all as all,
    any as any,
    argmax as argmax,
    argmin as argmin,
    count_nonzero as count_nonzero,
)

__version__ = "0.1.0"
__array_api_version__ = ops.inspection.VERSION

if TYPE_CHECKING:
    from gradtape import (
        amp as amp,
        compat as compat,
        data as data,
        fft as fft,
        gradient_clipping as gradient_clipping,
        gradients as gradients,
        graph as graph,
        implicit as implicit,
        linalg as linalg,
        nn as nn,
        numpy as numpy,
        optim as optim,
        random as random,
        scipy as scipy,
        testing as testing,
        training as training,
        tree as tree,
    )
    from gradtape.amp.autocast import autocast as autocast
    from gradtape.amp.config import AmpConfig as AmpConfig
    from gradtape.amp.loss_scaler import LossScaler as LossScaler
    from gradtape.amp.precision import PrecisionMode as PrecisionMode
    from gradtape.autodiff.checkpoint import (
        adaptive_checkpoint as adaptive_checkpoint,
        checkpoint as checkpoint,
        checkpoint_sequential as checkpoint_sequential,
    )
    from gradtape.autodiff.checkpoint_policies import (
        drop_ops as drop_ops,
        keep_ops as keep_ops,
        keep_up_to as keep_up_to,
    )
    from gradtape.autodiff.checkpoint_profiler import CheckpointProfiler as CheckpointProfiler
    from gradtape.autodiff.custom import custom_jvp as custom_jvp, custom_vjp as custom_vjp
    from gradtape.autodiff.derivative_products import fvp as fvp, gnvp as gnvp
    from gradtape.autodiff.higher_derivatives import (
        laplacian as laplacian,
        mixed_derivative as mixed_derivative,
        nth_derivative as nth_derivative,
    )
    from gradtape.autodiff.host_call import host_call as host_call
    from gradtape.autodiff.jet import jet as jet
    from gradtape.autodiff.linearize import linearize as linearize
    from gradtape.autodiff.per_sample import per_sample_gradients as per_sample_gradients
    from gradtape.compiler.cpu.runtime.pool import (
        get_num_threads as get_num_threads,
        set_num_threads as set_num_threads,
    )
    from gradtape.compiler.jit import jit as jit
    from gradtape.dtypes import bfloat16 as bfloat16
    from gradtape.gradients.per_sample_norms import per_sample_norms as per_sample_norms
    from gradtape.graph.associative import associative_scan as associative_scan
    from gradtape.graph.branches import cond as cond, switch as switch
    from gradtape.graph.loops import (
        fori_loop as fori_loop,
        map as map,
        scan as scan,
        while_loop as while_loop,
    )
    from gradtape.io.tensor_files import (
        load as load,
        load_metadata as load_metadata,
        save as save,
    )
    from gradtape.lazy.checkpoint_group import CheckpointGroup as CheckpointGroup
    from gradtape.lazy.run import run as run
    from gradtape.lazy.variables import VariableEnvironment as VariableEnvironment
    from gradtape.ops.arrays import *  # noqa: F403
    from gradtape.ops.at import at as at
    from gradtape.ops.close import (
        allclose as allclose,
        array_equal as array_equal,
        array_equiv as array_equiv,
        isclose as isclose,
    )
    from gradtape.ops.generator import (
        get_rng_state as get_rng_state,
        manual_seed as manual_seed,
        set_rng_state as set_rng_state,
    )
    from gradtape.ops.gradient_scale import (
        reverse_gradient as reverse_gradient,
        scale_gradient as scale_gradient,
    )
    from gradtape.ops.linalg.solve import solve as solve
    from gradtape.ops.random import (
        normal as normal,
        rand as rand,
        randn as randn,
        uniform as uniform,
    )
    from gradtape.ops.random_discrete import (
        bernoulli as bernoulli,
        permutation as permutation,
        randint as randint,
    )
    from gradtape.ops.scatter import (
        add_n as add_n,
        boolean_mask as boolean_mask,
        index_put as index_put,
        index_select as index_select,
        masked_fill as masked_fill,
        scatter as scatter,
        scatter_max as scatter_max,
        scatter_min as scatter_min,
    )
    from gradtape.ops.special.entropy import xlogy as xlogy
    from gradtape.ops.special.gamma import (
        digamma as digamma,
        lgamma as lgamma,
        polygamma as polygamma,
    )
    from gradtape.sparsity.derivatives import (
        hessian_sparsity as hessian_sparsity,
        jacobian_sparsity as jacobian_sparsity,
        sparse_hessian as sparse_hessian,
        sparse_jacobian as sparse_jacobian,
    )
    from gradtape.tools.anomaly import detect_anomaly as detect_anomaly
    from gradtape.tools.benchmark import (
        BenchmarkConfig as BenchmarkConfig,
        PerformanceBenchmark as PerformanceBenchmark,
    )
    from gradtape.tools.benchmark_comparison import BenchmarkComparison as BenchmarkComparison
    from gradtape.tools.benchmark_result import BenchmarkResult as BenchmarkResult
    from gradtape.tools.check import (
        GradientReport as GradientReport,
        NumericalChecker as NumericalChecker,
    )
    from gradtape.tools.confusion import ConfusionMatrix as ConfusionMatrix
    from gradtape.tools.determinism_check import check_deterministic as check_deterministic
    from gradtape.tools.explain_call import explain_call as explain_call
    from gradtape.tools.gradient_health import (
        GradientHealth as GradientHealth,
        gradient_health as gradient_health,
    )
    from gradtape.tools.layer_health import (
        HealthLimits as HealthLimits,
        HealthReport as HealthReport,
        LayerHealth as LayerHealth,
    )
    from gradtape.tools.memory import GradientMemoryProfiler as GradientMemoryProfiler
    from gradtape.tools.training_report import TrainingReport as TrainingReport
    from gradtape.tools.writes import detect_writes as detect_writes
    from gradtape.training.loop import fit as fit

# Loaded at first use: together they cost many times as much as the rest, and no program uses all.
# The functions of `ops.arrays` have a table of their own.
_NAMESPACES = (
    "amp", "compat", "data", "fft", "gradient_clipping", "gradients", "graph", "implicit",
    "linalg", "nn", "numpy", "optim", "random", "scipy", "testing", "training", "tree",
)  # fmt: skip
_LAZY = {
    "amp.autocast": "autocast",
    "amp.config": "AmpConfig",
    "amp.loss_scaler": "LossScaler",
    "amp.precision": "PrecisionMode",
    "autodiff.checkpoint": "adaptive_checkpoint checkpoint checkpoint_sequential",
    "autodiff.checkpoint_policies": "drop_ops keep_ops keep_up_to",
    "autodiff.checkpoint_profiler": "CheckpointProfiler",
    "autodiff.custom": "custom_jvp custom_vjp",
    "autodiff.derivative_products": "fvp gnvp",
    "autodiff.higher_derivatives": "laplacian mixed_derivative nth_derivative",
    "autodiff.host_call": "host_call",
    "autodiff.linearize": "linearize",
    "autodiff.per_sample": "per_sample_gradients",
    "autodiff.jet": "jet",
    "compiler.cpu.runtime.pool": "get_num_threads set_num_threads",
    "compiler.jit": "jit",
    "dtypes": "bfloat16",
    "gradients.per_sample_norms": "per_sample_norms",
    "graph.associative": "associative_scan",
    "graph.branches": "cond switch",
    "graph.loops": "fori_loop map scan while_loop",
    "io.tensor_files": "load load_metadata save",
    "lazy.checkpoint_group": "CheckpointGroup",
    "lazy.run": "run",
    "lazy.variables": "VariableEnvironment",
    "ops.at": "at",
    "ops.close": "allclose array_equal array_equiv isclose",
    "ops.generator": "get_rng_state manual_seed set_rng_state",
    "ops.gradient_scale": "reverse_gradient scale_gradient",
    "ops.linalg.solve": "solve",
    "ops.random": "normal rand randn uniform",
    "ops.random_discrete": "bernoulli permutation randint",
    "ops.scatter": "add_n boolean_mask index_put index_select masked_fill scatter scatter_max "
    "scatter_min",
    "ops.special.entropy": "xlogy",
    "ops.special.gamma": "digamma lgamma polygamma",
    "sparsity.derivatives": "hessian_sparsity jacobian_sparsity sparse_hessian sparse_jacobian",
    "tools.anomaly": "detect_anomaly",
    "tools.benchmark": "BenchmarkConfig PerformanceBenchmark",
    "tools.benchmark_comparison": "BenchmarkComparison",
    "tools.benchmark_result": "BenchmarkResult",
    "tools.check": "GradientReport NumericalChecker",
    "tools.confusion": "ConfusionMatrix",
    "tools.determinism_check": "check_deterministic",
    "tools.explain_call": "explain_call",
    "tools.gradient_health": "GradientHealth gradient_health",
    "tools.layer_health": "HealthLimits HealthReport LayerHealth",
    "tools.memory": "GradientMemoryProfiler",
    "tools.training_report": "TrainingReport",
    "tools.writes": "detect_writes",
    "training.loop": "fit",
}
_PLACES = {
    name: f"gradtape.{module}:{name}" for module, names in _LAZY.items() for name in names.split()
}


def _kernels() -> _Kernels | None:
    """The kernels for large arrays, loaded at the first one; None to use NumPy alone."""
    if not _config.uses("kernels"):
        return None
    return _load("gradtape.kernels").Kernels()  # type: ignore[no-any-return]


def _public_places() -> dict[str, str]:
    """Where functions of `gt` are defined, `"module:name"`, but for those of `ops.arrays`."""
    loaded = {
        name: _unwrap(function)
        for name, function in globals().items()
        if isinstance(function, _FunctionType) and not name.startswith("_")
    }
    return {name: f"{f.__module__}:{f.__name__}" for name, f in loaded.items()} | _PLACES


_INSTALLED.provider = _kernels
_needed.fill(public_places=_public_places)
_install_help(globals())
vmap = _explained(vmap, __name__)
jvp, hvp = _deferrable(jvp), _deferrable(hvp)


def _is_scipys(frame: _FrameType) -> bool:
    """Whether SciPy's code is running: with SCIPY_ARRAY_API it takes functions of `xp.special`."""
    return str(frame.f_globals.get("__name__")).startswith("scipy.")


def __getattr__(name: str) -> object:
    if name in _NAMESPACES:
        return _load(f"gradtape.{name}")
    place = _place_of(name) if name in _ARRAYS else _PLACES.get(name)
    if name == "special" and _is_scipys(_getframe(1)):
        return _load("gradtape.scipy.special")
    if place is None:
        raise _missing_name(name)
    # Found here from now on, without a detour.
    return globals().setdefault(name, _explained(_found_at(place), __name__))


def __dir__() -> list[str]:
    return sorted({*globals(), *_PLACES, *_NAMESPACES, *_ARRAYS} - {"TYPE_CHECKING"})
