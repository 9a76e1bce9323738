"""The classes of the page satisfy their identities."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy.spatial.transform import Rotation

import rigidjax as rj


def check_1(names, printed):
    for check in (check_joint, check_frame, check_rotation, check_sensor_and_force):
        check(names)


def check_joint(names):
    ends = names["ends"]
    np.testing.assert_allclose(ends - ends[0], 0, atol=1e-7)
    # The point stays in the plane, while the ball above it falls over.
    run = names["runs"]["Relative"]
    assert float(run.position_drift[-1]) < 1e-12
    assert abs(ends[0][0]) > 0.05


def check_frame(names):
    """Its point is the origin of a frame that it names."""
    old, state = names["system"], names["state"]
    joint = names["PointInPlane"]("ground", "foot", None, old.joints[0].normal)
    foot = rj.Frame("foot", "ball", (0.0, 0.0, -0.3))
    new = rj.System(old.bodies, [joint], old.forces, foot)
    first, second = (rj.NullSpace(one) for one in (old, new))
    y = first.encode(state)
    np.testing.assert_allclose(second.vector_field(0.0, y), first.vector_field(0.0, y), atol=1e-14)


def check_rotation(names):
    rotation = names["ModifiedRodriguesParameters"]()
    a = jnp.array([0.3, -0.5, 0.2])
    axis = np.asarray(a) / np.linalg.norm(a)
    R = Rotation.from_rotvec(4 * np.arctan(np.linalg.norm(a)) * axis).as_matrix()
    np.testing.assert_allclose(rotation.to_matrix(a), R, atol=1e-14)
    omega = jnp.array([1.0, 2.0, -0.5])
    for rates in ("body", "space"):
        rate = rotation.rate(a, omega, rates)
        R_dot = np.asarray(jax.jvp(rotation.to_matrix, (a,), (rate,))[1])
        spin = R.T @ R_dot if rates == "body" else R_dot @ R.T
        np.testing.assert_allclose([spin[2, 1], spin[0, 2], spin[1, 0]], omega, atol=1e-13)
        np.testing.assert_allclose(rotation.angular_velocity(a, rate, rates), omega, atol=1e-13)
    ends = [names[k].states.orientation[-1, 0] for k in ("by_quaternion", "by_rodrigues")]
    assert abs(abs(float(ends[0] @ ends[1])) - 1) < 1e-12


def check_sensor_and_force(names):
    model, run = names["model"], names["runs"]["NullSpace"]
    np.testing.assert_allclose(names["fit"].values, -0.05, atol=1e-8)

    def acceleration_in_plane(coefficient):
        windy = eqx.tree_at(lambda m: m.system.forces[1].coefficient, model, coefficient)
        return windy.vector_field(0.0, run.ys[0])[-5:-3]

    # Along the plane: a push at the centre moves the point below it too.
    assert float(jnp.linalg.norm(jax.jacfwd(acceleration_in_plane)(0.2))) > 0.1
