"""Functions of NumPy that not every program uses: sorting, statistics, polynomials, and the like.

They are found at `gradtape` itself, which loads the module of a function when it is first used.
"""

from typing import TYPE_CHECKING

# The functions of each module.
_MODULES = {
    "aliases": "around bitwise_not conjugate fabs fix float_power invert mod true_divide",
    "choices": "choose compress extract piecewise select",
    "complexes": "angle iscomplex iscomplexobj isneginf isposinf isreal isrealobj real_if_close",
    "covariance": "corrcoef cov ptp",
    "described": "broadcast_shapes",
    "differences": "diff ediff1d gradient trapezoid unwrap",
    "floats": "divmod frexp heaviside ldexp modf nextafter spacing",
    "functional": "apply_along_axis apply_over_axes vectorize",
    "histograms": "bincount histogram histogram2d histogram_bin_edges histogramdd",
    "indices": (
        "diag_indices diag_indices_from indices ix_ ravel_multi_index tri tril_indices "
        "tril_indices_from triu_indices triu_indices_from unravel_index"
    ),
    "integers": (
        "bitwise_count bitwise_left_shift bitwise_right_shift gcd lcm left_shift right_shift"
    ),
    "interpolation": "interp",
    "logcumsumexp": "logcumsumexp",
    "median": "median nanmedian",
    "nan": "nancumprod nancumsum nanmean nanprod nanstd nansum nanvar",
    "nan_extremes": "nanargmax nanargmin nanmax nanmin",
    "pieces": (
        "append block delete diagflat dsplit hsplit insert resize rollaxis trim_zeros unstack "
        "vsplit"
    ),
    "polynomials": (
        "poly polyadd polyder polydiv polyfit polyint polymul polysub polyval roots vander"
    ),
    "products": "cross matvec vecdot vecmat",
    "quantile": "nanpercentile nanquantile percentile quantile",
    "running": "cummax cummin cumulative_max cumulative_min cumulative_prod cumulative_sum",
    "search": "digitize isin searchsorted",
    "select_k": "argpartition kthvalue partition topk",
    "sets": (
        "intersect1d setdiff1d setxor1d union1d unique unique_all unique_counts unique_inverse "
        "unique_values"
    ),
    "sort": "argsort lexsort sort sort_complex",
    "spaced": "geomspace logspace",
    "tapers": "bartlett blackman hamming hanning i0 kaiser",
    "weights": "average",
    "windows": "convolve correlate sliding_window_view",
    "writes": "fill_diagonal place put put_along_axis putmask",
}

NAMES = {name: module for module, names in _MODULES.items() for name in names.split()}


def place_of(name: str) -> str:
    """Where a function stands: `"module:name"`."""
    return f"gradtape.ops.arrays.{NAMES[name]}:{name}"


