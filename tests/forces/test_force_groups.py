"""Forces of a kind give equal results whether evaluated together or one by one."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import rigidjax as rj
from rigidjax.native.ops.gather_scatter import segment_sum

T = jnp.zeros(())


def alone(system):
    """Each force as the only one of a system."""
    return [rj.System(system.bodies, system.joints, force) for force in system.forces]


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
