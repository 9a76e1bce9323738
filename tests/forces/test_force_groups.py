"""Forces of a kind that are evaluated together are those that they are one by one."""

import jax
import jax.numpy as jnp
import numpy as np

import rigidjax as rj
from rigidjax.rotations.euler_map import euler_map
from rigidjax.solvers.structure.loads import conserving_wrenches
from rigidjax.system import force_groups

T = jnp.zeros(())


def chain(count, forces):
    bodies = [
        rj.Body.box("body" if i == 0 else f"b{i}", (0.1, 0.2, 0.3), mass=1.0 + i,
                    position=(0.4 * i, 0, 0)) for i in range(count)
    ]  # fmt: skip
    names = [body.name for body in bodies]
    pairs = zip(["ground", *names], names, strict=False)
    joints = [
        rj.Revolute(parent, child, (0.4 * i - 0.2, 0, 0), (0, 1, 0), damping=0.1 + i, name=f"j{i}")
        for i, (parent, child) in enumerate(pairs)
    ]
    return rj.System(bodies, joints, [rj.Gravity((0, 0, -9.81)), *forces(names)])


def many(names):
    """Several of each kind; a body and axes of one name, which are not told apart by text."""
    out = []
    for i, name in enumerate(names):
        point = (0.4 * i, 0.1, 0.2)
        out += [rj.Spring("ground", name, (0, 0, 1.0), point, 10.0 + i, 0.3, length=0.2),
                rj.Spring(name, names[i - 1], point, (0.4 * ((i - 1) % 4), 0.2, 0), 20.0, 0.1),
                rj.Bushing("ground", name, point, [5.0, 6.0, 7.0, 1.0, 2.0, 3.0 + i], 0.2),
                rj.PointForce(name, (0.1, 0.2, 0.3), (1.0, i, 2.0), "space"),
                rj.PointForce(name, (0.3, 0.2, 0.3), (i, 0.5, 2.0), "body"),
                rj.Drag(name, 0.2, 0.3 + i),
                rj.TorsionSpring(f"j{i}", 3.0 + i, 0.0, 0.2),
                rj.Motor(f"j{i}", 0.7)]  # fmt: skip
    return out


def test_wrenches_of_groups(monkeypatch, rng):
    monkeypatch.setattr(force_groups, "_MANY", 2)
    system = chain(4, many)
    groups, others = force_groups.group_forces(system.all_forces, system.bodies, system.joints)
    kinds = sorted(type(group.force).__name__ for group in groups)
    assert kinds == ["Bushing", "Drag", "JointDamping", "Motor", "PointForce", "PointForce",
                     "Spring", "Spring", "TorsionSpring"]  # fmt: skip
    # The hinge on the ground moves one body, the others two; "body" is a name and a choice of axes.
    assert {type(force).__name__ for force in others} == {
        "Gravity", "JointDamping", "Motor", "PointForce", "TorsionSpring",
    }  # fmt: skip
    model = rj.NullSpace(system)
    y = model.pack(system.reference_state())
    y = y + 0.3 * jnp.asarray(rng.normal(size=y.shape))

    def both(y):
        mechanics = model.mechanics
        kinematics = model.kinematics(T, y)
        one_by_one = mechanics.stacked(system.wrenches(T, kinematics))
        return mechanics.applied(T, kinematics), one_by_one

    together, one_by_one = jax.jit(both)(y)
    np.testing.assert_allclose(together, one_by_one, atol=1e-11)


def test_discrete_derivatives_of_groups(monkeypatch, rng):
    """Those of a step of 0.1 s, of springs to the ground and between bodies."""
    springs = [force for force in chain(3, many).forces if isinstance(force, rj.Spring)]
    bodies = [rj.Body(name, 1.0, (0.4, 0.5, 0.6)) for name in ("body", "b1", "b2")]
    mechanics = rj.NullSpace(rj.System(bodies, forces=springs)).mechanics
    q = rng.normal(size=(3, 3, 4))
    R = jax.vmap(jax.vmap(euler_map))(q / np.linalg.norm(q, axis=2, keepdims=True))
    x, change = rng.normal(size=(3, 3, 3)), rng.normal(size=(3, 6))

    def wrenches(x, R):
        poses = [mechanics.poses(*pair, jnp.zeros(0)) for pair in zip(x, R, strict=True)]
        chords = 1.0 + 0.1 * jnp.arange(3.0)
        return conserving_wrenches(mechanics, T, *poses, change, 0.1, jnp.zeros(0), chords)

    monkeypatch.setattr(force_groups, "_MANY", 2)
    together = jax.jit(wrenches)(x, R)
    monkeypatch.setattr(force_groups, "_MANY", 1000)
    one_by_one = jax.jit(lambda *poses: wrenches(*poses))(x, R)
    np.testing.assert_allclose(together, one_by_one, rtol=1e-9, atol=1e-9)


def test_what_is_traced_does_not_grow_with_them():
    """20 springs on four bodies are traced one by one, 64 and 128 together."""

    def springs(count):
        return lambda names: [
            rj.Spring("ground", name, (0, 0, 1.0), (0.4 * i, 0, 0), 1.0, length=0.1 + k)
            for k in range(count) for i, name in enumerate(names)
        ]  # fmt: skip

    def size(count):
        model = rj.NullSpace(chain(4, springs(count)))
        y = model.pack(model.system.reference_state())
        kinematics = model.kinematics(T, y)
        applied = jax.make_jaxpr(lambda m, k: m.applied(T, k))
        return len(applied(model.mechanics, kinematics).eqns)

    assert size(32) == size(16) < size(5) / 5


def test_nor_with_free_bodies():
    """Gravity times the mass of a body is one operation; nothing else is traced body by body."""

    def size(count):
        bodies = [rj.Body.sphere(f"b{i}", 0.1, mass=1.0, position=(i, 0, 0)) for i in range(count)]
        springs = [
            rj.Spring(f"b{i}", f"b{i + 1}", (i, 0.1, 0), (i + 1, 0, 0), 1.0)
            for i in range(count - 1)
        ]
        model = rj.NullSpace(rj.System(bodies, forces=[rj.Gravity((0, 0, -9.81)), *springs]))
        field = jax.make_jaxpr(lambda m, y: m.vector_field(T, y))
        jaxpr = field(model, jnp.zeros(model.num_unknowns)).jaxpr
        return operations(jaxpr)

    assert size(60) - size(30) == 30


def operations(jaxpr):
    inner = [[getattr(p, "jaxpr", p) for p in e.params.values()] for e in jaxpr.eqns]
    inner = [[p for p in parts if hasattr(p, "eqns")] for parts in inner]
    return sum(sum(map(operations, parts)) if parts else 1 for parts in inner)
