"""Linkages: four-bar, slider-crank, Bricard's mechanism (A04) and a flyball governor (A05)."""

import math
from collections.abc import Sequence

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from ..bodies import Body, FixedPointBody
from ..forces import AbstractForce, Gravity, Spring
from ..joints import Prismatic, Revolute, Spherical, Universal
from ..mechanics import System
from ..rotations.so3 import multiply
from ..state import State
from .exact.elliptic import complete_first, jacobi
from .problem import Problem, states_along

Point = Sequence[float] | np.ndarray


def link(name: str, start: Point, end: Point, mass: float = 1.0, thickness: float = 0.0) -> Body:
    r"""Return a uniform rod between two points; its first body axis is from `start` to `end`.

    **Arguments:** `name`; `start`, `end`, (3,) m; `mass`, kg; `thickness`, edge of its square
    section, m. With thickness zero the inertia is $(0, I, I)$ with $I = m l^2/12$, and joints have
    to determine the rotation about the axis of the rod.
    """
    start, end = np.asarray(start, float), np.asarray(end, float)
    along = end - start
    length = float(np.sqrt(along @ along))
    square = thickness * thickness
    across = mass * (length * length + square) / 12
    inertia = (mass * square / 6, across, across)
    shape = "box" if thickness else None
    return Body(name, mass, inertia, 0.5 * (start + end), turn_to(along), shape=shape)


def turn_to(direction: Point) -> tuple[float, float, float, float]:
    """Return the quaternion of the shortest rotation of the first axis of space to `direction`.

    For the opposite direction it is a rotation about the third axis.
    """
    x, y, z = np.asarray(direction, float) / math.sqrt(float(np.dot(direction, direction)))
    if x < -1 + 1e-12:
        return (0.0, 0.0, 0.0, 1.0)
    scale = math.sqrt(2 * (1 + x))
    return (scale / 2, 0.0, float(-z / scale), float(y / scale))


def matrix(orientation: ArrayLike) -> np.ndarray:
    """Return the rotation matrix of a quaternion (4,) as a NumPy array (3, 3)."""
    # Not by `euler_map`, each operation of which would be compiled.
    w, x, y, z = np.asarray(orientation, float)
    tilde = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.eye(3) + 2 * (w * tilde + tilde @ tilde)


def in_body(orientation: ArrayLike, vector: Point) -> np.ndarray:
    """Convert a vector (3,) from space to body components."""
    return matrix(orientation).T @ np.asarray(vector, float)


def turn_about_third_axis(angle: float) -> tuple[float, float, float, float]:
    """Return the quaternion of a rotation about the third axis by `angle`, rad."""
    return (math.cos(angle / 2), 0.0, 0.0, math.sin(angle / 2))


CRANK, COUPLER, ROCKER, FRAME = 0.3, 0.9, 0.7, 1.0
_AXIS = (0.0, 0.0, 1.0)


