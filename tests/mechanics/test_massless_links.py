"""Massless links inside trees and loops: attached bodies move them."""

import jax
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


def simulate(virtual):
    """Return a run of 1 s, and the reaction at the tip at its end."""
    system = arm(virtual)
    start = rj.jointed_state(system, {"tip": 0.4}, {"base": 1.0})
    run = rj.simulate(rj.NullSpace(system), start, 1.0, rtol=1e-10, atol=1e-10)
    return run, run.model.reactions(1.0, run.ys[-1])["tip"].force


def test_massless_link_joins_two_hinges_to_a_universal_joint():
    (run, found), (plain, wanted) = simulate(virtual=True), simulate(virtual=False)
    np.testing.assert_allclose(found, wanted, atol=1e-5)
    assert float(run.position_drift[-1]) < 1e-13
    for name in ("position", "velocity", "angular_velocity"):
        found, wanted = getattr(run.states, name)[-1, :3], getattr(plain.states, name)[-1]
        np.testing.assert_allclose(found, wanted, atol=1e-7)


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
