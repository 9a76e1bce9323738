"""Impacts by restitution: joint stops, contacts with friction, loops; their derivatives."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import ellipkinc

import rigidjax as rj
from rigidjax.control.impact_law import frictional_impulse

G = 9.81
ROD = rj.Body.rod("rod", 1.0, 0.02, mass=1.0, position=(0, 0, -0.5))
HINGE = rj.Revolute("ground", "rod", (0, 0, 0), axis=(0, 1, 0), name="hinge")
SYSTEM = rj.System(ROD, HINGE, rj.Gravity((0, 0, -G)))
INERTIA = float(np.asarray(ROD.inertia)[1]) + 0.25
STIFFNESS = 0.5 * G / INERTIA
E, STOP, RELEASE = 0.7, -0.2, 1.2
TIGHT = {"rtol": 1e-12, "atol": 1e-12}
STOPPER = rj.Transition(rj.JointStop("hinge", STOP, "lower"), rj.Restitution(E), name="stop")


def impact_times(count):
    """Times of impacts at a stop, and speeds before them, by elliptic integrals."""

    def from_bottom(angle, k):
        return ellipkinc(np.arcsin(np.sin(0.5 * angle) / k), k * k) / np.sqrt(STIFFNESS)

    k = np.sin(0.5 * RELEASE)
    times = [from_bottom(RELEASE, k) + from_bottom(-STOP, k)]
    speeds = [np.sqrt(2 * STIFFNESS * (np.cos(STOP) - np.cos(RELEASE)))]
    for _ in range(count - 1):
        speeds.append(E * speeds[-1])
        top = np.arccos(np.cos(STOP) - 0.5 * speeds[-1] ** 2 / STIFFNESS)
        k = np.sin(0.5 * top)
        times.append(times[-1] + 2 * (from_bottom(top, k) + from_bottom(-STOP, k)))
    return np.array(times), np.array(speeds)


def test_pendulum_with_a_stop():
    times, speeds = impact_times(4)
    state, options = rj.jointed_state(SYSTEM, {"hinge": RELEASE}), {"max_transitions": 8, **TIGHT}
    sol = rj.simulate(rj.Relative(SYSTEM), state, 4.0, transitions=[STOPPER], **options)
    assert sol.transitions.count == 4
    np.testing.assert_allclose(sol.transitions.times[:4], times, atol=1e-9)
    before, after = sol.transitions.before, sol.transitions.after
    np.testing.assert_allclose(before.angular_velocity[:4, 0, 1], -speeds, rtol=1e-9)
    np.testing.assert_allclose(after.angular_velocity[:4, 0, 1], E * speeds, rtol=1e-9)
    np.testing.assert_allclose(after.angles["hinge"][:4], STOP, atol=1e-12)


@pytest.mark.exhaustive("jacrev")
@pytest.mark.parametrize("jacobian", ["jacfwd", "jacrev"])
def test_derivatives_equal_the_saltation_matrix(jacobian):
    """A mass falls on a stop: its end depends on its start by two flows, and the matrix between."""
    mass, rail = rj.Body("mass", 2.0, (1.0,) * 3), rj.Prismatic("ground", "mass", (0, 0, 1))
    model = rj.Relative(rj.System(mass, rail, rj.Gravity((0, 0, -G))))
    stop = rj.Transition(rj.JointStop(rail, 0.0, "lower"), rj.Restitution(E))
    q, v, t1 = 0.7, -0.5, 0.6

    def end(y0):
        sol = rj.simulate(model, y0=y0, t1=t1, transitions=[stop], max_transitions=2, **TIGHT)
        return jnp.append(sol.ys[-1], sol.transitions.times[0])

    speed = np.sqrt(v**2 + 2 * G * q)
    time = (v + speed) / G
    first, second = (np.array([[1.0, t], [0.0, 1.0]]) for t in (time, t1 - time))
    jump, gradient = np.diag([1.0, -E]), np.array([1.0, 0.0])  # of the distance from the stop
    before, after = np.array([-speed, -G]), np.array([E * speed, -G])  # rates of the unknowns
    saltation = jump + np.outer(after - jump @ before, gradient) / (gradient @ before)
    expected = [*(second @ saltation @ first), -gradient @ first / (gradient @ before)]
    # `test_transitions.py` has reverse mode up to an event.
    found = getattr(jax, jacobian)(end)(jnp.array([q, v]))
    np.testing.assert_allclose(found, expected, rtol=1e-8)


def test_revolutions_survive_an_impact():
    """The stop of a hinge after two and a half revolutions, in a model that unwraps its angle."""
    limit = 5 * np.pi
    free = rj.System(ROD, HINGE).tracking(["hinge"])
    stop = rj.JointStop("hinge", limit, "upper")
    start = rj.jointed_state(free, {"hinge": 0.0}, {"hinge": 4.0})
    sol = rj.simulate(
        rj.NullSpace(free), start, 5.0, ts=[1.0, 5.0], max_transitions=2,
        transitions=[rj.Transition(stop, rj.Restitution(0.5))], **TIGHT,
    )  # fmt: skip
    time = limit / 4.0
    np.testing.assert_allclose(sol.transitions.times, [time, np.inf], rtol=1e-12)
    expected = [4.0, limit - 2.0 * (5.0 - time)]
    np.testing.assert_allclose(sol.coordinates["hinge"][:, 0], expected, rtol=1e-10)
    np.testing.assert_allclose(sol.transitions.after.angles["hinge"][0], limit, rtol=1e-12)


def mobilities(rng, count):
    """Random mobilities (count, 3, 3) of contact points of mechanisms, some of them singular."""
    J = rng.normal(size=(count, 3, 4)) * 10 ** rng.uniform(-1, 1, (count, 1, 4))
    J[: count // 10, :, 1:] = 0.0
    return J @ np.swapaxes(J, 1, 2)


def test_impacts_with_friction_never_add_energy(rng):
    """The impulse pushes, lies in the friction cone, separates the bodies, and takes energy."""
    count = 20_000
    W = mobilities(rng, count)
    wedged = np.arange(count) < count // 10
    u = rng.normal(size=(count, 3))
    u[wedged] = W[wedged, :, 0] / W[wedged, :1, 0] * u[wedged, :1]
    u *= -np.sign(u[:, :1])
    e = np.where(np.arange(count) % 5 == 0, np.arange(count) % 10 / 5.0, rng.uniform(0, 1, count))
    mu = 10 ** rng.uniform(-6, 1, count)
    P = np.asarray(jax.jit(jax.vmap(frictional_impulse))(W, u, e, mu))
    change = np.einsum("nij,nj->ni", W, P)
    gain = np.einsum("ni,ni->n", u + 0.5 * change, P)
    assert np.max(gain / -(u[:, 0] * P[:, 0])) < 1e-12
    assert P[:, 0].min() > 0
    assert np.max(np.hypot(P[:, 1], P[:, 2]) / (mu * P[:, 0])) < 1 + 1e-12
    assert np.min((u + change)[:, 0] / -u[:, 0]) > -1e-10


def test_impacts_without_friction_follow_newtons_law(rng):
    W = mobilities(rng, 1000)
    u = rng.normal(size=(1000, 3))
    u[:, 0] = -np.abs(u[:, 0])
    e = rng.uniform(0, 1, 1000)
    P = jax.jit(jax.vmap(frictional_impulse))(W, u, e, np.zeros(1000))
    np.testing.assert_allclose(P[:, 0], -(1 + e) * u[:, 0] / W[:, 0, 0], rtol=1e-12)
    np.testing.assert_array_equal(P[:, 1:], 0.0)
    assert not np.any(frictional_impulse(W[0], -u[0], 0.5, 0.3))


def planar_impulse(k, a, b, u, s, e, mu):
    """Impulse (normal, tangential) of Routh's construction in a plane, by pieces that are straight:
    mobilities k, a, b; normal velocity u and slip s before."""
    p = q = work = 0.0
    lowest = None
    while True:
        sticks = s == 0 and abs(a / b) <= mu
        friction = -a / b if sticks else -mu * np.sign(s or a)
        rate, slide = k + a * friction, 0.0 if sticks else a + b * friction
        ends = [-s / slide if s * slide < 0 else np.inf]
        if lowest is None:
            ends.append(-u / rate if rate > 0 else np.inf)
        else:
            missing = (1 - e * e) * lowest - work
            ends.append((np.sqrt(u * u + 2 * rate * missing) - u) / rate)
        step = min(ends)
        work += (u + 0.5 * rate * step) * step
        p, q, u = p + step, q + friction * step, u + rate * step
        s = 0.0 if ends[0] <= step else s + slide * step
        if ends[1] <= step:
            if lowest is not None:
                return p, q
            lowest, u = work, 0.0


def test_impacts_in_a_plane_follow_rouths_construction(rng):
    """Sliding, sticking and reversed slip in closed form, and derivatives in both modes."""
    k, b = rng.uniform(0.5, 2, (2, 300))
    a = rng.uniform(-0.9, 0.9, 300) * np.sqrt(k * b)
    u, s = -rng.uniform(0.2, 2, 300), rng.normal(size=300)
    e, mu = rng.uniform(0.1, 1, 300), rng.uniform(0.05, 1.5, 300)
    expected = [planar_impulse(*values) for values in zip(k, a, b, u, s, e, mu, strict=True)]
    zero, one = np.zeros(300), np.ones(300)
    W = np.array([[k, a, zero], [a, b, zero], [zero, zero, one]]).transpose(2, 0, 1)
    velocity = np.stack([u, s, zero], 1)
    P = jax.jit(jax.vmap(frictional_impulse))(W, velocity, e, mu)
    # The direction is constant in each step, so that a slip that ends is found exactly.
    np.testing.assert_allclose(P[:, :2], expected, rtol=1e-9, atol=1e-9)

    def impulse(x):
        return frictional_impulse(jnp.asarray(W[0]), x[:3], x[3], x[4])

    at = jnp.array([*velocity[0], e[0], mu[0]])
    forward, reverse = jax.jacfwd(impulse)(at), jax.jacrev(impulse)(at)
    np.testing.assert_allclose(forward, reverse, atol=1e-12)
    steps = 1e-6 * np.eye(5)[[0, 1, 3, 4]]
    slopes = [(impulse(at + step) - impulse(at - step)) / 2e-6 for step in steps]
    np.testing.assert_allclose(forward[:, [0, 1, 3, 4]], np.transpose(slopes), atol=1e-7)


def test_arguments():
    with pytest.raises(ValueError, match="between 0 and 1; got 1.5"):
        rj.Restitution(1.5)
    with pytest.raises(ValueError, match="friction=...)` must be >= 0".replace(")", r"\)")):
        rj.Restitution(0.5, friction=-1.0)
    with pytest.raises(ValueError, match='"upper" or "lower"; got \'left\''):
        rj.JointStop("hinge", 0.5, "left")
    with pytest.raises(ValueError, match="must not be zero"):
        rj.PlaneContact(normal=(0, 0, 0))
    with pytest.raises(ValueError, match="must be >= 0; got -1"):
        rj.PlaneContact(radius=-1.0)
    model, state = rj.NullSpace(SYSTEM), rj.jointed_state(SYSTEM, {"hinge": RELEASE})
    for when, change, message in (
        (rj.JointStop("hinge", 4.0, "upper"), rj.Restitution(1.0), "lies beyond pi"),
        (rj.JointStop("knee", 1.0, "upper"), rj.Restitution(1.0), "no joint called 'knee'"),
        (rj.PlaneContact("foot"), rj.Restitution(1.0), "foot"),
        (STOPPER.when, rj.Restitution(1.0, friction=0.1), "acts at the point of a"),
    ):
        with pytest.raises(ValueError, match=message):
            rj.simulate(model, state, 1.0, transitions=[rj.Transition(when, change)])
