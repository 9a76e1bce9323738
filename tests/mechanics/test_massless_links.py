"""Massless links inside trees and loops: attached bodies move them."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rigidjax as rj

NONE, ZERO = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0)


def arm(virtual):
    """An arm with a joint of two hinges: through a link without mass, or by `Universal`."""
    bodies = [
        rj.Body("base", 2.0, (0.3, 0.4, 0.5)),
        rj.Body("arm", 1.0, (0.1, 0.2, 0.2), (0.8, 0.1, 0.0)),
        rj.Body("tip", 0.3, (0.01, 0.02, 0.02), (1.4, 0.0, 0.1)),
    ]
    joints = [rj.Revolute("ground", "base", ZERO, (0, 0, 1), name="base")]
    place, first, second = (0.3, 0.0, 0.0), (0, 1, 0), (1, 0, 0)
    if virtual:
        bodies += [rj.Body("link", 0, NONE, place), rj.Body("flange", 0.0, NONE, (1.2, 0, 0))]
        joints += [
            rj.Revolute("base", "link", place, first),
            rj.Revolute("link", "arm", place, second),
            rj.Weld("arm", "flange", (1.2, 0, 0)),
            rj.Revolute("flange", "tip", (1.2, 0, 0), (0, 0.3, 1), name="tip", damping=0.1),
        ]
    else:
        joints += [
            rj.Universal("base", "arm", place, first, second),
            rj.Revolute("arm", "tip", (1.2, 0, 0), (0, 0.3, 1), name="tip", damping=0.1),
        ]
    return rj.System(bodies, joints, rj.Gravity((0.0, 0.0, -9.81)))


@pytest.fixture(scope="module")
def universal():
    system = arm(virtual=False)
    start = rj.jointed_state(system, {"tip": 0.4}, {"base": 1.0})
    run = rj.simulate(rj.NullSpace(system), start, 1.0, rtol=1e-10, atol=1e-10)
    reaction = run.model.reactions(1.0, run.ys[-1])["tip"]
    return run.states, reaction.force


@pytest.mark.parametrize(("kind", "backend"), [(rj.NullSpace, "native"), (rj.Relative, "xla")])
@pytest.mark.exhaustive("Relative-xla")
@pytest.mark.exhaustive("NullSpace-native")
def test_massless_link_joins_two_hinges_to_a_universal_joint(universal, kind, backend):
    states, force = universal
    system = arm(virtual=True)
    start = rj.jointed_state(system, {"tip": 0.4}, {"base": 1.0})
    options = dict(rtol=1e-10, atol=1e-10, backend=backend)
    run = rj.simulate(kind(system), start, 1.0, **options)
    assert float(run.position_drift[-1]) < 1e-13
    for name in ("position", "velocity", "angular_velocity"):
        found, wanted = getattr(run.states, name)[-1, :3], getattr(states, name)[-1]
        np.testing.assert_allclose(found, wanted, atol=1e-7)
    found = run.model.reactions(1.0, run.ys[-1])["tip"].force
    np.testing.assert_allclose(found, force, atol=1e-5)


@pytest.mark.exhaustive
@pytest.mark.exhaustive
def test_massless_link_in_a_loop():
    """The coupler of a four-bar: both cranks carry all the mass there is."""

    def system(mass):
        inertia = tuple(mass * x for x in (1e-3, 0.05, 0.05))
        bodies = [
            rj.Body("a", 1.0, (0.02,) * 3, (0.0, 0.0, 0.25)),
            rj.Body("coupler", mass, inertia, (0.6, 0.0, 0.6)),
            rj.Body("b", 1.5, (0.05,) * 3, (1.1, 0.0, 0.3)),
        ]
        points = [(0, 0, 0), (0, 0, 0.5), (1.2, 0, 0.7), (1.0, 0, 0)]
        ends = ["ground", "a", "coupler", "b", "ground"]
        joints = [
            rj.Revolute(ends[k], ends[k + 1], points[k], (0, 1, 0), name=f"h{k}") for k in range(4)
        ]
        return rj.System(bodies, joints, rj.Gravity((0.0, 0.0, -9.81)))

    runs = []
    for mass in (0.0, 1e-9):
        start = rj.consistent_state(system(mass))
        runs.append(rj.simulate(rj.NullSpace(system(mass)), start, 0.5, rtol=1e-10, atol=1e-10))
    np.testing.assert_allclose(runs[0].states.position, runs[1].states.position, atol=1e-7)
    assert float(runs[0].position_drift[-1]) < 1e-12


@pytest.mark.exhaustive
@pytest.mark.exhaustive
def test_zero_mass_can_be_differentiated():
    """Traced, in a batch with links that have mass, and with derivatives at zero."""
    system = arm(virtual=True)
    start = rj.jointed_state(system, {"tip": 0.4}, {"base": 1.0})

    def height(mass):
        bodies = [eqx.tree_at(lambda b: b.mass, system.bodies[3], mass), system.bodies[4]]
        moved = eqx.tree_at(lambda s: s.bodies[3:], system, tuple(bodies))
        return rj.simulate(rj.NullSpace(moved), start, 0.2).states.position[-1, 2, 2]

    one = jax.jit(jax.vmap(jax.value_and_grad(height)))(jnp.array([0.0, 0.01]))
    middle = height(jnp.asarray(0.005))
    (low, high), (slope, after) = one
    np.testing.assert_allclose(high - low, 0.01 * (slope + after) / 2, rtol=1e-3)
    np.testing.assert_allclose(middle, (low + high) / 2 - 0.01 * (after - slope) / 8, rtol=1e-6)


def test_massless_motions_raise():
    leaf = rj.Body("leaf", 0.0, NONE, (1.0, 0.0, 0.0))
    base = rj.Body("base", 1.0, (1.0, 1.0, 1.0))
    hinged = rj.System([base, leaf], rj.Revolute("base", "leaf", (1, 0, 0), (0, 0, 1), name="h"))
    with pytest.raises(
        ValueError, match="The body 'leaf', which is attached to the joint 'h', has no m"
    ):
        rj.simulate(rj.NullSpace(hinged), hinged.reference_state(), 0.1)
    with pytest.raises(ValueError, match="The body 'leaf' has no mass or inertia"):
        rj.NullSpace(rj.System(leaf)).encode(rj.System(leaf).reference_state())
    system = arm(virtual=True)
    with pytest.raises(
        ValueError, match="The body 'link', which is attached to .* `Absolute` in all"
    ):
        rj.Absolute(system).encode(system.reference_state())
    run = jax.jit(lambda s: rj.simulate(rj.NullSpace(hinged), s, 0.1, throw=False).result)
    assert run(hinged.reference_state()) == rj.RESULTS.invalid_input
    with pytest.raises(ValueError, match=r"of a body that has inertia must be positive.*Got 0"):
        rj.Body("b", 0.0, (1.0, 1.0, 1.0))
    assert rj.Body("b", 0.0, (1.0, 1.0, 1.0), physical=False).mass == 0
    assert not np.any(leaf.mass_properties.parameters())
