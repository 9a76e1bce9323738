"""Identities of every joint at random relative poses that it allows."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from formulations.cases import error, round_off
from joints import cases
from joints.cases import KINDS, T

import rigidjax as rj
from rigidjax.joints import RelativePose
from rigidjax.joints.axes import unit_vector
from rigidjax.rotations import so3

TIME = jnp.asarray(T)
every_joint = pytest.mark.parametrize("kind", KINDS)


@functools.cache
def joint_of(kind):
    return KINDS[kind]("one", "two")


def after(relative, twist):
    """The relative pose after a finite motion with a constant twist, by the exponential map."""
    rotation = so3.exp(twist[3:]) @ relative.rotation
    return RelativePose(relative.displacement + twist[:3], rotation, relative.turns)


def derivative(function, *at):
    """Derivative of a function of a number at zero, or along each of several at 1, 0."""
    return jax.jvp(function, at, (jnp.ones(()), *(jnp.zeros(()) for _ in at[1:])))[1]


def values(joint, relative, twist, nu):
    """All that is compared, at one relative pose."""
    zero = jnp.zeros(())
    out = {
        "constraint": joint.constraint(relative, TIME),
        "coordinates": joint.coordinates(relative),
        "gradient": joint.constraint_jacobian(relative, TIME),
        "rate": joint.constraint_rate(relative, twist, TIME),
        "moving": derivative(lambda s: joint.constraint(after(relative, s * twist), TIME), zero),
        "passing": derivative(lambda t: joint.constraint(relative, t), TIME),
        "prescribed": (s := joint.prescribed_twist(relative, TIME)),
        "prescribed rate": joint.constraint_rate(relative, s, TIME),
    }
    if joint.closes_loops_only:
        return out
    out["null space"] = (S := joint.null_space(relative))
    allowed = S @ nu[: joint.num_rates] + s
    out["coordinate rates"] = derivative(
        lambda e: joint.coordinates(after(relative, e * allowed)), zero
    )
    return out


@every_joint
def test_constraints_gradients_and_null_spaces(kind):
    """At poses that the coordinates give, and along rigid motions."""
    rng = np.random.default_rng(11)
    joint, count = joint_of(kind), 8
    q = np.stack([cases.random_coordinates(kind, rng) for _ in range(count)])
    poses = jax.tree.map(lambda *a: jnp.stack(a), *(cases.relative(kind, row, rng) for row in q))
    twists, nu = rng.normal(size=(count, 6)), rng.normal(size=(count, 6))
    out = jax.jit(jax.vmap(lambda *args: values(joint, *args)))(poses, twists, nu)
    out = jax.tree.map(np.asarray, out)
    g, G, driven = out["constraint"], out["gradient"], kind.startswith("driven")
    assert g.shape[1:] == (cases.NUM_CONSTRAINTS[kind],) == (joint.num_constraints,)
    assert joint.num_constraints + joint.num_rates == 6
    # Revolutions cost a few units of round-off of an angle of 10.
    assert error(g, 0.0 * g) < round_off(50)
    if kind == "Distance":
        q = q * 0 + np.linalg.norm(np.subtract(cases.POINT_2, cases.POINT))
    assert error(out["coordinates"], q) < round_off(20)

    moving = np.einsum("kmi,ki->km", G, twists)
    assert error(moving, out["moving"]) < round_off(20)
    assert error(out["rate"], out["moving"] + out["passing"]) < round_off(20)
    assert (np.abs(out["passing"]).max() > 0) == driven

    assert np.all(np.linalg.matrix_rank(G) == joint.num_constraints)
    # Constraints that a displacement changes are lengths.
    moves = np.abs(G[:, :, :3]).max(axis=(0, 2)) > 0
    assert joint.constraint_is_length == tuple(moves)
    assert np.abs(out["prescribed rate"]).max() < round_off(50)
    assert (np.abs(out["prescribed"]).max() > 0) == driven
    if joint.closes_loops_only:
        with pytest.raises(NotImplementedError, match="`Distance` closes loops only"):
            joint.null_space(cases.reference(kind))
        return
    S = out["null space"]
    assert S.shape[1:] == (6, joint.num_rates)
    assert joint.num_rates == 0 or np.all(np.linalg.matrix_rank(S) == joint.num_rates)
    assert error(G @ S, 0.0 * (G @ S)) < round_off(20)
    if kind in cases.SCALAR:
        rates = np.full((count, 1), cases.MOTION_RATE) if driven else nu[:, : joint.num_rates]
        assert error(out["coordinate rates"], rates) < round_off(20)


def test_derivatives_of_a_screw_are_finite_in_the_reference_configuration():
    joint, relative = joint_of("Screw"), cases.reference("Screw")

    def mix_components(twist):
        moved = after(relative, twist)
        parts = joint.constraint(moved, TIME), joint.coordinates(moved)
        out = jnp.concatenate([*parts, joint.null_space(moved).ravel()])
        return out @ jnp.cos(jnp.arange(out.size))

    reverse, forward, second = jax.jit(
        lambda twist: (
            jax.grad(mix_components)(twist),
            jax.jacfwd(mix_components)(twist),
            jax.jacfwd(jax.grad(mix_components))(twist),
        )
    )(jnp.zeros(6))
    assert jnp.all(jnp.isfinite(reverse)) and jnp.all(jnp.isfinite(second))
    assert error(forward, reverse) < round_off(10)


@every_joint
def test_frames_are_rotations_whose_axes_are_those_given(kind):
    joint = joint_of(kind)
    frame, (first, second) = np.asarray(joint.frame()), joint.points()
    assert error(frame.T @ frame, np.eye(3)) < round_off(5)
    assert np.linalg.det(frame) > 0
    assert np.array_equal(first, cases.POINT)
    assert np.array_equal(second, cases.POINT_2 if kind == "Distance" else cases.POINT)
    if kind in ("Spherical", "Weld", "Distance"):
        return
    axis = np.asarray(cases.AXIS)
    along = frame[:, 0] if kind == "Universal" else frame[:, 2]
    assert error(along, axis / np.linalg.norm(axis)) < round_off(5)
    if kind == "Universal":
        assert error(frame[:, 1], np.asarray(cases.AXIS_2) / np.sqrt(5.0)) < round_off(5)


def test_every_axis_has_a_frame_with_finite_derivatives():
    axes = np.array([*np.eye(3), *-np.eye(3), (1.0, 1.0, 1.0), (0.0, 1e-9, 0.0), (2.0, 2.0, 0.0)])

    def frame(axis):
        return rj.Revolute("one", "two", cases.POINT, axis).frame()

    both = jax.jit(jax.vmap(lambda axis: (frame(axis), jax.jacfwd(frame)(axis))))
    frames, derivatives = both(axes)
    assert error(frames[:, :, 2], axes / np.linalg.norm(axes, axis=1, keepdims=True)) < round_off(5)
    assert error(jnp.swapaxes(frames, 1, 2) @ frames, np.tile(np.eye(3), (9, 1, 1))) < round_off(5)
    assert jnp.all(jnp.isfinite(derivatives))


def test_axes_of_any_length_have_the_same_frame():
    """Squares of their components overflow or underflow; the frame's derivative has their scale."""
    a, b = np.array([1.0, 2.0, -2.0]), np.array([2.0, 1.0, 2.0])
    size = 1e200 if jnp.result_type(float) == jnp.float64 else 1e30
    point = (0.0, 0.0, 0.0)
    builders = [
        lambda k: rj.Revolute("a", "b", point, k * a),
        lambda k: rj.Prismatic("a", "b", k * a),
        lambda k: rj.Cylindrical("a", "b", point, k * a),
        lambda k: rj.Planar("a", "b", point, k * a),
        lambda k: rj.Screw("a", "b", point, k * a, 0.1),
        lambda k: rj.Universal("a", "b", point, k * a, k * b),
        lambda k: rj.Universal("a", "b", point, k * a, b / k),
    ]
    for build in builders:
        expected = build(1.0).frame()
        for k in (size, 1.0 / size):
            np.testing.assert_allclose(build(k).frame(), expected, atol=round_off(4.0))
    axis, change = jnp.asarray(a), jnp.asarray([0.3, 0.1, -0.2])
    _, rate = jax.jvp(unit_vector, (axis,), (change,))
    _, scaled_rate = jax.jvp(unit_vector, (size * axis,), (size * change,))
    np.testing.assert_allclose(scaled_rate, rate, atol=round_off(4.0))
    e = a / np.linalg.norm(a)
    exact = (np.asarray(change) - e * (e @ np.asarray(change))) / np.linalg.norm(a)
    np.testing.assert_allclose(rate, exact, atol=round_off(4.0))


