"""Forces of a kind give equal results whether evaluated together or one by one."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rigidjax as rj
from rigidjax.mechanics.kinematics.poses import assemble_poses
from rigidjax.native.ops.gather_scatter import segment_sum
from rigidjax.rotations.euler_map import euler_map
from rigidjax.solvers.conserving.discrete_gradient import conserving_wrenches

T = jnp.zeros(())


def chain(count, forces, damped=True):
    bodies = [
        rj.Body.box("body" if i == 0 else f"b{i}", (0.1, 0.2, 0.3), mass=1.0 + i,
                    position=(0.4 * i, 0, 0)) for i in range(count)
    ]  # fmt: skip
    names = [body.name for body in bodies]
    pairs = zip(["ground", *names], names, strict=False)
    joints = [
        rj.Revolute(
            parent,
            child,
            (0.4 * i - 0.2, 0, 0),
            (0, 1, 0),
            damping=0.1 + i if damped else 0,
            name=f"j{i}",
        )
        for i, (parent, child) in enumerate(pairs)
    ]
    return rj.System(bodies, joints, [rj.Gravity((0, 0, -9.81)), *forces(names)])


def many(names):
    """Return several forces of each kind; a body and the axes have one name, but differ by type."""
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


def alone(system):
    """Each force as the only one of a system."""
    return [rj.System(system.bodies, system.joints, force) for force in system.forces]


@pytest.mark.exhaustive
def test_groups_equal_their_single_forces(rng):
    """Wrenches, virials and energies of all together, and the sums over systems of one force."""
    system = chain(4, many, False)
    # Springs to the ground, between bodies; "body" is a name and a choice of axes.
    groups = rj.NullSpace(system).prepared_system.forces
    kinds = sorted(type(group.force).__name__ for group in groups)
    assert kinds == ["Bushing", "Drag", "Gravity", "Motor", "Motor", "PointForce", "PointForce",
                     "PointForce", "Spring", "Spring"] + 2 * ["TorsionSpring"]  # fmt: skip
    model = rj.NullSpace(system)
    y = model.pack(system.reference_state())
    y = y + 0.3 * jnp.asarray(rng.normal(size=y.shape))

    def evaluate_forces(system, kinematics):
        return (
            system.wrenches(T, kinematics), system.virials(T, kinematics),
            system.potential_energy(T, kinematics),
        )  # fmt: skip

    @jax.jit
    def both(y):
        kinematics = model.kinematics(T, y)
        parts = [evaluate_forces(one, kinematics) for one in alone(system)]
        return evaluate_forces(system, kinematics), jax.tree.map(lambda *parts: sum(parts), *parts)

    for together, one_by_one in zip(*both(y), strict=True):
        np.testing.assert_allclose(together, one_by_one, atol=1e-11)


@pytest.mark.parametrize("springs", ["Spring", "TorsionSpring"])
@pytest.mark.exhaustive
def test_discrete_derivatives_of_groups(springs, rng):
    """Discrete derivatives over a step of 0.1 s are sums over single forces."""
    system = chain(3, many, False)
    forces = [force for force in system.forces if type(force).__name__ == springs]
    joints = system.joints if springs == "TorsionSpring" else ()
    system = rj.System(system.bodies, joints, forces)
    q = rng.normal(size=(3, 3, 4))
    R = jax.vmap(jax.vmap(euler_map))(q / np.linalg.norm(q, axis=2, keepdims=True))
    x, change = rng.normal(size=(3, 3, 3)), rng.normal(size=(3, 6))

    def wrenches(system, x, R):
        prepared = rj.NullSpace(system).prepared_system
        poses = [assemble_poses(prepared, *pair, jnp.zeros(0)) for pair in zip(x, R, strict=True)]
        chords = 1.0 + 0.1 * jnp.arange(3.0)
        return conserving_wrenches(prepared, T, *poses, change, 0.1, chords)

    @jax.jit
    def both(x, R):
        return wrenches(system, x, R), sum(wrenches(one, x, R) for one in alone(system))

    np.testing.assert_allclose(*both(x, R), rtol=1e-9, atol=1e-9)


def row_of_bodies(count, times):
    """Return free bodies in a row, with a number of springs between neighbours."""
    bodies = [rj.Body.sphere(f"b{i}", 0.1, mass=1.0, position=(i, 0, 0)) for i in range(count)]
    springs = [
        rj.Spring(f"b{i}", f"b{i + 1}", (i, 0.1 + k, 0), (i + 1, 0, 0), 1.0, length=0.5)
        for k in range(times) for i in range(count - 1)
    ]  # fmt: skip
    return rj.System(bodies, forces=[rj.Gravity((0, 0, -9.81)), *springs])


def test_jaxpr_of_a_run_does_not_grow():
    """Neither the arguments of a run nor its operations, with bodies and forces of a kind."""

    def size(count, times):
        system = row_of_bodies(count, times)
        model, state = rj.NullSpace(system), system.reference_state()
        run = jax.make_jaxpr(lambda state: rj.simulate(model, state, 0.1, backend="xla").ys)(state)
        (solve,) = [e for e in run.eqns if e.primitive.name == "rigidjax_call"]
        executable = solve.params["executable"]
        inside = jax.make_jaxpr(executable.subfunction)(*executable.arguments)
        return len(solve.invars), operations(run.jaxpr) + operations(inside.jaxpr)

    arguments, traced = size(30, 1)
    assert size(60, 1) == (arguments, traced)
    assert size(30, 5)[0] == arguments
    assert size(30, 5)[1] < 1.2 * traced


def test_derivatives_by_parameters_of_one_force(rng):
    """One traced force among constant ones, alone and in a batch, by the energy of a spring."""
    system = row_of_bodies(4, 2)
    y = rj.NullSpace(system).encode(system.reference_state())
    y = y + 0.1 * jnp.asarray(rng.normal(size=y.shape))

    def energy(stiffness):
        # Springs between the second and the third body.
        where = lambda s: [s.forces[k].stiffness for k in (2, 5)]  # noqa: E731
        changed = eqx.tree_at(where, system, [stiffness, 2 * stiffness])
        return rj.NullSpace(changed).separate_arrays().energy(T, y)

    @jax.jit
    def evaluate_forces(k):
        return jax.grad(energy)(k), jax.vmap(energy)(jnp.array([k, k + 1.0])) - energy(k)

    slope = energy(jnp.array(2.0)) - energy(jnp.array(1.0))
    of_one, of_batch = evaluate_forces(jnp.array(1.0))
    assert abs(slope) > 1e-4
    np.testing.assert_allclose(of_one, slope, rtol=1e-10)
    np.testing.assert_allclose(of_batch, [0.0, slope], atol=1e-12)


def test_bodies_with_many_forces(rng):
    """A hub and its spokes: what is added up for it is not laid out over all bodies."""
    values, rows = rng.normal(size=(40, 3)), rng.integers(0, 3, 40)
    for chosen in (rows, [0, 1, 2] * 2, [7, 3, 4, 5, 3], [9], []):
        some = values[: len(chosen)]
        expected = np.zeros((10, 3))
        np.add.at(expected, np.asarray(chosen, int), some)
        np.testing.assert_allclose(
            segment_sum(jnp.asarray(some), list(chosen), 10), expected, atol=1e-14
        )


def operations(jaxpr):
    inner = [[getattr(p, "jaxpr", p) for p in e.params.values()] for e in jaxpr.eqns]
    inner = [[p for p in parts if hasattr(p, "eqns")] for parts in inner]
    return sum(sum(map(operations, parts)) if parts else 1 for parts in inner)
