"""`Free` named or left out: the same motion."""

import diffrax
import numpy as np

import rigidjax as rj

BODIES = [
    rj.Body("a", 1.5, (0.3, 0.5, 0.6), (2.0, 0.0, 1.0), (0.5, 0.5, -0.1, 0.7), (0.1, -0.2, 0.3),
            (4.0, -3.0, 5.0)),
    rj.Body("b", 0.7, (0.3, 0.2, 0.4), (0.0, 1.0, 1.0)),
]  # fmt: skip
SPRING = rj.Spring("a", "b", None, None, 20.0, 0.1, 1.0)


def test_system_with_free_joints_only():
    """In short steps: between them quaternions leave the unit sphere, where accelerations without
    joints and those along trees differ."""

    def end(joints):
        model = rj.NullSpace(rj.System(BODIES, joints, [SPRING]))
        start, solver = model.system.reference_state(), diffrax.Dopri5()
        sol = rj.simulate(model, start, 2e-3, solver=solver, dt=1e-3)
        states = sol.states
        assert float(np.max(sol.position_drift)) < 1e-12
        return np.concatenate(
            [states.position[-1], states.velocity[-1], states.angular_velocity[-1]]
        )

    alone = end([])
    for joints in ([rj.Free("a")], [rj.Free("b"), rj.Free("a")]):
        np.testing.assert_allclose(end(joints), alone, rtol=0, atol=1e-12)