def four_bar(rate: float = 10.0, thickness: float = 0.0) -> Problem:
    """Build a crank of 0.3 m, a coupler of 0.9 m and a rocker of 0.7 m, under gravity; 2 s.

    The pivots are 1 m apart; the links are uniform thin rods of 1 kg/m. The crank starts upright
    and rotates fully.

    **Arguments:** `rate`, initial rate of the crank, rad/s; `thickness`, of the rods (square
    section), m, positive for `Absolute`.
    """
    start, end = np.zeros(2), np.array([FRAME, 0.0])
    pin = np.array([0.0, CRANK])
    gap = end - pin
    distance = math.sqrt(gap @ gap)
    # The upper solution of the triangle of coupler, rocker and the line between their far ends.
    along = (COUPLER**2 - ROCKER**2 + distance**2) / (2 * distance)
    across = math.sqrt(COUPLER**2 - along**2)
    unit = gap / distance
    knee = pin + along * unit + across * np.array([-unit[1], unit[0]])
    points = [np.append(point, 0.0) for point in (start, pin, knee, end)]
    # Rates of coupler and rocker about the third axis, from pin' + w2 x coupler = w3 x rocker.
    J = np.array([[0.0, -1.0], [1.0, 0.0]])  # rotates by a right angle
    columns = np.stack([-J @ (knee - pin), J @ (knee - end)], axis=1)
    others = np.linalg.solve(columns, rate * J @ pin)
    rates = np.array([rate, others[0], others[1]])
    spins = rates[:, None] * np.array(_AXIS)
    bodies = [
        link("crank", points[0], points[1], CRANK, thickness),
        link("coupler", points[1], points[2], COUPLER, thickness),
        link("rocker", points[3], points[2], ROCKER, thickness),
    ]
    arms = [points[1] / 2, (points[2] - points[1]) / 2, (points[2] - points[3]) / 2]
    bases = [np.zeros(3), np.cross(spins[0], points[1]), np.zeros(3)]
    joints = [
        Revolute("ground", "crank", points[0], _AXIS),
        Revolute("crank", "coupler", points[1], _AXIS),
        Revolute("coupler", "rocker", points[2], _AXIS),
        Revolute("ground", "rocker", points[3], _AXIS),
    ]
    system = System(bodies, joints, Gravity((0.0, -9.81, 0.0)))
    reference = system.reference_state()
    state0 = State(
        reference.position,
        reference.orientation,
        np.stack(
            [base + np.cross(w, arm) for base, w, arm in zip(bases, spins, arms, strict=True)]
        ),
        np.stack([in_body(body.orientation, w) for body, w in zip(bodies, spins, strict=True)]),
    )
    return Problem("four_bar", "Four-bar linkage", system, state0, 2.0, "made for this package")


_POINTS = ((0, 0, 0), (1, 0, 0), (1, -1, 0), (1, -1, 1), (0, -1, 1), (0, 0, 1))
_AXES = ("y", "z", "x", "y", "z", "x")


def bricard(thickness: float = 0.0) -> Problem:
    """Build five rods of 1 m and 1 kg with six hinges, under gravity; 10 s.

    The mechanism has one degree of freedom because of its special geometry; counting constraints
    gives none. Thin rods reproduce the published motion.

    **Arguments:** `thickness`, of the rods (square section), m, positive for `Absolute`.
    **Source:** IFToMM library of computational benchmark problems, A04.
    """
    names = ["ground", *(f"rod {i + 1}" for i in range(5)), "ground"]
    bodies = [
        link(name, _POINTS[i], _POINTS[i + 1], thickness=thickness)
        for i, name in enumerate(names[1:-1])
    ]
    joints = [
        Revolute(names[i], names[i + 1], _POINTS[i], [float(axis == x) for x in "xyz"])
        for i, axis in enumerate(_AXES)
    ]
    system = System(bodies, joints, Gravity((0.0, -9.81, 0.0)))
    return Problem(
        "bricard",
        "Bricard's mechanism",
        system,
        system.reference_state(),
        10.0,
        "IFToMM benchmark A04",
    )


_RATE = 6.0


def slider_crank() -> Problem:
    """Build a spatial slider-crank under gravity; 5 s.

    A ball joint connects crank and connecting rod, a universal joint the rod and the slider. The
    crank rotates about the first axis and starts upright with 6 rad/s. The slider moves parallel to
    this axis, below and beside the crank.

    **Source:** IFToMM library of computational benchmark problems, spatial rigid slider-crank.
    """
    pivot, slider_at = np.array([0.0, 0.1, 0.12]), np.array([0.2, 0.0, 0.0])
    pin = pivot + np.array([0.0, 0.0, 0.08])
    rod = slider_at - pin
    bodies = [
        Body("crank", 0.12, (1e-4, 1e-4, 1e-5), (pivot + pin) / 2),
        Body("rod", 0.5, (4e-4, 4e-3, 4e-3), (pin + slider_at) / 2, turn_to(rod)),
        Body("slider", 2.0, (1e-4, 1e-4, 1e-4), slider_at),
    ]
    first = np.array([1.0, 0.0, 0.0])  # along the slider, as in the submitted solutions
    joints = [
        Revolute("ground", "crank", pivot, (1.0, 0.0, 0.0)),
        Spherical("crank", "rod", pin),
        Prismatic("ground", "slider", (1.0, 0.0, 0.0), point=slider_at),
        Universal("slider", "rod", slider_at, first, np.cross(rod, first)),
    ]
    system = System(bodies, joints, Gravity((0.0, 0.0, -9.81)))
    reference = system.reference_state()
    spin = np.array([_RATE, 0.0, 0.0])
    swing = np.cross(spin, pin - pivot)
    # The rate of the slider follows from the constant length of the rod.
    speed = np.array([swing @ rod / rod[0], 0.0, 0.0])
    velocity = np.stack([swing / 2, (swing + speed) / 2, speed])
    across = np.cross(rod, speed - swing) / (rod @ rod)
    # The rotation of the rod about its line is determined by the universal joint, which permits no
    # rotation about the normal to both of its axes.
    normal = np.cross(first, np.cross(rod, first))
    rod_spin = across - rod * (across @ normal) / (rod @ normal)
    omega = np.stack([spin, np.zeros(3), np.zeros(3)])
    omega[1] = in_body(bodies[1].orientation, rod_spin)
    state0 = State(reference.position, reference.orientation, velocity, omega)
    return Problem(
        "slider_crank",
        "Spatial slider-crank",
        system,
        state0,
        5.0,
        "IFToMM benchmark, spatial rigid slider-crank",
    )


