"""`Free` named or left out: the same motion."""

import diffrax
import numpy as np
import pytest

import rigidjax as rj
from rigidjax.solvers import EnergyMomentum

BODIES = [
    rj.Body("a", 1.5, (0.3, 0.5, 0.6), (2.0, 0.0, 1.0), (0.5, 0.5, -0.1, 0.7), (0.1, -0.2, 0.3),
            (4.0, -3.0, 5.0)),
    rj.Body("b", 0.7, (0.3, 0.2, 0.4), (0.0, 1.0, 1.0)),
]  # fmt: skip
SPRING = rj.Spring("a", "b", None, None, 20.0, 0.1, 1.0)


@pytest.mark.exhaustive("Relative-explicit", "Absolute-explicit")
@pytest.mark.parametrize("solver", [diffrax.Dopri5(), EnergyMomentum()], ids=["explicit", "EM"])
@pytest.mark.parametrize(
    "formulation", [rj.NullSpace, rj.Relative, rj.Absolute], ids=lambda f: f.__name__
)
def test_a_system_whose_only_joints_are_free(formulation, solver):
    if formulation is rj.Relative and isinstance(solver, EnergyMomentum):
        pytest.skip("the scheme steps poses and twists, which are no unknowns of `Relative`")

    def end(joints):
        system = rj.System(BODIES, joints, [SPRING])
        model = formulation(system)
        sol = rj.simulate(model, system.reference_state(), 0.3, solver=solver, dt=0.01)
        states = sol.states
        assert float(np.max(sol.position_drift)) < 1e-12
        return np.concatenate(
            [states.position[-1], states.velocity[-1], states.angular_velocity[-1]]
        )

    alone = end([])
    # Inside of explicit steps quaternions leave the unit sphere, where accelerations without joints
    # and those along trees differ: by errors of the steps.
    atol = 1e-12 if isinstance(solver, EnergyMomentum) else 2e-8
    for joints in ([rj.Free("a")], [rj.Free("b"), rj.Free("a")]):
        np.testing.assert_allclose(end(joints), alone, rtol=0, atol=atol)
