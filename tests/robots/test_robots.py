"""Published robots against Pinocchio: three arms, and a humanoid on a free base.

Their masses and joints and all references are in `data`, written by `tools/exact/robots.py`.
"""

import functools
import pathlib

import equinox as eqx
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import rigidjax as rj

ROBOTS = ("panda", "ur5", "xarm7", "g1")
KINDS = {"revolute": rj.Revolute, "prismatic": rj.Prismatic}


@functools.cache
def robot(name):
    with np.load(pathlib.Path(__file__).parent / "data" / f"{name}.npz") as file:
        return dict(file)


def system_of(data):
    """The robot, its joints at zero in the reference configuration."""
    names = [str(name) for name in data["names"]]
    p = Rotation.from_matrix(data["rotations"]).as_quat(scalar_first=True)
    bodies, joints = [], []
    rotors = data["armature"][-len(names) :]
    for i, kind in enumerate(data["kinds"]):
        x = data["positions"][i]
        bodies.append(rj.Body(names[i], data["masses"][i], data["inertias"][i], x, p[i]))
        if kind == "free":
            joints.append(rj.Free(names[i]))
            continue
        parent = data["parents"][i]
        pair = ("ground" if parent < 0 else names[parent], names[i])
        at = {"point": data["points"][i], "axis": data["axes"][i]}
        joints.append(KINDS[kind](*pair, **at, armature=rotors[i]))
    axes = Rotation.from_matrix(data["frame_axes"]).as_quat(scalar_first=True)
    tool = rj.Frame("tool", str(data["frame_body"]), data["frame_point"], axes)
    return rj.System(bodies, joints, rj.Gravity(data["gravity"]), tool)


def compile_description(model, data):
    """Return a compiled function of joint coordinates and rates for all compared quantities."""
    start = rj.Relative(model.system)

    @eqx.filter_jit
    def function(model, start, q, rates, rates_dot):
        t, y = jnp.zeros(()), jnp.concatenate([q, rates])
        if isinstance(model, rj.NullSpace):
            y = model.pack(start.decode(t, y))
        linear, angular = model.centroidal_momentum(t, y)
        poses = model.forward_kinematics(t, y)
        x, R = poses.pop("tool")
        J = model.jacobian(t, y, "tool", axes="space")
        return {
            "mass_matrix": model.mass_matrix(t, y),
            "bias_forces": model.bias_forces(t, y),
            "inverse_dynamics": model.inverse_dynamics(t, y, rates_dot),
            "accelerations": model.layout.velocities(model.vector_field(t, y)),
            "jacobian": J,
            "jacobian_rate": model.jacobian_rate(t, y, "tool", axes="space"),
            "frame_position": x,
            "frame_rotation": R,
            "body_positions": jnp.stack([x for x, _ in poses.values()]),
            "body_rotations": jnp.stack([R for _, R in poses.values()]),
            "centre_of_mass": model.centre_of_mass(t, y),
            "linear_momentum": linear,
            "angular_momentum": angular,
            "kinetic_energy": model.kinetic_energy(t, y),
            "potential_energy": model.potential_energy(t, y),
        }

    return lambda q, rates, rates_dot: function(model, start, q, rates, rates_dot)


@pytest.mark.exhaustive(but=("Relative-ur5",))
@pytest.mark.parametrize("name", ROBOTS)
@pytest.mark.parametrize("formulation", [rj.Relative, rj.NullSpace])
def test_robots_against_pinocchio(formulation, name):
    data = robot(name)
    function = compile_description(formulation(system_of(data)), data)
    for k, q in enumerate(data["coordinates"]):
        found = function(q, data["rates"][k], data["rates_dot"][k])
        errors = {
            key: np.abs(value - data[key][k]).max() / np.abs(data[key][k]).max()
            for key, value in found.items()
        }
        assert max(errors.values()) < 1e-12, errors
