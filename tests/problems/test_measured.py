"""Measured pendulums: simulated from the published estimates, without any fit.

The error of a piece is over all its arms and samples. The values asked for are those of an
independent program, SciPy's DOP853 on Lagrange's equations in absolute angles.
"""

import pathlib

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import rigidjax as rj

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "datasets" / "multiarm_pendulum"


def pendulum(estimate):
    """The system, and the matrix that takes unit vectors along the arms to the mass centres."""
    n = {10: 2, 15: 3}[len(estimate)]
    m, a, L, moment, friction, (g,) = np.split(estimate, np.cumsum([n, n, n - 1, n, n]))
    heights = np.concatenate([[0.0], np.cumsum(L)])
    names = ["ground", *(f"arm {i + 1}" for i in range(n))]
    arms = [
        rj.Body(names[i + 1], m[i], [moment[i]] * 3, position=(0.0, 0.0, heights[i] + a[i]))
        for i in range(n)
    ]
    joints = [
        rj.Revolute(names[i], names[i + 1], (0.0, 0.0, heights[i]), (0.0, 1.0, 0.0))
        for i in range(n)
    ]
    forces = [rj.TorsionSpring(j, 0.0, damping=k) for j, k in zip(joints, friction, strict=True)]
    system = rj.System(arms, joints, [rj.Gravity((0.0, 0.0, -g)), *forces])
    return system, np.tril(np.tile([*L, 0.0], (n, 1)), -1) + np.diag(a)


def swing(model, to_centres, theta, omega, ts):
    """Return absolute angles, 0 straight up, from initial angles and rates."""
    s, c, zero = jnp.sin(theta), jnp.cos(theta), jnp.zeros_like(theta)
    along = jnp.stack([s, zero, c], axis=-1)
    rate = omega[:, None] * jnp.stack([c, zero, -s], axis=-1)
    quaternion = jnp.stack([jnp.cos(theta / 2), zero, jnp.sin(theta / 2), zero], axis=-1)
    spin = jnp.stack([zero, omega, zero], axis=-1)
    state = rj.State(to_centres @ along, quaternion, to_centres @ rate, spin)
    # Compiles in half the time without projection; what drifts is checked.
    sol = rj.simulate(model, state, ts[-1], ts=ts, projection=False)
    p = sol.states.orientation
    angle = jnp.unwrap(2 * jnp.arctan2(p[..., 2], p[..., 0]), axis=0)
    return angle + 2 * jnp.pi * jnp.round((theta - angle[0]) / (2 * jnp.pi))[
        None
    ], sol.position_drift


@pytest.mark.exhaustive("triple-26-0.0034-0.0063-0.005")
@pytest.mark.parametrize(
    "name, pieces, median, worst, stated",
    [("double", 30, 7.7e-3, 31.6e-3, 36e-3), ("triple", 26, 3.4e-3, 6.3e-3, 5e-3)],
)
def test_published_estimates_predict_the_swings(name, pieces, median, worst, stated):
    data = np.load(FOLDER / f"{name}_free_swing.npz")
    measured = data["theta"].astype(float)
    assert len(measured) == pieces
    system, to_centres = pendulum(data["published_estimate"])
    model = rj.NullSpace(system)
    ts = float(data["dt"]) * np.arange(measured.shape[1])
    run = jax.jit(jax.vmap(lambda *start: swing(model, to_centres, *start, ts)))
    simulated, drift = run(measured[:, 0], data["omega"][:, 0].astype(float))
    error = np.sqrt(np.mean((np.asarray(simulated) - measured) ** 2, axis=(1, 2)))
    # 0.1 mrad: the other program compared with every sample, here one in ten is left.
    np.testing.assert_allclose([np.median(error), error.max()], [median, worst], atol=1e-4)
    assert error[0] < stated and np.mean(error < stated) > 0.8
    assert drift.max() < 1e-6
