"""Comparison of loaded models with Pinocchio and MuJoCo at random states."""

import dataclasses
import importlib
import os
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array

from ..forces import Gravity
from ..formulations import Relative
from ..joints.replacing import replace_fields
from ..mechanics import System
from ..persistent_jit import persistent_jit
from .exchange import Program, velocity_map
from .model import Model


class Deviations(NamedTuple):
    """Largest relative deviations from another program over random states.

    Each is relative to the largest entry of its quantity in a state. `accelerations` are those of
    `forward_dynamics` under random generalised forces.
    """

    mass_matrix: float
    bias_forces: float
    accelerations: float


def compare(
    model: Model, program: Program, path: str | os.PathLike[str], states: int = 20, seed: int = 0
) -> Deviations:
    """Compare mass matrix, bias forces and forward dynamics with another program.

    Viscous damping is part of both models with MuJoCo and of none with Pinocchio, whose algorithms
    leave it out. Pinocchio, which does not read rotors, is given armatures. Friction and stops of
    joints are removed from both models, and so are couplings and loops: the quantities are those of
    the tree.

    **Arguments:** `model`; `program`, which must be installed; `path` of the file that the model
    was loaded from; `states`, their number; `seed` of the random states.
    **Errors:** `ImportError` if the program is not installed; `ValueError` if its model has other
    numbers of coordinates.
    """
    reference = REFERENCES[program](model, os.fspath(path))
    model = _without_loops(model, is_damped=program == "mujoco")
    rng = np.random.default_rng(seed)
    worst = np.zeros(3)
    for _ in range(states):
        q, v, tau = random_inputs(reference, rng)
        theirs = reference.quantities(q, v, tau)
        arrays = jnp.asarray(q), jnp.asarray(v), jnp.asarray(tau)
        ours = _quantities(model, program, *arrays)
        gaps = [
            np.abs(np.asarray(a) - b).max() / max(np.abs(b).max(), 1e-300)
            for a, b in zip(ours, theirs, strict=True)
        ]
        worst = np.maximum(worst, gaps)
    return Deviations(*worst.tolist())


