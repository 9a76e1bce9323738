"""Random systems as code: all joints, constraints and forces, in units from 1e-3 to 1e3."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial.transform import Rotation

HEADER = """\
import diffrax
import jax
import jax.numpy as jnp
import numpy as np

import rigidjax as rj
"""


class Part(NamedTuple):
    """A joint, constraint or force: the bodies and joints that it needs, the code that makes it."""

    bodies: tuple[str, ...]
    code: str
    joints: tuple[str, ...] = ()


class Units(NamedTuple):
    """The size of a length, a mass and a time."""

    length: float
    mass: float
    time: float

    def of(self, length: int = 0, mass: int = 0, time: int = 0) -> float:
        return self.length**length * self.mass**mass * self.time**time


class Description(NamedTuple):
    """A system and a start state: bodies by name, joints of the tree, loops and other constraints,
    forces, rates."""

    units: Units
    bodies: dict[str, str]
    tree: tuple[Part, ...]
    loops: tuple[Part, ...]
    forces: tuple[Part, ...]
    rates: dict[str, np.ndarray]

    def code(self) -> str:
        """Return Python code that defines `system` and `state`."""
        names = list(self.bodies)
        rates = np.array([self.rates[name] for name in names])
        parts = [*self.tree, *self.loops]
        return "\n".join([
            "bodies = [", *(f"    {self.bodies[name]}," for name in names), "]",
            "joints = [", *(f"    {part.code}," for part in parts), "]",
            "forces = [", *(f"    {part.code}," for part in self.forces), "]",
            "system = rj.System(bodies, joints, forces)",
            "start = system.reference_state()",
            f"rates = np.array({numbers(rates)})",
            "state = rj.consistent_state(",
            "    system, rj.State(start.position, start.orientation, rates[:, 0], rates[:, 1])",
            ")",
        ])  # fmt: skip

    def build(self) -> tuple[Any, Any]:
        """Return the system and the state."""
        scope: dict[str, Any] = {}
        exec(HEADER, scope)
        exec(self.code(), scope)
        return scope["system"], scope["state"]


def numbers(x: Any) -> str:
    """Return code of an array with six digits."""
    x = np.asarray(x, float)
    if x.ndim == 0:
        return f"{float(x):.6g}"
    return "[" + ", ".join(numbers(row) for row in x) + "]"


# For each joint: its degrees of freedom, and its code after the bodies.
JOINTS = {
    "Spherical": (3, "{point}"),
    "Revolute": (1, "{point}, {axis}"),
    "Prismatic": (1, "{axis}, point={point}"),
    "Cylindrical": (2, "{point}, {axis}"),
    "Planar": (3, "{point}, {axis}"),
    "Universal": (2, "{point}, {axis}, {other}"),
    "Screw": (1, "{point}, {axis}, {pitch}"),
    "Weld": (0, "{point}"),
}
SCALAR = ("Revolute", "Prismatic", "Screw")


class Maker:
    """Draws parts in given units."""

    def __init__(self, rng: np.random.Generator, units: Units):
        self.rng, self.units = rng, units
        self.positions: dict[str, str] = {}

    def chance(self, probability: float) -> bool:
        return bool(self.rng.uniform() < probability)

    def choose(self, items: Sequence):
        return items[int(self.rng.integers(len(items)))]

    def vector(self, size: float = 1.0) -> str:
        return numbers(size * self.rng.uniform(-1, 1, 3))

    def number(self, size: float = 1.0) -> str:
        return numbers(size * self.rng.uniform(0.2, 1.5))

    def point(self) -> str:
        return self.vector(self.units.length)

    def body(self, name: str) -> str:
        u = self.units
        mass = u.mass * 10 ** self.rng.uniform(-0.7, 0.7)
        semi = u.length * self.rng.uniform(0.2, 0.6, 3)
        moments = mass / 5 * (np.sum(semi**2) - semi**2)
        inertia = numbers(moments)
        if self.chance(0.4):
            Q = Rotation.random(rng=self.rng).as_matrix()
            tensor = Q @ np.diag(moments) @ Q.T
            inertia = f"np.array({numbers((tensor + tensor.T) / 2)})"
        orientation = Rotation.random(rng=self.rng).as_quat(scalar_first=True)
        # The digits that are left out would not make a unit quaternion.
        turn = f"np.array({numbers(orientation)}) / np.linalg.norm({numbers(orientation)})"
        self.positions[name] = self.point()
        return f"rj.Body({name!r}, {numbers(mass)}, {inertia}, {self.positions[name]}, {turn})"

    def axes(self) -> tuple[str, str]:
        """Return two directions at a right angle, to the digits that are printed."""
        first = self.rng.normal(size=3).round(3)
        other = np.cross(first, self.rng.normal(size=3).round(3))
        return repr(first.tolist()), repr(other.tolist())

    def joint(self, kind: str, parent: str, child: str, name: str, plain: bool = False) -> Part:
        u = self.units
        axis, other = self.axes()
        code = JOINTS[kind][1].format(
            point=self.point(), axis=axis, other=other, pitch=self.number(u.length)
        )
        if kind in SCALAR and not plain:
            angular = kind != "Prismatic"
            if self.chance(0.15):
                size = 1.0 if angular else u.length
                code += (
                    f", motion=lambda t: {self.number(size)} * jnp.sin(t / {self.number(u.time)})"
                )
            else:
                dims = (2, 1, -1) if angular else (0, 1, -1)
                if self.chance(0.3):
                    code += f", damping={self.number(0.3 * u.of(*dims))}"
                if self.chance(0.3):
                    dims = (2, 1) if angular else (0, 1)
                    code += f", armature={self.number(0.3 * u.of(*dims))}"
        ends = (parent, child)
        if self.chance(0.25):
            ends = (child, parent)
        return Part((parent, child), f"rj.{kind}({ends[0]!r}, {ends[1]!r}, {code}, name={name!r})")

    def force(self, names: Sequence[str], scalars: Sequence[str]) -> Part:
        """Return a force on random bodies, or on one of the joints with a single coordinate."""
        u = self.units
        force, moment = u.of(1, 1, -2), u.of(2, 1, -2)
        a = self.choose(names)
        b = self.choose([n for n in (*names, "ground") if n != a])
        kind = self.choose([
            "point", "follower", "time", "torque", "law", "spring", "bushing", "drag", "potential",
            *(["torsion", "motor", "motor law"] if scalars else []),
        ])  # fmt: skip
        ends = f"{a!r}, {b!r}"
        joint = self.choose(scalars) if scalars else ""
        w = self.number(1.0 / u.time)
        code = {
            "point": lambda: f"rj.PointForce({a!r}, {self.point()}, {self.vector(force)})",
            "follower": lambda: (
                f"rj.PointForce({a!r}, {self.point()}, {self.vector(force)}, 'body')"
            ),
            "time": lambda: (
                f"rj.PointForce({a!r}, {self.point()}, "
                f"lambda t: jnp.array({self.vector(force)}) * jnp.sin({w} * t))"
            ),
            "torque": lambda: f"rj.Torque({a!r}, {self.vector(moment)}, {self.choose(FRAMES)!r})",
            "law": lambda: (
                f"rj.Torque({a!r}, lambda t, R, omega: jnp.array({self.vector(moment)}) * R[2] "
                f"- {self.number(0.3 * u.of(2, 1, -1))} * omega)"
            ),
            "spring": lambda: (
                f"rj.Spring({ends}, {self.point()}, {self.point()}, {self.number(u.of(0, 1, -2))}, "
                f"{self.number(0.2 * u.of(0, 1, -1))}, {self.number(u.length)})"
            ),
            "bushing": lambda: (
                f"rj.Bushing({ends}, {self.point()}, "
                f"{numbers([u.of(0, 1, -2)] * 3 + [moment] * 3)}, "
                f"{self.number(0.1 * u.of(0, 1, -1))})"
            ),
            "drag": lambda: (
                f"rj.Drag({a!r}, {self.number(0.2 * u.of(0, 1, -1))}, "
                f"{self.number(0.2 * u.of(-1, 1))}, {self.number(0.1 * u.of(2, 1, -1))})"
            ),
            "potential": lambda: (
                f"rj.Potential(lambda x, R: {self.number(u.of(0, 1, -2))} "
                f"* jnp.sum(x[0] ** 2))"
            ),
            "torsion": lambda: (
                f"rj.TorsionSpring({joint!r}, {self.number(moment)}, "
                f"{self.number(0.1 * u.of(2, 1, -1))}, 0.3)"
            ),
            "motor": lambda: (
                f"rj.Motor({joint!r}, lambda t: {self.number(moment)} * jnp.cos({w} * t))"
            ),
            "motor law": lambda: (
                f"rj.Motor({joint!r}, lambda t, q, v: -{self.number(moment)} * jnp.sin(q) "
                f"- {self.number(0.2 * u.of(2, 1, -1))} * v)"
            ),
        }[kind]()  # fmt: skip
        needed = (a, b) if kind in ("spring", "bushing") else (a,)
        on_joint = kind in ("torsion", "motor", "motor law")
        return Part(() if on_joint else needed, code, (joint,) if on_joint else ())

    def coupling(self, joints: dict[str, str], has_offset: bool) -> Part:
        """Return a coupling of two of these joints, given by name with their kind."""
        u, kinds = self.units, joints
        one, by = (str(name) for name in self.rng.choice(list(joints), 2, replace=False))
        size = {name: u.length if kinds[name] == "Prismatic" else 1.0 for name in (one, by)}
        ratio = numbers(self.rng.uniform(-2, 2) * size[one] / size[by])
        offset = numbers(0.1 * size[one] * self.rng.uniform(-1, 1)) if has_offset else "0.0"
        code = f"rj.Coupling({one!r}, {by!r}, {ratio}, {offset}, name='coupling')"
        return Part((), code, (one, by))

    def constraint(self, a: str, other: str) -> Part:
        """Return an equation of a user on a body, or on it and another one."""
        u, x = self.units, f"(poses[{a!r}][0] - jnp.array({self.positions[a]}))"
        n, L, w = self.vector(), self.number(u.length), self.number(1 / u.time)
        moved = f"jnp.array({n}) @ {x}"
        kind = self.choose(["plane", "moving plane", "sphere", "height", "skate", "rolling"])
        bodies = (a, other) if kind == "height" else (a,)
        if kind in ("skate", "rolling"):
            v, omega = f"twists[{a!r}][0]", f"twists[{a!r}][1]"
            value = {
                "skate": f"(poses[{a!r}][1].T @ {v})[1] - {self.number(0.3 * u.of(1, 0, -1))} "
                f"* jnp.sin({w} * t)",
                "rolling": f"{v}[0] - {L} * (poses[{a!r}][1] @ {omega})[1]",
            }[kind]
            function = f"rj.VelocityConstraint(lambda t, poses, twists: {value}"
        else:
            value = {
                "plane": moved,
                "moving plane": f"{moved} - {self.number(0.1 * u.length)} * jnp.sin({w} * t)",
                "sphere": f"{moved} + {x} @ {x} / {L}",
                "height": f"{moved} - jnp.array({n}) @ (poses[{other!r}][0] "
                f"- jnp.array({self.positions.get(other)}))",
            }[kind]
            function = f"rj.Constraint(lambda t, poses: {value}"
        return Part(bodies, f"{function}, {list(bodies)}, name='constraint')")


FRAMES = ("body", "space")


def random_description(seed: int) -> Description:
    """Return a random system."""
    rng = np.random.default_rng(seed)
    spread = 3.0 if rng.uniform() < 0.6 else 0.0
    units = Units(*(float(10 ** rng.uniform(-spread, spread)) for _ in range(2)),
                  float(10 ** rng.uniform(-spread / 2, spread / 2)))  # fmt: skip
    make = Maker(rng, units)
    names = [f"b{k}" for k in range(rng.integers(1, 5))]
    bodies = {name: make.body(name) for name in names}
    # Some systems have no joints: there are formulations for them alone.
    free = 1.0 if make.chance(0.12) else 0.12
    tree: list[Part] = []
    # Joints with one coordinate that is free, with their kinds; freedoms of bodies and joints.
    scalars: dict[str, str] = {}
    freedoms, of_body = 0, {"ground": 0}
    for name in names:
        parent, kind, added = "ground", "", 6
        if not make.chance(free):
            parent = make.choose(list(of_body))
            kind = make.choose(["Revolute", "Revolute", "Prismatic", *JOINTS])
            part = make.joint(kind, parent, name, f"j{len(tree)}")
            added = 0 if "motion=" in part.code else JOINTS[kind][0]
            if kind in SCALAR and added:
                scalars[f"j{len(tree)}"] = kind
            tree.append(part)
        freedoms += added
        of_body[name] = of_body[parent] + added
    loops = _random_constraints(make, names, of_body, freedoms, scalars)
    forces = []
    if make.chance(0.8):
        vector = make.vector(units.of(1, 0, -2))
        forces.append(Part((), f"rj.Gravity({vector})"))
    hinges = [joint for joint, kind in scalars.items() if kind == "Revolute"]
    forces += [make.force(names, hinges) for _ in range(rng.integers(0, 4))]
    rates = {
        name: np.stack([rng.normal(size=3) * units.of(1, 0, -1), rng.normal(size=3) / units.time])
        for name in names
    }
    return Description(units, bodies, tuple(tree), tuple(loops), tuple(forces), rates)


def _random_constraints(
    make: Maker, names: list[str], of_body: dict[str, int], freedoms: int, scalars: dict[str, str]
) -> list[Part]:
    """Return joints of loops, couplings and equations of users, fewer than there are freedoms."""
    parts, left = [], freedoms
    if len(names) > 1 and make.chance(0.45):
        a, b = (str(n) for n in make.rng.choice([*names, "ground"], 2, replace=False))
        b, a = (a, b) if b == "ground" else (b, a)
        if left > 4 and make.chance(0.5):
            parts.append(make.joint("Spherical", a, b, "loop"))
            left -= 3
        elif left > 1:
            code = f"rj.Distance({a!r}, {b!r}, {make.point()}, {make.point()}, name='loop')"
            parts.append(Part((a, b), code))
            left -= 1
    if len(scalars) > 1 and left > 1 and make.chance(0.3):
        # With an offset the joints start elsewhere, which loops without a freedom would forbid.
        parts.append(make.coupling(scalars, has_offset=not parts))
        left -= 1
    # Bodies that can go anywhere: no equation is about a motion that joints prevent.
    loose = [name for name in names if of_body[name] > 3]
    if any("Spherical" in part.code for part in parts):
        loose = []
    if loose and left > 1 and make.chance(0.35):
        a = make.choose(loose)
        parts.append(make.constraint(a, make.choose([n for n in names if n != a] or [a])))
    return parts


def without(description: Description, kind: str, k: int) -> Description:
    """Return the description without one loop, force, or body with its subtree."""
    d = description
    if kind == "loops":
        return d._replace(loops=d.loops[:k] + d.loops[k + 1 :])
    if kind == "forces":
        return d._replace(forces=d.forces[:k] + d.forces[k + 1 :])
    name = list(d.bodies)[k]
    tree = tuple(part for part in d.tree if name not in part.bodies)
    gone = {f"j{n}" for n in range(99) if not any(f"'j{n}'" in part.code for part in tree)}

    def keep(parts):
        return tuple(p for p in parts if name not in p.bodies and not gone & {*p.joints})

    bodies = {other: code for other, code in d.bodies.items() if other != name}
    rates = {other: rates for other, rates in d.rates.items() if other != name}
    return Description(d.units, bodies, tree, keep(d.loops), keep(d.forces), rates)
