"""Twelve systems that tests share, by name: one model per formulation, one short run per solver.

Each is built, traced and compiled once per process. `SYSTEMS` has the functions that build them.
"""

import functools
import pathlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import jax
import numpy as np

import rigidjax as rj

GRAVITY = rj.Gravity((0.0, 0.0, -9.81))
DOWN, Y, Z = (0.0, 0.0, -1.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
ARM = pathlib.Path(__file__).parent / "models" / "data" / "arm.urdf"


class Case(NamedTuple):
    """A system, its initial state at `t0`, whether it conserves its energy, options of a run."""

    system: Any
    state: rj.State
    conserves: bool = True
    t0: float = 0.0
    options: Mapping[str, Any] = MappingProxyType({})


def rod(name: str, top: float, length: float = 1.0) -> rj.Body:
    """A rod of 1 kg that hangs from the height `top`."""
    return rj.Body.rod(name, length, 0.02, mass=1.0, position=(0.0, 0.0, top - 0.5 * length))


def hinge(parent: str, child: str, height: float, **laws: Any) -> rj.Revolute:
    """A hinge on the vertical axis, about the y axis."""
    return rj.Revolute(parent, child, (0.0, 0.0, height), Y, name=f"hinge of {child}", **laws)


def pendulum(angle: float = 1.0, **laws: Any) -> Case:
    """A rod on a hinge."""
    system = rj.System(rod("rod", 0.0), hinge("ground", "rod", 0.0, **laws), GRAVITY)
    return Case(system, rj.jointed_state(system, {"hinge of rod": angle}))


def double_pendulum(**laws: Any) -> Case:
    """Two rods on hinges."""
    bodies = [rod("upper", 0.0), rod("lower", -1.0)]
    hinges = [hinge("ground", "upper", 0.0, **laws), hinge("upper", "lower", -1.0, **laws)]
    system = rj.System(bodies, hinges, GRAVITY)
    angles = {"hinge of upper": 1.0, "hinge of lower": -0.4}
    return Case(system, rj.jointed_state(system, angles))


def of_problem(problem: rj.problems.Problem) -> Case:
    return Case(problem.system, problem.state0)


def tree_with_every_joint() -> Case:
    """Joints of trees, on the ground and on a free body, with forces and prescribed motions."""
    from mechanics import cases

    system = cases.tree()
    state = cases.random_state(system, cases.TREE, np.random.default_rng(6))
    state = cases.consistent(rj.NullSpace(system), state)  # velocities that the joints allow
    return Case(system, state, conserves=False, t0=cases.T)


def loop_with_every_joint() -> Case:
    """A spatial loop of a hinge, a universal and a ball joint, and a slider; damped."""
    bodies = [
        rj.Body.box("crank", (0.02, 0.4, 0.02), mass=0.5, position=(0.0, 0.2, 0.5)),
        rj.Body.box("coupler", (1.0, 0.02, 0.02), mass=1.0, position=(0.5, 0.4, 0.5)),
        rj.Body.box("block", (0.2, 0.1, 0.1), mass=2.0, position=(1.0, 0.4, 0.5)),
    ]
    joints = [
        rj.Revolute("ground", "crank", (0.0, 0.0, 0.5), (1.0, 0.0, 0.0), damping=0.1, name="hinge"),
        rj.Universal("crank", "coupler", (0.0, 0.4, 0.5), Y, Z),
        rj.Spherical("coupler", "block", (1.0, 0.4, 0.5)),
        rj.Prismatic("ground", "block", (1.0, 0.0, 0.0), name="slider"),
    ]
    system = rj.System(bodies, joints, [GRAVITY, rj.Motor("slider", 3.0)])
    return Case(system, rj.jointed_state(system, {"hinge": 0.0}, {"hinge": 2.0}), conserves=False)


def floating_base() -> Case:
    """A free body with two arms on hinges, one of them with a spring, without gravity."""
    bodies = [rj.Body.box("base", (0.5, 0.4, 0.3), mass=5.0), rod("left", 0.0), rod("right", 0.0)]
    joints = [hinge("base", "left", 0.0), hinge("base", "right", 0.0)]
    system = rj.System(bodies, joints, rj.TorsionSpring("hinge of left", 2.0))
    rates = {"hinge of left": 1.0, "hinge of right": -0.5}
    return Case(system, rj.jointed_state(system, {"hinge of left": 0.3}, rates))


def arm_with_actuators() -> Case:
    """A double pendulum with a motor with a gear and a position servo."""
    plain = double_pendulum(damping=0.1, armature=0.05)
    actuators = [
        rj.DCMotor("hinge of upper", 6.0, 1.3, 0.4, 0.05, gear=8.0),
        rj.PositionServo("hinge of lower", 0.9, 4.0, 0.6, 5.0, 0.7),
    ]
    system = rj.System(plain.system.bodies, plain.system.joints, [GRAVITY, *actuators])
    return Case(system, plain.state, conserves=False)


def ball_with_impacts() -> Case:
    """A ball of radius 0.1 m that falls on a floor and bounces."""
    system = rj.System(rj.Body.sphere("ball", 0.1, mass=0.5, position=(0.0, 0.0, 0.3)), (), GRAVITY)
    floor = rj.Transition(rj.PlaneContact("ball", radius=0.1), rj.Restitution(0.8), name="floor")
    options = {"transitions": [floor], "max_transitions": 8}
    return Case(system, system.reference_state(), conserves=False, options=options)


def robot_from_file() -> Case:
    """Four joints, a tool and a gripper of two coupled fingers."""
    system = rj.models.load(ARM).system
    return Case(system, rj.jointed_state(system, {"pitch": 0.5}), conserves=False)


SYSTEMS = {
    "free body": lambda: of_problem(rj.problems.free_body()),
    "top": lambda: of_problem(rj.problems.heavy_top()),
    "pendulum": pendulum,
    "double pendulum": double_pendulum,
    "four-bar": lambda: of_problem(rj.problems.four_bar(thickness=0.05)),
    "slider-crank": lambda: of_problem(rj.problems.slider_crank()),
    "tree with every joint": tree_with_every_joint,
    "loop with every joint": loop_with_every_joint,
    "floating base": floating_base,
    "arm with actuators": arm_with_actuators,
    "ball with impacts": ball_with_impacts,
    "robot from a file": robot_from_file,
}


@functools.cache
def case(name: str) -> Case:
    """The system of a name."""
    return SYSTEMS[name]()


@functools.cache
def model(name: str, formulation: type = rj.NullSpace) -> Any:
    """Return the model of a system."""
    return formulation(case(name).system)


@functools.cache
def run(name: str, solver: Any = None, formulation: type = rj.NullSpace) -> rj.Solution:
    """Return a run of 0.5 s with nine saved states."""
    _, state, _, t0, options = case(name)
    options = {**({} if solver is None else {"solver": solver}), **options}
    ts = t0 + np.linspace(0.0, 0.5, 9)
    return rj.simulate(model(name, formulation), state, ts[-1], t0=t0, ts=ts, **options)


def states(name: str) -> rj.State:
    """Return the nine states of a run, which satisfy all joints."""
    return jax.tree.map(np.asarray, run(name).states)
