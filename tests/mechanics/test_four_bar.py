"""A four-bar: gradients with respect to every length, mass and stiffness, and 1,000 at once.

The reference is another model, three planar angles with multipliers, differentiated by complex
steps through SciPy.
"""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.integrate import solve_ivp

import rigidjax as rj

START, T1, GRAVITY = 1.1, 0.6, 9.81
# Lengths of crank, coupler, rocker and base (m), masses (kg), stiffness (N m/rad).
PARAMETERS = np.array([0.4, 1.0, 0.8, 1.1, 0.5, 1.2, 0.9, 3.0])
NAMES = ["crank", "coupler", "rocker", "base", "m1", "m2", "m3", "stiffness"]


def angles(xp, lengths):
    """Angles of coupler and rocker that close the loop, the crank at `START`."""
    l1, l2, l3, d = lengths
    x, y = d - l1 * np.cos(START), -l1 * np.sin(START)
    r2 = x * x + y * y
    along = (l2 * l2 - l3 * l3 + r2) / (2 * r2)
    across = xp.sqrt(l2 * l2 / r2 - along * along)
    tip = (along * x - across * y, along * y + across * x)
    second = xp.arctan(tip[1] / tip[0])
    end = (l1 * np.cos(START) + tip[0] - d, l1 * np.sin(START) + tip[1])
    return second, np.pi / 2 - xp.arctan(end[0] / end[1])


def reference(parameters):
    """Angle of the crank at `T1`."""
    l1, l2, l3, _, m1, m2, m3, k = parameters
    I1, I2, I3 = (m * (4 / 3) * (length / 2) ** 2 for m, length in ((m1, l1), (m2, l2), (m3, l3)))
    second, third = angles(np, parameters[:4])

    def field(t, y):
        q, v = y[:3], y[3:]
        c, s = np.cos(q), np.sin(q)
        couple = m2 * l1 * l2 / 2
        M = np.zeros((5, 5), complex)
        M[0, 0], M[1, 1], M[2, 2] = I1 + m2 * l1**2, I2, I3
        M[0, 1] = M[1, 0] = couple * np.cos(q[0] - q[1])
        G = np.array([[-l1 * s[0], -l2 * s[1], l3 * s[2]], [l1 * c[0], l2 * c[1], -l3 * c[2]]])
        M[3:, :3], M[:3, 3:] = G, G.T
        swing = couple * np.sin(q[0] - q[1])
        weight = GRAVITY * np.array([(m1 / 2 + m2) * l1, m2 * l2 / 2, m3 * l3 / 2]) * c
        force = -weight + np.array([-swing * v[1] ** 2, swing * v[0] ** 2, 0.0])
        force[0] -= k * (q[0] - START)
        arms = np.array([l1, l2, -l3]) * v**2
        gamma = np.array([arms @ c, arms @ s])
        return np.concatenate([v, np.linalg.solve(M, np.concatenate([force, gamma]))[:3]])

    y0 = np.array([START, second, third, 0, 0, 0], complex)
    run = solve_ivp(field, (0, T1), y0, method="DOP853", rtol=1e-13, atol=1e-14, max_step=0.01)
    assert run.success
    return run.y[0, -1]


def mechanism(parameters):
    """Return the four-bar as a system and its state at rest."""
    l1, l2, l3, d, m1, m2, m3, k = parameters
    second, third = angles(jnp, parameters[:4])
    turns = [jnp.asarray(START), second, third]
    zero = jnp.zeros(())
    e = [jnp.stack([jnp.cos(q), jnp.sin(q), zero]) for q in turns]
    base = jnp.stack([d, zero, zero])
    middles = [0.5 * l1 * e[0], l1 * e[0] + 0.5 * l2 * e[1], base + 0.5 * l3 * e[2]]
    bodies = []
    for name, m, length, q, x in zip(
        ("crank", "coupler", "rocker"), (m1, m2, m3), (l1, l2, l3), turns, middles, strict=True
    ):
        I = m * length**2 / 12
        p = jnp.stack([jnp.cos(q / 2), zero, zero, jnp.sin(q / 2)])
        bodies.append(rj.Body(name, m, jnp.stack([0.01 * I, I, I]), x, p))
    joints = [
        rj.Revolute("ground", "crank", jnp.zeros(3), (0, 0, 1), name="pivot"),
        rj.Revolute("crank", "coupler", l1 * e[0], (0, 0, 1)),
        rj.Revolute("coupler", "rocker", l1 * e[0] + l2 * e[1], (0, 0, 1)),
        rj.Revolute("ground", "rocker", base, (0, 0, 1)),
    ]
    forces = [rj.Gravity((0, -GRAVITY, 0)), rj.TorsionSpring("pivot", k)]
    return rj.System(bodies, joints, forces)


def final_angle(parameters, **options):
    system = mechanism(parameters)
    steps = {} if "dt" in options else {"rtol": 1e-12, "atol": 1e-12}
    settings = {**steps, "max_steps": 256, **options}
    run = rj.simulate(
        rj.NullSpace(system), system.reference_state(), settings.pop("t1", T1), **settings
    )
    # The spring's angle is the last unknown; it is zero at the start.
    return START + run.ys[-1, -1]


@pytest.fixture(scope="module")
def reference_slopes():
    slopes = [reference(PARAMETERS + 1e-30j * step).imag * 1e30 for step in np.eye(8)]
    return reference(PARAMETERS).real, np.array(slopes)


@pytest.mark.exhaustive
def test_gradient_of_a_four_bar(reference_slopes):
    """Through the closed loop, within 1e-8 of complex steps."""
    angle, slopes = reference_slopes
    value, found = jax.jit(jax.value_and_grad(final_angle))(jnp.asarray(PARAMETERS))
    assert abs(float(value) - angle) < 1e-9
    assert np.max(np.abs(np.asarray(found) - slopes)) < 1e-8 * np.max(np.abs(slopes))


@pytest.mark.exhaustive
def test_batch_of_a_thousand_four_bars():
    """`vmap` over parameters gives each what it gets alone."""
    rng = np.random.default_rng(3)
    many = jnp.asarray(PARAMETERS * (1 + 0.05 * rng.uniform(-1, 1, (1000, 8))))
    options = dict(t1=0.05, dt=0.01, solver=diffrax.Dopri5(), max_steps=8)
    run = jax.jit(jax.vmap(lambda p: final_angle(p, **options)))(many)
    assert run.shape == (1000,) and bool(jnp.all(jnp.isfinite(run)))
    alone = jax.jit(lambda p: final_angle(p, **options))
    for i in (0, 499, 999):
        assert abs(float(alone(many[i]) - run[i])) < 1e-12
