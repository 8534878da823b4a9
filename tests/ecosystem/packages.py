"""The packages that `make test-ecosystem` runs, and which of their tests."""

from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Package:
    """A package from PyPI, and what is run of it.

    `tests` are paths in `home`: the unpacked source distribution ("sdist"), the installed package
    ("installed"), or this folder ("here", if its release has no tests). `peer` is what gradtape
    stands beside: autograd, or differences where the package knows NumPy only.
    """

    name: str
    what: str
    tests: tuple[str, ...]
    home: str = "here"
    module: str = ""
    options: tuple[str, ...] = ()
    environment: dict[str, str] = field(default_factory=dict)
    peer: str = "autograd"

    @property
    def id(self) -> str:
        """A name for files; a package can stand in the table twice."""
        return f"{self.name}-{self.tests[0].replace('/', '-').removesuffix('.py')}"


# Without what draws thousands of samples, or fits each model again to look at an index or a pickle.
_LIFELINES = (
    "(TestBaseFitter or TestParametricUnivariateFitters or TestPiecewiseExponential or "
    "TestLogNormal or TestLogLogistic or TestWeibull or TestGeneralizedGamma or TestExponential or "
    "TestParametricRegression or TestCustomRegression or TestRegressionFitters or TestAFT or "
    "TestCoxPHFitter_Semi or TestCoxPHFitterPieces or TestMixtureCure) and "
    "not (inference or simulated or data_generating or predict or prediction or serialization)"
)

PACKAGES = [
    Package(
        "autograd-gamma",
        "each function: values, gradients, second derivatives, a fit",
        ("autograd_gamma_functions.py",),
    ),
    Package(
        "pymanopt",
        "its own tests and examples, without those of other backends",
        ("tests",),
        home="sdist",
        options=(
            "--noconftest",
            *(
                f"--ignore=tests/backends/test_{name}.py"
                for name in ("pytorch", "jax", "tensorflow")
            ),
            "--ignore=tests/test_problem.py",
            "-k=not pytorch and not tensorflow and not jax",
        ),
        environment={
            "ECOSYSTEM_IMPORT_FIRST": "pymanopt",
            "ECOSYSTEM_STUBS": "tensorflow,torch,jax,jax.numpy",
        },
    ),
    Package(
        "lifelines",
        "its own tests of parametric and Cox models, without the slowest",
        ("lifelines/tests/test_estimation.py",),
        home="sdist",
        options=(f"-k={_LIFELINES}",),
    ),
    Package(
        "lifelines",
        "fits of AFT, Cox, spline, cure and custom models, numbers compared",
        ("lifelines_fits.py",),
    ),
    Package("reliability", "its own tests", ("tests",), home="sdist"),
    Package(
        "surpyval",
        "its own tests of what is differentiated",
        tuple(
            f"tests/{path}.py"
            for path in (
                "test_autograd_gamma_compat_shapes",
                "utils/test_autograd_where",
                "utils/test_incomplete_beta",
                "utils/test_normal",
                "univariate/regression/test_proportional_hazards",
                "univariate/regression/test_accelerated_life",
                "univariate/regression/test_exact_information",
                "univariate/parametric/test_censored_hessian",
                "univariate/parametric/test_custom_distribution",
                "univariate/parametric/test_distributions_math",
                "univariate/parametric/test_confidence_bounds",
                "recurrent/test_cox_lewis",
                "multivariate/test_archimedean",
            )
        ),
        home="installed",
        module="surpyval",
    ),
    Package("autoptim", "its own tests", ("test_private.py",), home="installed", module="autoptim"),
    Package(
        "ceviche",
        "Maxwell's equations: gradients of fields and powers",
        ("ceviche_fields.py",),
    ),
    Package(
        "geomstats",
        "metrics, geodesics and means on manifolds with its autograd backend",
        ("geomstats_manifolds.py",),
        environment={"GEOMSTATS_BACKEND": "autograd"},
    ),
    Package(
        "PennyLane",
        "gradients, Hessians, optimizers of circuits",
        ("pennylane_circuits.py",),
    ),
    *(
        Package(
            name,
            what,
            ("plain_numpy.py",),
            options=("-k", f"{name}."),
            peer="differences",
        )
        for name, what in (
            ("modern_robotics", "kinematics and dynamics of a robot arm"),
            ("pymap3d", "conversions between coordinates of the Earth"),
            ("pytransform3d", "rotations, transformations, screws"),
            ("tensorly", "tensor products, tensors from their factors"),
            ("transforms3d", "rotations in every form, affine maps"),
        )
    ),
]