DENSITY, BALL = 3000.0, 5.0
STIFFNESS, DAMPING, FREE_LENGTH = 8.0e5, 4.0e4, 0.5
SPIN = 2 * math.pi
_HINGE, _TOP, _LENGTH, _SECTION = 0.05, 1.0, 1.0, 0.01
_SLIDER, _HEIGHT = 0.1, 0.5


def flyball_governor() -> Problem:
    """Build two balls on rods that are hinged to a freely rotating shaft; 10 s.

    Stiff spring-dampers connect the rods to a slider. They relax in 1e-5 s to 1e-4 s, which
    requires an implicit solver such as `rj.solvers.Radau5`. A rod and the ball at its end are one
    body; its first body axis is along the rod. All bodies start with the rotation of the shaft, one
    revolution per second.

    **Source:** IFToMM library of computational benchmark problems, A05.
    """
    rod = Body.box("rod", (_LENGTH, _SECTION, _SECTION), density=DENSITY)
    rod_mass, rod_inertia = float(rod.mass), np.asarray(rod.inertia, float)
    shaft = Body.box(
        "shaft", (_SECTION, _SECTION, _LENGTH), density=DENSITY, position=(0.0, 0.0, _LENGTH / 2)
    )
    slider = Body.box("slider", (_SLIDER,) * 3, density=DENSITY, position=(0.0, 0.0, _HEIGHT))
    mass = rod_mass + BALL
    center = (0.5 * rod_mass + BALL) * _LENGTH / mass
    shift = rod_mass * (center - 0.5 * _LENGTH) ** 2 + BALL * (_LENGTH - center) ** 2
    inertia = rod_inertia + np.array([0.0, shift, shift])
    bodies, joints = [shaft, slider], []
    forces: list[AbstractForce] = [Gravity((0.0, 0.0, -9.81))]
    joints += [
        Revolute("ground", "shaft", (0.0, 0.0, 0.0), (0.0, 0.0, 1.0)),
        Prismatic("shaft", "slider", (0.0, 0.0, 1.0)),
    ]
    for name, sign in (("arm 1", 1.0), ("arm 2", -1.0)):
        along = np.array([sign * math.cos(math.pi / 6), 0.0, -0.5])
        hinge = np.array([sign * _HINGE, 0.0, _TOP])
        bodies.append(Body(name, mass, inertia, hinge + center * along, turn_to(along)))
        joints.append(Revolute("shaft", name, hinge, (0.0, 1.0, 0.0)))
        below, middle = (sign * _HINGE, 0.0, _HEIGHT), hinge + 0.5 * _LENGTH * along
        forces.append(Spring("slider", name, below, middle, STIFFNESS, DAMPING, length=FREE_LENGTH))
    system = System(bodies, joints, forces)
    reference = system.reference_state()
    spin = np.array([0.0, 0.0, SPIN])
    state0 = State(
        reference.position,
        reference.orientation,
        np.cross(spin, np.asarray(reference.position, float)),
        np.stack([in_body(body.orientation, spin) for body in bodies]),
    )
    return Problem(
        "flyball_governor", "Stiff flyball governor", system, state0, 10.0, "IFToMM benchmark A05"
    )


