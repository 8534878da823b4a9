"""ceviche, which solves Maxwell's equations: gradients of fields for the material they cross."""

import autograd.numpy as np
import ceviche
import numpy
import pytest
from ceviche import fdfd_ez, fdfd_hz, jacobian

SHAPE = (24, 20)
PML = [5, 5]
STEP = 5e-8
OMEGA = 2 * numpy.pi * 2e14


def source(at=8):
    field = numpy.zeros(SHAPE)
    field[at, 8:12] = 1.0
    return field


def material(parameter):
    """A block of glass in the middle, of the given permittivity."""
    block = numpy.zeros(SHAPE)
    block[11:15, 6:14] = 1.0
    return 1.0 + parameter * block


def energy(kind):
    solver = {"ez": fdfd_ez, "hz": fdfd_hz}[kind]

    def of(parameter):
        fields = solver(OMEGA, STEP, material(parameter), PML).solve(source())
        return np.sum(np.square(np.abs(fields[2][16:18, 6:14])))

    return of


@pytest.mark.parametrize("kind", ["ez", "hz"])
@pytest.mark.parametrize("mode", ["reverse", "forward"])
def test_gradient_for_one_parameter(kind, mode, found):
    f = energy(kind)
    at = numpy.array([1.5])

    def of(x):
        return f(x[0])

    slope = jacobian(of, mode=mode)(at)
    expected = (of(at + 1e-4) - of(at - 1e-4)) / 2e-4
    numpy.testing.assert_allclose(numpy.ravel(slope), expected, rtol=1e-5)
    found("slope", slope)


@pytest.mark.parametrize("kind", ["ez", "hz"])
def test_gradient_for_every_cell(kind, rng_direction, found):
    solver = {"ez": fdfd_ez, "hz": fdfd_hz}[kind]

    def intensity(eps):
        fields = solver(OMEGA, STEP, eps.reshape(SHAPE), PML).solve(source())
        return np.abs(fields[2][17, 10]) ** 2

    at = material(2.0).ravel()
    slopes = numpy.ravel(jacobian(intensity, mode="reverse")(at))
    ahead = intensity(at + 1e-5 * rng_direction) - intensity(at - 1e-5 * rng_direction)
    numpy.testing.assert_allclose(slopes @ rng_direction, ahead / 2e-5, rtol=1e-4)
    found("slopes", slopes)


def test_gradient_for_the_source(found):
    solver = fdfd_ez(OMEGA, STEP, material(3.0), PML)

    def intensity(strength):
        return np.abs(solver.solve(strength[0] * source())[2][17, 10]) ** 2

    slope = numpy.ravel(jacobian(intensity, mode="reverse")(numpy.array([1.3])))
    value = intensity(numpy.array([1.3]))
    numpy.testing.assert_allclose(slope, 2 * value / 1.3, rtol=1e-9)
    found("slope", slope)


def test_gradient_through_time_steps(found):
    def energy_of(parameter):
        eps = np.reshape(material(parameter[0]), (*SHAPE, 1))
        solver = ceviche.fdtd(eps, dL=STEP, npml=[5, 5, 0])
        total = 0.0
        for step in range(30):
            pulse = numpy.exp(-(((step - 10.0) / 4.0) ** 2))
            fields = solver.forward(Jz=pulse * source().reshape(*SHAPE, 1))
            total = total + np.sum(fields["Ez"][16:18, 6:14] ** 2)
        return total

    at = numpy.array([1.5])
    slope = numpy.ravel(jacobian(energy_of, mode="reverse")(at))
    expected = (energy_of(at + 1e-4) - energy_of(at - 1e-4)) / 2e-4
    numpy.testing.assert_allclose(slope, expected, rtol=1e-5)
    found("slope", slope)


def test_inverse_design_by_adam(found):
    """A few steps of its optimizer focus more light on a spot."""
    from ceviche.optimizers import adam_optimize

    def intensity(rho):
        eps = 1.0 + 4.0 * np.reshape(rho, SHAPE) * (material(1.0) - 1.0)
        return np.abs(fdfd_ez(OMEGA, STEP, eps, PML).solve(source())[2][17, 10]) ** 2

    at = numpy.full(SHAPE, 0.5).ravel()
    _, values = adam_optimize(
        intensity,
        at,
        jacobian(intensity, mode="reverse"),
        Nsteps=5,
        step_size=0.05,
        bounds=(0, 1),
        direction="max",
    )
    assert values[-1] > values[0]
    found("objective", values)


@pytest.fixture
def rng_direction():
    return numpy.random.default_rng(0).normal(size=SHAPE).ravel()
