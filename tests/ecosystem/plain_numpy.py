"""Derivatives of functions of packages that know nothing but NumPy, against differences.

Each is called on tracked numbers, as it is and with `gradtape.numpy` in the place of the package's
`np` (and `math`): the change of an import line. Many work only with that, as they ask NumPy for a
float64 array, or write numbers into a buffer of its. As they are, gradtape has to refuse them.
"""

import importlib
import math
import sys

import numpy as np
import pytest

import gradtape as gt
import gradtape.numpy

AS_IT_IS, ONE_LINE = "as it is", "one line changed"
ANGLES = [0.3, -0.7, 1.1]
QUATERNION = [0.8, 0.1, -0.5, 0.33166247903554]
TWIST = [0.2, -0.4, 0.9, 1.0, 0.5, -0.3]

# An arm of three joints, from the documentation of modern_robotics.
MLIST = np.stack(
    [
        np.array([[1, 0, 0, x], [0, 1, 0, y], [0, 0, 1, z], [0, 0, 0, 1.0]])
        for x, y, z in [(0, 0, 0.089159), (0.28, 0.13585, 0), (0, -0.1197, 0.395), (0, 0, 0.14225)]
    ]
)
MLIST[1, :3, :3] = [[0, 0, 1], [0, 1, 0], [-1, 0, 0]]
GLIST = np.stack(
    [
        np.diag([0.010267, 0.010267, 0.00666, 3.7, 3.7, 3.7]),
        np.diag([0.22689, 0.22689, 0.0151074, 8.393, 8.393, 8.393]),
        np.diag([0.0494433, 0.0494433, 0.004095, 2.275, 2.275, 2.275]),
    ]
)
SLIST = np.array([[1, 0, 1, 0, 1, 0], [0, 1, 0, -0.089, 0, 0], [0, 1, 0, -0.089, 0, 0.425]]).T
HOME = np.array([[-1, 0, 0, 0], [0, 1, 0, 6], [0, 0, -1, 2], [0, 0, 0, 1.0]])
VELOCITY, TORQUE, GRAVITY = np.array([0.1, 0.2, 0.3]), np.array([0.5, 0.6, 0.7]), [0, 0, -9.8]
TIP = np.ones(6)


def chain(*names):
    """A function that applies functions of a module one after another."""

    def made(module):
        def f(x):
            for name in names:
                x = getattr(module, name)(x)
            return x

        return f

    return made


def split(name, *rest):
    """A function of several arguments, as one of an array."""
    return lambda module: lambda x: np_stack(getattr(module, name)(*x, *rest))


def np_stack(outputs):
    """The outputs of a function as one array."""
    return gt.stack(list(outputs)) if isinstance(outputs, tuple) else outputs


