"""PennyLane, whose default interface is autograd: derivatives of circuits and their optimizers."""

import numpy
import pennylane as qml
import pytest
from pennylane import numpy as np

WEIGHTS = numpy.array([[0.1, -0.4, 0.7], [1.1, 0.3, -0.2]])


def circuit(method, **options):
    device = qml.device("default.qubit", wires=3)

    @qml.qnode(device, diff_method=method, interface="autograd", **options)
    def f(weights, x):
        qml.AngleEmbedding([x, 0.2, 0.5], wires=range(3))
        for layer in range(2):
            for wire in range(3):
                qml.RY(weights[layer, wire], wires=wire)
            qml.CNOT(wires=[0, 1])
            qml.CRZ(0.3, wires=[1, 2])
        return qml.expval(qml.PauliZ(0) @ qml.PauliX(2))

    return f


def weights():
    return np.array(WEIGHTS, requires_grad=True)


def differences(f, at, step=1e-5):
    slopes = numpy.zeros(at.shape)
    for place in numpy.ndindex(*at.shape):
        shift = numpy.zeros(at.shape)
        shift[place] = step
        slopes[place] = (f(at + shift) - f(at - shift)) / (2 * step)
    return slopes


@pytest.mark.parametrize("method", ["backprop", "parameter-shift", "adjoint", "finite-diff"])
def test_gradient(method, found):
    f = circuit(method)
    slope = qml.grad(f, argnums=0)(weights(), 0.3)
    expected = differences(lambda w: circuit("backprop")(w, 0.3), WEIGHTS)
    numpy.testing.assert_allclose(slope, expected, atol=1e-6)
    found("slope", slope)


@pytest.mark.parametrize("method", ["backprop", "parameter-shift"])
def test_gradient_of_all_trainable_arguments(method, found):
    f = circuit(method)
    slope, other = qml.grad(f)(weights(), np.array(0.3, requires_grad=True))
    assert slope.shape == WEIGHTS.shape
    assert numpy.shape(other) == ()
    found("slope", slope)
    found("other", other)


@pytest.mark.parametrize("method", ["backprop", "parameter-shift"])
def test_hessian(method, found):
    f = circuit(method, max_diff=2)
    bend = qml.jacobian(qml.grad(lambda w: f(w, 0.3)))(weights())
    numpy.testing.assert_allclose(
        numpy.reshape(bend, (6, 6)), numpy.reshape(bend, (6, 6)).T, atol=1e-9
    )
    found("hessian", bend)


def test_jacobian_of_probabilities(found):
    device = qml.device("default.qubit", wires=2)

    @qml.qnode(device, diff_method="backprop")
    def f(angles):
        qml.RX(angles[0], wires=0)
        qml.RY(angles[1], wires=1)
        qml.CNOT(wires=[0, 1])
        return qml.probs(wires=[0, 1])

    rows = qml.jacobian(f)(np.array([0.4, 0.9], requires_grad=True))
    assert rows.shape == (4, 2)
    numpy.testing.assert_allclose(numpy.sum(rows, axis=0), 0.0, atol=1e-12)
    found("jacobian", rows)


def test_cost_with_classical_parts(found):
    f = circuit("parameter-shift")

    def cost(w, scale):
        return np.sin(scale) * f(w**2, 0.1) ** 2 + np.sum(np.tanh(w))

    slope, other = qml.grad(cost, argnums=[0, 1])(weights(), np.array(0.7, requires_grad=True))
    found("slope", slope)
    found("other", other)


@pytest.mark.parametrize("name", ["GradientDescentOptimizer", "AdamOptimizer", "MomentumOptimizer"])
def test_optimizer(name, found):
    f = circuit("backprop")
    optimizer = getattr(qml, name)(0.1)
    at, costs = weights(), []
    for _ in range(10):
        at, cost = optimizer.step_and_cost(lambda w: f(w, 0.3), at)
        costs.append(float(cost))
    assert costs[-1] < costs[0]
    found("costs", costs)


def test_natural_gradient(found):
    f = circuit("parameter-shift")
    optimizer = qml.QNGOptimizer(0.05)
    at = weights()
    for _ in range(3):
        at = optimizer.step(f, at, 0.3)[0]
    found("weights", at)


def test_energy_of_a_molecule(found):
    """A variational eigensolver: the energy of H2 as a function of an angle."""
    h = qml.Hamiltonian(
        [-0.2427, 0.1778, 0.1706, 0.1223],
        [
            qml.PauliZ(2) @ qml.Identity(3),
            qml.PauliZ(0),
            qml.PauliZ(0) @ qml.PauliZ(1),
            qml.PauliY(0) @ qml.PauliX(1) @ qml.PauliX(2) @ qml.PauliY(3),
        ],
    )
    device = qml.device("default.qubit", wires=4)

    @qml.qnode(device, diff_method="backprop")
    def energy(theta):
        qml.BasisState(numpy.array([1, 1, 0, 0]), wires=range(4))
        qml.DoubleExcitation(theta, wires=[0, 1, 2, 3])
        return qml.expval(h)

    optimizer = qml.GradientDescentOptimizer(0.4)
    theta = np.array(0.1, requires_grad=True)
    for _ in range(10):
        theta, value = optimizer.step_and_cost(energy, theta)
    found("energy", value)
