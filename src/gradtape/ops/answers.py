"""Which function of gradtape answers for one of NumPy's or SciPy's, and where it is defined.

`np.fft.fft(t)` asks the tensor what to do, with `np.fft.fft` itself. The table says that the answer
is `fft` in the module `gradtape.ops.fft.transforms`, so only this module is loaded. It holds names
and not functions: nobody has to import SciPy, and names that another version of NumPy lacks do no
harm.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import Any

from gradtape.core.lazy import found_at
from gradtape.core.needed_ops import needed
from gradtape.ops import arrays

# The module a function is known by, then the modules of `gradtape.ops` that answer, each with its
# functions: `theirs=ours`, or one name if it is the same. Functions that are found at `gradtape`
# answer for those of `numpy` that have their names without being listed.
_ANSWERS: dict[str, dict[str, str]] = {
    "numpy": {
        "arrays.described": (
            "arange array array2string array_repr array_str asanyarray=as_array asarray "
            "ascontiguousarray=as_array asfortranarray=as_array common_type einsum_path empty eye "
            "frombuffer fromfile fromfunction fromiter fromstring full genfromtxt identity "
            "loadtxt may_share_memory min_scalar_type ones require=as_array shares_memory zeros"
        ),
        "arrays.refused": (
            "busday_count busday_offset datetime_as_string is_busday isnat packbits save savetxt "
            "savez savez_compressed unpackbits"
        ),
        "creation": "copyto",
        "special.bessel_fixed": "i0",
    },
    "numpy.linalg": {
        "contract": "tensordot",
        "linalg.cholesky": "cholesky",
        "linalg.condition": "cond matrix_rank",
        "linalg.determinant": "det slogdet",
        "linalg.eig": "eig eigvals",
        "linalg.eigh": "eigh eigvalsh",
        "linalg.lstsq": "lstsq pinv",
        "linalg.powers": "matrix_power multi_dot",
        "linalg.products": "cross diagonal outer trace vecdot",
        "linalg.qr": "qr",
        "linalg.solve": "inv solve",
        "linalg.svd": "svd svdvals",
        "linalg.tensors": "tensorinv tensorsolve",
        "matmul": "matmul",
        "norm": "matrix_norm norm vector_norm",
        "shape": "matrix_transpose",
    },
    "numpy.fft": {
        "fft.frequencies": "fftshift ifftshift",
        "fft.transforms": (
            "fft fft2 fftn hfft ifft ifft2 ifftn ihfft irfft irfft2 irfftn rfft rfft2 rfftn"
        ),
    },
    "numpy.lib.scimath": {
        "arrays.emath": "arccos arcsin arctanh log log10 log2 logn power sqrt",
    },
    "numpy.lib.stride_tricks": {
        "arrays.windows": "sliding_window_view",
    },
    "scipy.special": {
        "activation": "expit=sigmoid log_expit=log_sigmoid",
        "erf": "erf erfc erfinv ndtr",
        "exponential": "cbrt exp10 exp2 expm1 log1p",
        "special.bessel": "hankel1 hankel1e hankel2 hankel2e iv ive jv jve kn kv kve yn yv yve",
        "special.bessel_fixed": "i0 i0e i1 i1e j0 j1 k0 k0e k1 k1e y0 y1",
        "special.carlson": "elliprc elliprd elliprf elliprg elliprj",
        "special.distributions": "bdtr bdtrc bdtri fdtr fdtrc fdtri nbdtr nbdtrc nbdtri",
        "special.elementary": (
            "boxcox boxcox1p cosdg cosm1 cotdg exprel inv_boxcox inv_boxcox1p logit powm1 radian "
            "sindg tandg"
        ),
        "special.elliptic": "agm ellipe ellipeinc ellipj ellipk ellipkinc ellipkm1",
        "special.entropy": "entr kl_div rel_entr xlog1py xlogy",
        "special.faddeeva": "voigt_profile wofz",
        "special.gamma": (
            "beta betaln binom gamma gammaln=lgamma gammasgn loggamma poch psi=digamma rgamma zeta"
        ),
        "special.hypergeometric": (
            "hyp0f1 hyp1f1 hyp2f1 hyperu lambertw log_wright_bessel modstruve struve "
            "wright_bessel wrightomega"
        ),
        "special.incomplete_beta": "betainc betaincc betainccinv betaincinv",
        "special.incomplete_gamma": (
            "chdtr chdtrc chdtri gammainc gammaincc gammainccinv gammaincinv gdtr gdtrc gdtrix "
            "pdtr pdtrc pdtri"
        ),
        "special.integrals": "exp1 expi expn fresnel shichi sici spence",
        "special.kelvin": "bei beip ber berp kei keip kelvin ker kerp",
        "special.losses": "huber pseudo_huber",
        "special.normal": (
            "dawsn erfcinv erfcx erfi log_ndtr ndtri ndtri_exp nrdtrimn nrdtrisd owens_t"
        ),
        "special.polynomials": (
            "eval_chebyc eval_chebys eval_chebyt eval_chebyu eval_gegenbauer eval_genlaguerre "
            "eval_hermite eval_hermitenorm eval_jacobi eval_laguerre eval_legendre eval_sh_chebyt "
            "eval_sh_chebyu eval_sh_jacobi eval_sh_legendre"
        ),
        "special.spherical": "airy airye",
        "special.student": "stdtr stdtrit",
    },
    "scipy.special._ufuncs": {
        "special.gamma": "_riemann_zeta=zeta _zeta=zeta",
        "special.hypergeometric": "_lambertw=lambertw",
    },
}

# Functions of files share no more than their names with NumPy's: `gt.load` reads another format.
_FILES = "gradtape.io."


def _places() -> Iterator[tuple[Any, str]]:
    """Each function that is answered for, of the modules that are loaded, with `"module:name"`."""
    # Not by attribute: NumPy warns of some names that it is going to drop.
    numpy = vars(sys.modules["numpy"])
    for name in arrays.NAMES:
        yield numpy.get(name), arrays.place_of(name)
    for name, place in needed.public_places().items():
        if not place.startswith(_FILES):
            yield numpy.get(name), place
    for space, modules in _ANSWERS.items():
        known = vars(sys.modules[space]) if space in sys.modules else {}
        for module, names in modules.items():
            for pair in names.split():
                theirs, _, ours = pair.partition("=")
                yield known.get(theirs), f"gradtape.ops.{module}:{ours or theirs}"


def places() -> dict[Any, str]:
    """The place of each function's answer, `"module:name"`, for modules that are loaded."""
    # Later entries win: the table overrides functions that only share a name.
    found = dict(_places())
    found.pop(None, None)
    return found


def answer(original: Any) -> Callable[..., Any] | None:
    """The function that answers for one of NumPy or SciPy, if there is one.

    >>> gt.ops.answers.answer(np.tanh) is gt.tanh
    True
    """
    place = places().get(original)
    return None if place is None else found_at(place)
