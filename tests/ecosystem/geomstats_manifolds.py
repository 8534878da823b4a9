"""geomstats with its autograd backend: metrics, geodesics and means that it differentiates."""

import geomstats.backend as gs
import numpy
import pytest
from geomstats.geometry.euclidean import Euclidean
from geomstats.geometry.hyperboloid import Hyperboloid
from geomstats.geometry.hypersphere import Hypersphere
from geomstats.geometry.spd_matrices import SPDMatrices
from geomstats.geometry.special_orthogonal import SpecialOrthogonal
from geomstats.learning.frechet_mean import FrechetMean


def test_backend():
    assert gs.__name__.endswith("autograd")
    assert gs.has_autodiff()


def points(space, count=6):
    numpy.random.seed(0)  # noqa: NPY002
    return space.random_point(count)


SPACES = {
    "sphere": lambda: Hypersphere(3),
    "hyperboloid": lambda: Hyperboloid(2),
    "SPD": lambda: SPDMatrices(3),
    "SO(3)": lambda: SpecialOrthogonal(3),
}


@pytest.mark.parametrize("name", ["sphere", "hyperboloid", "SPD"])
def test_gradient_of_squared_distance(name, found):
    """It is minus twice the logarithm, by the metric of the space."""
    space = SPACES[name]()
    base, other = points(space, 2)

    def cost(point):
        return gs.sum(space.metric.squared_dist(point, other))

    value, slope = gs.autodiff.value_and_grad(cost)(base)
    step = 1e-5 * numpy.ones(base.shape)
    step = space.to_tangent(step, base) if name != "SPD" else step
    ahead = (cost(base + step) - cost(base - step)) / 2
    numpy.testing.assert_allclose(numpy.sum(slope * step), ahead, rtol=1e-4, atol=1e-12)
    found("value", value)
    found("slope", slope)


@pytest.mark.parametrize("name", list(SPACES))
def test_exp_and_log(name, found):
    space = SPACES[name]()
    base, other = points(space, 2)
    vector = space.metric.log(other, base)
    numpy.testing.assert_allclose(space.metric.exp(vector, base), other, atol=1e-6)
    found("vector", vector)


@pytest.mark.parametrize("name", ["sphere", "SPD"])
def test_mean(name, found):
    space = SPACES[name]()
    mean = FrechetMean(space)
    mean.fit(points(space))
    found("mean", mean.estimate_)


def test_jacobian_and_hessian(found):
    def f(x):
        return gs.sum(gs.exp(x[..., :2]) * gs.sin(x[..., 1:]), axis=-1)

    at = gs.array([0.3, -0.2, 0.9])
    found("jacobian", gs.autodiff.jacobian(f)(at))
    found("hessian", gs.autodiff.hessian(f)(at))
    many = gs.array([[0.3, -0.2, 0.9], [1.0, 0.5, 0.1]])
    found("jacobians", gs.autodiff.jacobian_vec(f)(many))
    found("hessians", gs.autodiff.hessian_vec(f)(many))


def test_metric_of_an_immersion(found):
    """The metric that a sphere gets from its angles, Christoffel symbols included."""
    from geomstats.geometry.pullback_metric import PullbackMetric

    sphere = Hypersphere(2, intrinsic=True, equip=False)

    class Angles(type(sphere)):
        def __init__(self):
            super().__init__(2, intrinsic=True, equip=False)
            self.embedding_space = Euclidean(3)

        def immersion(self, x):
            theta, phi = x[..., 0], x[..., 1]
            return gs.stack(
                [gs.cos(phi) * gs.sin(theta), gs.sin(phi) * gs.sin(theta), gs.cos(theta)], axis=-1
            )

        def tangent_immersion(self, vector, base):
            rows = gs.autodiff.jacobian_vec(self.immersion)(base)
            return gs.einsum("...ij,...j->...i", rows, vector)

        def jacobian_immersion(self, base):
            return gs.autodiff.jacobian_vec(self.immersion)(base)

        def hessian_immersion(self, base):
            return gs.autodiff.hessian_vec(self.immersion, func_out_ndim=1)(base)

    space = Angles()
    space.equip_with_metric(PullbackMetric)
    at = gs.array([0.7, 0.4])
    matrix = space.metric.metric_matrix(at)
    numpy.testing.assert_allclose(matrix, numpy.diag([1.0, numpy.sin(0.7) ** 2]), atol=1e-12)
    symbols = space.metric.christoffels(at)
    numpy.testing.assert_allclose(symbols[0, 1, 1], -numpy.sin(0.7) * numpy.cos(0.7), atol=1e-6)
    found("matrix", matrix)
    found("symbols", symbols)


def test_information_metric(found):
    """Fisher's metric of normal distributions, by automatic differentiation and integration."""
    from geomstats.information_geometry.fisher_rao_metric import FisherRaoMetric
    from geomstats.information_geometry.normal import UnivariateNormalDistributions

    space = UnivariateNormalDistributions(equip=False)
    metric = FisherRaoMetric(space=space, support=(-8, 8))
    matrix = metric.metric_matrix(gs.array([0.2, 1.1]))
    numpy.testing.assert_allclose(matrix, numpy.diag([1, 2]) / 1.1**2, rtol=1e-3, atol=1e-4)
    found("matrix", matrix)


@pytest.mark.parametrize("name", ["Gamma", "Beta", "Dirichlet"])
def test_distributions(name, found):
    from geomstats.information_geometry.beta import BetaDistributions
    from geomstats.information_geometry.dirichlet import DirichletDistributions
    from geomstats.information_geometry.gamma import GammaDistributions

    space = {"Gamma": GammaDistributions, "Beta": BetaDistributions}.get(
        name, lambda: DirichletDistributions(3)
    )()
    numpy.random.seed(1)  # noqa: NPY002
    base = space.random_point()
    found("metric", space.metric.metric_matrix(base))
    found("symbols", space.metric.christoffels(base))


def test_geodesic_by_shooting(found):
    from geomstats.information_geometry.beta import BetaDistributions

    space = BetaDistributions()
    first, last = gs.array([1.0, 2.0]), gs.array([2.5, 1.5])
    vector = space.metric.log(last, first)
    numpy.testing.assert_allclose(space.metric.exp(vector, first), last, atol=1e-2)
    found("vector", vector)
