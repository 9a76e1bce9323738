"""The examples agree with a single run."""

import jax.numpy as jnp
import numpy as np

import rigidjax as rj


def check_1(page, printed):
    stepper, y = page["stepper"], page["y"]
    forces = rj.Signal(0.02 * np.arange(4), [2.0, -1.0, 0.5, 0.5], interpolation="hold")
    start = rj.jointed_state(page["system"], {"hinge": 0.3})
    sol = rj.simulate(stepper.model, start, 0.06, inputs={"force": forces}, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose(y.unknowns, sol.ys[-1], atol=1e-8)
    assert page["rewards"].shape == (50, 64)
    assert (page["ys"].result == rj.RESULTS.successful).all()
    h, ones = 1e-4, np.ones(50)
    ahead, behind = (page["final_height"](jnp.asarray(s * h * ones)) for s in (1, -1))
    np.testing.assert_allclose(page["gradient"] @ ones, (ahead - behind) / (2 * h), rtol=1e-6)
    assert page["observation"].shape == (2,) and page["info"]["t"] == 0.02
