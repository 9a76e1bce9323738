"""Systems with joints in quaternions: a massless body changes no step."""

import numpy as np

import rigidjax as rj
from rigidjax.solvers import Variational

TOP = rj.Body(
    "top", 1.5, (0.3, 0.5, 0.6), (2.0, 0.0, 1.0), (0.5, 0.5, -0.1, 0.7), (0.1, -0.2, 0.3),
    (4.0, -3.0, 5.0),
)  # fmt: skip


def test_unconnected_body_does_not_change_the_motion():
    """A speck of dust, welded to a body on a damped spring: the same step, joint or not."""
    dust = rj.Body("dust", 1e-14, (1e-14, 1e-14, 1e-14), (2.1, 0.1, 1.0))
    spring = rj.Spring("ground", "top", (0.5, 0.2, 0.0), (2.2, 0.1, 1.0), 30.0, 0.2)

    def states(bodies, joints):
        system = rj.System(bodies, joints, [spring])
        state0 = rj.consistent_state(system, system.reference_state())
        return rj.simulate(
            rj.Absolute(system), state0, 1.0, solver=Variational(), dt=0.02,
            ts=np.linspace(0.0, 1.0, 11), max_steps=4096,
        ).states  # fmt: skip

    both, single = states([TOP, dust], [rj.Weld("top", "dust")]), states([TOP], [])
    for name in ("position", "orientation", "velocity", "angular_velocity"):
        np.testing.assert_allclose(
            getattr(both, name)[:, 0], getattr(single, name)[:, 0], rtol=0, atol=1e-11
        )