# Its module, a name, the function made from the module, and where it is differentiated.
CASES = [
    ("transforms3d.euler", "euler2mat", split("euler2mat", "sxyz"), ANGLES),
    ("transforms3d.euler", "euler2mat rzxz", split("euler2mat", "rzxz"), ANGLES),
    (
        "transforms3d.euler",
        "mat2euler",
        lambda m: lambda x: np_stack(m.mat2euler(m.euler2mat(*x))),
        ANGLES,
    ),
    ("transforms3d.euler", "euler2quat", split("euler2quat"), ANGLES),
    ("transforms3d.quaternions", "quat2mat", chain("quat2mat"), QUATERNION),
    ("transforms3d.quaternions", "qinverse", chain("qinverse"), QUATERNION),
    (
        "transforms3d.quaternions",
        "qmult",
        lambda m: lambda x: m.qmult(x, [0.5, 0.5, -0.5, 0.5]),
        QUATERNION,
    ),
    (
        "transforms3d.quaternions",
        "rotate_vector",
        lambda m: lambda x: m.rotate_vector([1.0, 2.0, 3.0], x),
        QUATERNION,
    ),
    ("transforms3d.quaternions", "qexp", chain("qexp"), QUATERNION),
    (
        "transforms3d.quaternions",
        "axangle2quat",
        lambda m: lambda x: m.axangle2quat(x, 0.6),
        ANGLES,
    ),
    ("transforms3d.axangles", "axangle2mat", lambda m: lambda x: m.axangle2mat(x, 0.6), ANGLES),
    (
        "transforms3d.axangles",
        "axangle2mat angle",
        lambda m: lambda x: m.axangle2mat([0.0, 0.6, 0.8], x[0], True),
        [0.4],
    ),
    (
        "transforms3d.affines",
        "compose",
        lambda m: lambda x: m.compose(x, np.eye(3), [1.0, 2.0, 3.0]),
        ANGLES,
    ),
    (
        "transforms3d.affines",
        "compose zooms",
        lambda m: lambda x: m.compose([1, 2, 3], np.eye(3), x),
        [1.5, 2.0, 3.0],
    ),
    ("transforms3d.taitbryan", "euler2mat", split("euler2mat"), ANGLES),
    ("transforms3d.taitbryan", "euler2quat", split("euler2quat"), ANGLES),
    (
        "transforms3d.zooms",
        "zfdir2mat",
        lambda m: lambda x: m.zfdir2mat(x[0], [0.0, 0.6, 0.8]),
        [1.7],
    ),
    ("transforms3d.reflections", "rfnorm2aff", lambda m: lambda x: m.rfnorm2aff(x), ANGLES),
    (
        "pytransform3d.rotations",
        "active_matrix_from_extrinsic_euler_xyz",
        chain("active_matrix_from_extrinsic_euler_xyz"),
        ANGLES,
    ),
    (
        "pytransform3d.rotations",
        "active_matrix_from_intrinsic_euler_zyx",
        chain("active_matrix_from_intrinsic_euler_zyx"),
        ANGLES,
    ),
    (
        "pytransform3d.rotations",
        "matrix_from_compact_axis_angle",
        chain("matrix_from_compact_axis_angle"),
        ANGLES,
    ),
    (
        "pytransform3d.rotations",
        "matrix_from_quaternion",
        chain("matrix_from_quaternion"),
        QUATERNION,
    ),
    (
        "pytransform3d.rotations",
        "quaternion_from_matrix",
        chain("matrix_from_compact_axis_angle", "quaternion_from_matrix"),
        ANGLES,
    ),
    (
        "pytransform3d.rotations",
        "compact_axis_angle_from_matrix",
        chain("matrix_from_compact_axis_angle", "compact_axis_angle_from_matrix"),
        ANGLES,
    ),
    (
        "pytransform3d.rotations",
        "concatenate_quaternions",
        lambda m: lambda x: m.concatenate_quaternions(x, [0.5, 0.5, -0.5, 0.5]),
        QUATERNION,
    ),
    (
        "pytransform3d.rotations",
        "q_prod_vector",
        lambda m: lambda x: m.q_prod_vector(x, [1.0, 2.0, 3.0]),
        QUATERNION,
    ),
    ("pytransform3d.rotations", "cross_product_matrix", chain("cross_product_matrix"), ANGLES),
    ("pytransform3d.rotations", "left_jacobian_SO3", chain("left_jacobian_SO3"), ANGLES),
    ("pytransform3d.rotations", "mrp_from_quaternion", chain("mrp_from_quaternion"), QUATERNION),
    (
        "pytransform3d.rotations",
        "matrix_slerp",
        lambda m: lambda x: m.matrix_slerp(np.eye(3), m.matrix_from_compact_axis_angle(x), 0.4),
        ANGLES,
    ),
    (
        "pytransform3d.transformations",
        "transform_from_exponential_coordinates",
        chain("transform_from_exponential_coordinates"),
        TWIST,
    ),
    (
        "pytransform3d.transformations",
        "exponential_coordinates_from_transform",
        chain("transform_from_exponential_coordinates", "exponential_coordinates_from_transform"),
        TWIST,
    ),
    (
        "pytransform3d.transformations",
        "transform_from_pq",
        chain("transform_from_pq"),
        [1.0, 2.0, 3.0, *QUATERNION],
    ),
    (
        "pytransform3d.transformations",
        "invert_transform",
        chain("transform_from_exponential_coordinates", "invert_transform"),
        TWIST,
    ),
    (
        "pytransform3d.transformations",
        "adjoint_from_transform",
        chain("transform_from_exponential_coordinates", "adjoint_from_transform"),
        TWIST,
    ),
    (
        "pytransform3d.transformations",
        "dual_quaternion_from_transform",
        chain("transform_from_exponential_coordinates", "dual_quaternion_from_transform"),
        TWIST,
    ),
    (
        "pytransform3d.batch_rotations",
        "active_matrices_from_intrinsic_euler_angles",
        lambda m: lambda x: m.active_matrices_from_intrinsic_euler_angles(0, 1, 2, x),
        [ANGLES, [0.1, 0.2, 0.3]],
    ),
    (
        "pytransform3d.batch_rotations",
        "matrices_from_quaternions",
        lambda m: lambda x: m.matrices_from_quaternions(x),
        [QUATERNION],
    ),
    ("modern_robotics", "MatrixExp3", chain("VecToso3", "MatrixExp3"), ANGLES),
    (
        "modern_robotics",
        "MatrixLog3",
        chain("VecToso3", "MatrixExp3", "MatrixLog3", "so3ToVec"),
        ANGLES,
    ),
    ("modern_robotics", "MatrixExp6", chain("VecTose3", "MatrixExp6"), TWIST),
    (
        "modern_robotics",
        "MatrixLog6",
        chain("VecTose3", "MatrixExp6", "MatrixLog6", "se3ToVec"),
        TWIST,
    ),
    ("modern_robotics", "Adjoint", chain("VecTose3", "MatrixExp6", "Adjoint"), TWIST),
    ("modern_robotics", "FKinSpace", lambda m: lambda x: m.FKinSpace(HOME, SLIST, x), ANGLES),
    ("modern_robotics", "FKinBody", lambda m: lambda x: m.FKinBody(HOME, SLIST, x), ANGLES),
    ("modern_robotics", "JacobianSpace", lambda m: lambda x: m.JacobianSpace(SLIST, x), ANGLES),
    ("modern_robotics", "JacobianBody", lambda m: lambda x: m.JacobianBody(SLIST, x), ANGLES),
    (
        "modern_robotics",
        "InverseDynamics",
        lambda m: (
            lambda x: m.InverseDynamics(x, VELOCITY, VELOCITY, GRAVITY, TIP, MLIST, GLIST, SLIST)
        ),
        ANGLES,
    ),
    (
        "modern_robotics",
        "MassMatrix",
        lambda m: lambda x: m.MassMatrix(x, MLIST, GLIST, SLIST),
        ANGLES,
    ),
    (
        "modern_robotics",
        "GravityForces",
        lambda m: lambda x: m.GravityForces(x, GRAVITY, MLIST, GLIST, SLIST),
        ANGLES,
    ),
    (
        "modern_robotics",
        "ForwardDynamics",
        lambda m: (
            lambda x: m.ForwardDynamics(x, VELOCITY, TORQUE, GRAVITY, TIP, MLIST, GLIST, SLIST)
        ),
        ANGLES,
    ),
    ("pymap3d", "geodetic2ecef", split("geodetic2ecef"), [42.0, -82.0, 200.0]),
    (
        "pymap3d",
        "ecef2geodetic",
        split("ecef2geodetic"),
        [660675.2518247, -4700948.68316, 4245737.66222],
    ),
    ("pymap3d", "geodetic2enu", split("geodetic2enu", 42.0, -82.0, 200.0), [42.1, -82.2, 1000.0]),
    ("pymap3d", "enu2geodetic", split("enu2geodetic", 42.0, -82.0, 200.0), [186.3, 286.8, 939.7]),
    ("pymap3d", "geodetic2aer", split("geodetic2aer", 42.0, -82.0, 200.0), [42.1, -82.2, 1000.0]),
    ("pymap3d", "aer2geodetic", split("aer2geodetic", 42.0, -82.0, 200.0), [33.0, 70.0, 1000.0]),
    ("pymap3d", "enu2aer", split("enu2aer"), [186.3, 286.8, 939.7]),
    ("pymap3d", "ned2ecef", split("ned2ecef", 42.0, -82.0, 200.0), [186.3, 286.8, -939.7]),
    ("pymap3d.haversine", "anglesep", split("anglesep"), [35.0, 23.0, 84.0, 20.0]),
    ("pymap3d.vincenty", "vdist", split("vdist"), [10.0, 20.0, 12.0, 25.0]),
    ("pymap3d.vincenty", "vreckon", split("vreckon"), [10.0, 20.0, 3e5, 38.0]),
    ("pymap3d.lox", "loxodrome_inverse", split("loxodrome_inverse"), [40.0, -80.0, 65.0, -148.0]),
    (
        "tensorly",
        "unfold",
        lambda m: lambda x: m.unfold(x, 1),
        np.arange(1.0, 9.0).reshape(2, 2, 2),
    ),
    (
        "tensorly",
        "cp_to_tensor",
        lambda m: lambda x: m.cp_to_tensor((None, [x, x + 1.0, x**2])),
        np.arange(1.0, 7.0).reshape(3, 2),
    ),
    (
        "tensorly",
        "tucker_to_tensor",
        lambda m: lambda x: m.tucker_to_tensor((x, [np.eye(2), np.ones((3, 2)), np.eye(2)])),
        np.arange(1.0, 9.0).reshape(2, 2, 2),
    ),
    (
        "tensorly",
        "tt_to_tensor",
        lambda m: lambda x: m.tt_to_tensor([x[None], np.ones((2, 3, 2)), np.ones((2, 2, 1))]),
        np.arange(1.0, 5.0).reshape(2, 2),
    ),
    (
        "tensorly.tenalg",
        "khatri_rao",
        lambda m: lambda x: m.khatri_rao([x, x + 1.0]),
        np.arange(1.0, 7.0).reshape(3, 2),
    ),
    (
        "tensorly.tenalg",
        "mode_dot",
        lambda m: lambda x: m.mode_dot(np.arange(8.0).reshape(2, 2, 2), x, 1),
        [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]],
    ),
    (
        "tensorly.tenalg",
        "multi_mode_dot",
        lambda m: lambda x: m.multi_mode_dot(np.arange(8.0).reshape(2, 2, 2), [x, x, x]),
        [[1.0, 2.0], [3.0, 4.0]],
    ),
    (
        "tensorly.tenalg",
        "kronecker",
        lambda m: lambda x: m.kronecker([x, np.eye(2)]),
        [[1.0, 2.0], [3.0, 4.0]],
    ),
    ("tensorly.tenalg", "inner", lambda m: lambda x: m.inner(x, x), [[1.0, 2.0], [3.0, 4.0]]),
]
# What works as it is: these, and all of the packages here.
WORKS_AS_IT_IS = (
    "pymap3d",
    "tensorly",
    "transforms3d.quaternions.quat2mat",
    "transforms3d.quaternions.qmult",
    "pytransform3d.rotations.active_matrix_from_extrinsic_euler_xyz",
    "pytransform3d.rotations.active_matrix_from_intrinsic_euler_zyx",
    "pytransform3d.rotations.cross_product_matrix",
    "modern_robotics.MatrixExp3",
)
# A tensor has no `flat`; a copy of a constant array is NumPy's, and takes no tracked numbers.
REFUSED_EITHER_WAY = (
    "pytransform3d.batch_rotations.active_matrices_from_intrinsic_euler_angles",
    "modern_robotics.JacobianSpace",
    "modern_robotics.JacobianBody",
)
REFUSALS = (gt.errors.GradtapeError, AttributeError)


