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


@pytest.mark.exhaustive(
    "Relative-Dopri5-0.002-0.001",
    "Absolute-Dopri5-0.002-0.001",
    "Absolute-EnergyMomentum-0.3-0.01",
    "NullSpace-EnergyMomentum-0.3-0.01",
)
@pytest.mark.parametrize(
    "formulation, solver, t1, dt",
    [
        # Within long steps quaternions leave the unit sphere, where accelerations without joints
        # and those along trees differ.
        *(
            (form, diffrax.Dopri5(), 2e-3, 1e-3)
            for form in (rj.NullSpace, rj.Relative, rj.Absolute)
        ),
        *((form, EnergyMomentum(), 0.3, 0.01) for form in (rj.NullSpace, rj.Absolute)),
    ],
    ids=lambda x: None if isinstance(x, float) else getattr(x, "__name__", type(x).__name__),
)
def test_system_with_free_joints_only(formulation, solver, t1, dt):
    def end(joints):
        system = rj.System(BODIES, joints, [SPRING])
        model = formulation(system)
        sol = rj.simulate(model, system.reference_state(), t1, solver=solver, dt=dt)
        states = sol.states
        assert float(np.max(sol.position_drift)) < 1e-12
        return np.concatenate(
            [states.position[-1], states.velocity[-1], states.angular_velocity[-1]]
        )

    alone = end([])
    for joints in ([rj.Free("a")], [rj.Free("b"), rj.Free("a")]):
        np.testing.assert_allclose(end(joints), alone, rtol=0, atol=1e-12)