# The same for type checkers, which do not see the table; a test compares them.
if TYPE_CHECKING:
    from gradtape.ops.arrays.aliases import (
        around as around,
        bitwise_not as bitwise_not,
        conjugate as conjugate,
        fabs as fabs,
        fix as fix,
        float_power as float_power,
        invert as invert,
        mod as mod,
        true_divide as true_divide,
    )
    from gradtape.ops.arrays.choices import (
        choose as choose,
        compress as compress,
        extract as extract,
        piecewise as piecewise,
        select as select,
    )
    from gradtape.ops.arrays.complexes import (
        angle as angle,
        iscomplex as iscomplex,
        iscomplexobj as iscomplexobj,
        isneginf as isneginf,
        isposinf as isposinf,
        isreal as isreal,
        isrealobj as isrealobj,
        real_if_close as real_if_close,
    )
    from gradtape.ops.arrays.covariance import corrcoef as corrcoef, cov as cov, ptp as ptp
    from gradtape.ops.arrays.described import broadcast_shapes as broadcast_shapes
    from gradtape.ops.arrays.differences import (
        diff as diff,
        ediff1d as ediff1d,
        gradient as gradient,
        trapezoid as trapezoid,
        unwrap as unwrap,
    )
    from gradtape.ops.arrays.floats import (
        divmod as divmod,
        frexp as frexp,
        heaviside as heaviside,
        ldexp as ldexp,
        modf as modf,
        nextafter as nextafter,
        spacing as spacing,
    )
    from gradtape.ops.arrays.functional import (
        apply_along_axis as apply_along_axis,
        apply_over_axes as apply_over_axes,
        vectorize as vectorize,
    )
    from gradtape.ops.arrays.histograms import (
        bincount as bincount,
        histogram as histogram,
        histogram2d as histogram2d,
        histogram_bin_edges as histogram_bin_edges,
        histogramdd as histogramdd,
    )
    from gradtape.ops.arrays.indices import (
        diag_indices as diag_indices,
        diag_indices_from as diag_indices_from,
        indices as indices,
        ix_ as ix_,
        ravel_multi_index as ravel_multi_index,
        tri as tri,
        tril_indices as tril_indices,
        tril_indices_from as tril_indices_from,
        triu_indices as triu_indices,
        triu_indices_from as triu_indices_from,
        unravel_index as unravel_index,
    )
    from gradtape.ops.arrays.integers import (
        bitwise_count as bitwise_count,
        bitwise_left_shift as bitwise_left_shift,
        bitwise_right_shift as bitwise_right_shift,
        gcd as gcd,
        lcm as lcm,
        left_shift as left_shift,
        right_shift as right_shift,
    )
    from gradtape.ops.arrays.interpolation import interp as interp
    from gradtape.ops.arrays.logcumsumexp import logcumsumexp as logcumsumexp
    from gradtape.ops.arrays.median import median as median, nanmedian as nanmedian
    from gradtape.ops.arrays.nan import (
        nancumprod as nancumprod,
        nancumsum as nancumsum,
        nanmean as nanmean,
        nanprod as nanprod,
        nanstd as nanstd,
        nansum as nansum,
        nanvar as nanvar,
    )
    from gradtape.ops.arrays.nan_extremes import (
        nanargmax as nanargmax,
        nanargmin as nanargmin,
        nanmax as nanmax,
        nanmin as nanmin,
    )
    from gradtape.ops.arrays.pieces import (
        append as append,
        block as block,
        delete as delete,
        diagflat as diagflat,
        dsplit as dsplit,
        hsplit as hsplit,
        insert as insert,
        resize as resize,
        rollaxis as rollaxis,
        trim_zeros as trim_zeros,
        unstack as unstack,
        vsplit as vsplit,
    )
    from gradtape.ops.arrays.polynomials import (
        poly as poly,
        polyadd as polyadd,
        polyder as polyder,
        polydiv as polydiv,
        polyfit as polyfit,
        polyint as polyint,
        polymul as polymul,
        polysub as polysub,
        polyval as polyval,
        roots as roots,
        vander as vander,
    )
    from gradtape.ops.arrays.products import (
        cross as cross,
        matvec as matvec,
        vecdot as vecdot,
        vecmat as vecmat,
    )
    from gradtape.ops.arrays.quantile import (
        nanpercentile as nanpercentile,
        nanquantile as nanquantile,
        percentile as percentile,
        quantile as quantile,
    )
    from gradtape.ops.arrays.running import (
        cummax as cummax,
        cummin as cummin,
        cumulative_max as cumulative_max,
        cumulative_min as cumulative_min,
        cumulative_prod as cumulative_prod,
        cumulative_sum as cumulative_sum,
    )
    from gradtape.ops.arrays.search import (
        digitize as digitize,
        isin as isin,
        searchsorted as searchsorted,
    )
    from gradtape.ops.arrays.select_k import (
        argpartition as argpartition,
        kthvalue as kthvalue,
        partition as partition,
        topk as topk,
    )
    from gradtape.ops.arrays.sets import (
        intersect1d as intersect1d,
        setdiff1d as setdiff1d,
        setxor1d as setxor1d,
        union1d as union1d,
        unique as unique,
        unique_all as unique_all,
        unique_counts as unique_counts,
        unique_inverse as unique_inverse,
        unique_values as unique_values,
    )
    from gradtape.ops.arrays.sort import (
        argsort as argsort,
        lexsort as lexsort,
        sort as sort,
        sort_complex as sort_complex,
    )
    from gradtape.ops.arrays.spaced import geomspace as geomspace, logspace as logspace
    from gradtape.ops.arrays.tapers import (
        bartlett as bartlett,
        blackman as blackman,
        hamming as hamming,
        hanning as hanning,
        i0 as i0,
        kaiser as kaiser,
    )
    from gradtape.ops.arrays.weights import average as average
    from gradtape.ops.arrays.windows import (
        convolve as convolve,
        correlate as correlate,
        sliding_window_view as sliding_window_view,
    )
    from gradtape.ops.arrays.writes import (
        fill_diagonal as fill_diagonal,
        place as place,
        put as put,
        put_along_axis as put_along_axis,
        putmask as putmask,
    )