def differences(f, at, step=1e-6):
    """The Jacobian of a function, by central differences."""
    columns = []
    for n in range(at.size):
        shift = np.zeros(at.size)
        shift[n] = step * max(1.0, abs(at.flat[n]))
        ahead, behind = f(at + shift.reshape(at.shape)), f(at - shift.reshape(at.shape))
        columns.append((np.asarray(ahead, float) - np.asarray(behind, float)) / (2 * shift[n]))
    return np.stack(columns, axis=-1)


def exchange_numpy(monkeypatch, package):
    """Let the modules of a package have gradtape.numpy where they have NumPy."""
    for name, module in list(sys.modules.items()):
        if name == package or name.startswith(f"{package}."):
            for key, value in list(vars(module).items()):
                if value is np or value is math:
                    monkeypatch.setattr(module, key, gradtape.numpy)
                elif getattr(np, key, None) is value and hasattr(gradtape.numpy, key):
                    monkeypatch.setattr(module, key, getattr(gradtape.numpy, key))


def check(f, at, rtol=2e-5):
    """Compare Jacobians of both modes, and the slope of a weighted sum, with differences."""
    expected = differences(f, at)
    outputs = expected.shape[:-1]
    scale = np.max(np.abs(expected))
    near = {"rtol": rtol, "atol": rtol * scale}
    found = np.asarray(gt.jacobian(f)(at)).reshape(expected.shape)
    np.testing.assert_allclose(found, expected, **near)
    direction = np.cos(np.arange(at.size)).reshape(at.shape)
    _, tangent = gt.jvp(f, (at,), (direction,))
    np.testing.assert_allclose(np.asarray(tangent), expected @ direction.ravel(), **near)
    weights = np.sin(1.0 + np.arange(np.prod(outputs, dtype=int))).reshape(outputs)
    slope = gt.grad(lambda x: gt.sum(gt.asarray(f(x)) * weights))(at)
    pulled = np.tensordot(weights, expected, axes=len(outputs)).reshape(at.shape)
    np.testing.assert_allclose(slope, pulled, **near)


@pytest.mark.parametrize("way", [AS_IT_IS, ONE_LINE])
@pytest.mark.parametrize("case", CASES, ids=[f"{home}.{name}" for home, name, _, _ in CASES])
def test_derivatives(case, way, monkeypatch):
    home, name, made, where = case
    f, at = made(importlib.import_module(home)), np.asarray(where, float)
    full = f"{home}.{name}"
    works = not full.startswith(REFUSED_EITHER_WAY)
    if way == ONE_LINE:
        exchange_numpy(monkeypatch, home.partition(".")[0])
    else:
        works = full.startswith(WORKS_AS_IT_IS)
    if works:
        check(f, at)
    else:
        with pytest.raises(REFUSALS) as caught:
            gt.jacobian(f)(at)
        pytest.skip(f"refused: {caught.value}")