_GRAVITY = 9.81
_HINGE_AXIS = (0.0, 0.0, 1.0)


def n_four_bar(n: int = 40, duration: float = 20.0) -> Problem:
    r"""Build `n` four-bar linkages side by side: 2 n + 1 links of 1 m and 1 kg.

    The mechanism has one degree of freedom. It starts upright, its top moving with 1 m/s, and
    passes through the singular position in which all links are in line. Horizontal links only
    translate, so that $\vartheta'' = g\,\frac{(n+1)/2 + n}{(n+1)/3 + n} \sin\vartheta$. This is
    the equation of a rotating pendulum, which has a closed solution.

    **Arguments:** `n`, 40 in the benchmark; `duration`, s, 20 in the benchmark.
    **Source:** IFToMM library of computational benchmark problems, A02.
    """
    n = int(n)
    if n < 1:
        raise ValueError(f"`n_four_bar(n=...)` must be 1 or more; got {n}.")
    foot, top = (lambda i: (float(i), 0.0, 0.0)), (lambda i: (float(i), 1.0, 0.0))
    uprights = [link(f"upright {i}", foot(i), top(i)) for i in range(n + 1)]
    bars = [link(f"bar {i}", top(i - 1), top(i)) for i in range(1, n + 1)]
    joints = [Revolute("ground", f"upright {i}", foot(i), _HINGE_AXIS) for i in range(n + 1)]
    for i in range(1, n + 1):
        joints += [
            Revolute(f"upright {i - 1}", f"bar {i}", top(i - 1), _HINGE_AXIS),
            Revolute(f"bar {i}", f"upright {i}", top(i), _HINGE_AXIS),
        ]
    system = System([*uprights, *bars], joints, Gravity((0.0, -_GRAVITY, 0.0)))
    reference = system.reference_state()
    velocity, rates = np.zeros((2 * n + 1, 3)), np.zeros((2 * n + 1, 3))
    velocity[: n + 1, 0], velocity[n + 1 :, 0] = 0.5, 1.0
    rates[: n + 1, 2] = -1.0
    state0 = State(reference.position, reference.orientation, velocity, rates)
    return Problem(
        "n_four_bar",
        f"{n} four-bar linkages side by side",
        system,
        state0,
        float(duration),
        "IFToMM benchmark A02",
        _motion,
    )


def _motion(system: System | FixedPointBody, state0: State, ts: Float[Array, " T"]) -> State:
    r"""Compute $\vartheta = \pi + 2\,\mathrm{am}(\omega t - K)$, $\omega^2 = 1/4 + c$.

    The modulus is given by $k^2 = c/\omega^2$.
    """
    n = (state0.num_bodies - 1) // 2
    c = _GRAVITY * ((n + 1) / 2 + n) / ((n + 1) / 3 + n)
    omega = math.sqrt(0.25 + c)
    m1 = jnp.asarray(0.25 / omega**2, ts.dtype)
    f = jacobi(omega * ts - complete_first(m1), m1)
    # Half the angle beyond pi/2, up to half revolutions, which only change the quaternion's sign.
    sine, cosine = f.cn, -f.sn
    x, y = 2 * sine * cosine, (cosine - sine) * (cosine + sine)
    rate = 2 * omega * f.dn
    zero = jnp.zeros_like(ts)
    turn = jnp.stack([cosine, zero, zero, -sine], axis=-1)
    shift = jnp.stack([x, y - 1, zero], axis=-1)
    speed = rate[:, None] * jnp.stack([y, -x, zero], axis=-1)
    share = jnp.concatenate([jnp.full(n + 1, 0.5), jnp.ones(n)])[:, None].astype(ts.dtype)
    upright = (jnp.arange(2 * n + 1) <= n)[:, None]
    turned = jax.vmap(lambda q: jax.vmap(lambda p: multiply(q, p))(state0.orientation))(turn)
    spin = jnp.stack([zero, zero, -rate], axis=-1)[:, None]
    return states_along(
        state0.position[None] + share[None] * shift[:, None],
        jnp.where(upright[None], turned, state0.orientation[None]),
        share[None] * speed[:, None],
        jnp.where(upright[None], spin, 0.0),
    )