def random_inputs(reference: Any, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Return coordinates, velocities and generalised forces of another program."""
    q, v = reference.random_state(rng)
    return q, v, rng.standard_normal(len(v))


def _without_loops(model: Model, is_damped: bool) -> Model:
    """Return the model without couplings, joints that close loops, and forces on these.

    Friction and stops of joints, which the other programs have as constraints, are left out too.
    """
    absent = {"friction", "limits", "stop"} | (set() if is_damped else {"damping"})
    system = model.system
    closing = {system.joints[j].name for j in system.topology.loops}
    trees = System(
        system.bodies,
        [
            replace_fields(
                joint, **dict.fromkeys(absent & {field.name for field in dataclasses.fields(joint)})
            )
            for joint in system.joints
            if joint.name not in closing
        ],
        [force for force in system.forces if closing.isdisjoint(force.joint_names())],
        system.frames,
    )
    return replace_fields(model, system=trees)


@persistent_jit
def _quantities(
    model: Model, program: Program, q: Array, v: Array, tau: Array
) -> tuple[Array, Array, Array]:
    """Return mass matrix, bias forces and accelerations in the other program's velocities."""
    state = (model.from_pinocchio if program == "pinocchio" else model.from_mujoco)(q, v)
    trees = Relative(model.system)
    y, t = trees.pack(state), jnp.zeros(())
    of = velocity_map(model, program, state)
    M, h, forces = trees.mass_matrix(t, y), trees.bias_forces(t, y), of.forces_from(tau)
    accelerations = of.accelerations(trees.forward_dynamics(t, y, forces))
    return of.mass_matrix(M), of.bias_forces(h, M), accelerations


class _Pinocchio:
    def __init__(self, model: Model, path: str):
        self.pin: Any = importlib.import_module("pinocchio")
        names = model.names
        # The joint of a root that floats is not in the file, and its parent no link of the file.
        floats = any(
            kind == "floating" and parent not in names.links
            for kind, (parent, _) in zip(names.kinds, names.ends, strict=True)
        )
        base = (self.pin.JointModelFreeFlyer(),) if floats else ()
        self.model = self.pin.buildModelFromUrdf(path, *base)
        (gravity,) = (force.vector for force in model.system.forces if isinstance(force, Gravity))
        self.model.gravity.linear = np.asarray(gravity)
        # Pinocchio's algorithms ignore damping and friction; only its constraints use them.
        for field in ("damping", "lowerDryFrictionLimit", "upperDryFrictionLimit"):
            getattr(self.model, field)[:] = 0.0
        # Pinocchio does not read the rotors of transmissions.
        for joint in model.system.joints:
            if joint.armatures is not None:
                first = self.model.joints[self.model.getJointId(joint.name)].idx_v
                self.model.armature[first : first + joint.num_rates] = np.asarray(joint.armatures)
        self.data = self.model.createData()

    def random_state(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        q = self.pin.neutral(self.model)
        q = self.pin.integrate(self.model, q, rng.standard_normal(self.model.nv))
        return q, rng.standard_normal(self.model.nv)

    def quantities(self, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> tuple[Any, ...]:
        M = self.pin.crba(self.model, self.data, q)
        M = np.triu(M) + np.triu(M, 1).T
        h = self.pin.nonLinearEffects(self.model, self.data, q, v)
        return M, h, self.pin.aba(self.model, self.data, q, v, tau)


class _Mujoco:
    """MuJoCo without contacts, limits, friction, actuators and equalities."""

    def __init__(self, model: Model, path: str):
        self.mujoco: Any = importlib.import_module("mujoco")
        self.model = self.mujoco.MjModel.from_xml_path(path)
        flags = self.mujoco.mjtDisableBit
        self.model.opt.disableflags |= flags.mjDSBL_CONSTRAINT | flags.mjDSBL_ACTUATION
        (gravity,) = (force.vector for force in model.system.forces if isinstance(force, Gravity))
        self.model.opt.gravity = np.asarray(gravity)
        _remove_unsupported(self.mujoco, self.model)
        self.data = self.mujoco.MjData(self.model)

    def random_state(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        q = np.array(self.model.qpos0)
        self.mujoco.mj_integratePos(self.model, q, rng.standard_normal(self.model.nv), 1.0)
        return q, rng.standard_normal(self.model.nv)

    def quantities(self, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> tuple[Any, ...]:
        data, M = self.data, np.zeros((self.model.nv, self.model.nv))
        data.qpos, data.qvel, data.qfrc_applied = q, v, tau
        self.mujoco.mj_forward(self.model, data)
        if hasattr(data, "qM"):  # before MuJoCo 4
            self.mujoco.mj_fullM(self.model, M, data.qM)
        else:
            self.mujoco.mj_fullM(self.model, data, M)
        return M, data.qfrc_bias - data.qfrc_passive, data.qacc.copy()


def _remove_unsupported(mujoco: Any, model: Any) -> None:
    """Remove the ignored features from MuJoCo's model."""
    model.opt.density = model.opt.viscosity = 0.0
    model.body_gravcomp[:] = 0.0
    joints = np.isin(model.jnt_type, [mujoco.mjtJoint.mjJNT_FREE, mujoco.mjtJoint.mjJNT_BALL])
    model.dof_armature[joints[model.dof_jntid]] = 0.0
    model.tendon_armature[:] = 0.0
    for field in (
        "dof_dampingpoly", "jnt_stiffnesspoly", "jnt_springyield", "tendon_stiffnesspoly",
        "tendon_dampingpoly", "actuator_dampingpoly",
    ):  # fmt: skip
        if hasattr(model, field):
            getattr(model, field)[:] = 0.0


REFERENCES: dict[str, Any] = {"pinocchio": _Pinocchio, "mujoco": _Mujoco}