def test_frames_of_axes_along_coordinates_and_diagonals_do_not_jump():
    axes = np.array([*np.eye(3), *-np.eye(3), (1, 1, 0), (1, 0, 1), (0, 1, 1), (1, 1, 1)], float)
    frame = jax.vmap(lambda axis: rj.Planar("one", "two", cases.POINT, axis).frame())
    at = frame(axes)
    for change in 1e-6 * np.array([*np.eye(3), *-np.eye(3)]):
        assert error(frame(axes + change), at) < 5e-6


def test_screw_without_pitch_and_with_revolutions_from_its_displacement():
    flat = rj.Screw("one", "two", cases.POINT, cases.AXIS, 0.0)
    turned = RelativePose(jnp.zeros(3), cases.relative("Screw", [2.0]).rotation, jnp.zeros(()))
    assert error(flat.coordinates(turned), jnp.array([2.0])) < round_off(5)
    assert error(flat.constraint(turned, TIME), jnp.zeros(5)) == 0.0

    def by_pitch(pitch):
        screw = rj.Screw("one", "two", cases.POINT, cases.AXIS, pitch)
        return jnp.sum(screw.constraint(turned, TIME))

    assert jnp.isfinite(jax.grad(by_pitch)(0.0))
    far = cases.relative("Screw", [-20.0])
    bare = RelativePose(far.displacement, far.rotation, jnp.zeros(()))
    assert error(joint_of("Screw").coordinates(bare), jnp.array([-20.0])) < round_off(5)
    assert error(joint_of("Screw").constraint(bare, TIME), jnp.zeros(5)) < round_off(5)
