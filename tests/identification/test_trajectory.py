"""Periodic trajectories within limits."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from identification.arms import planar_arm

import rigidjax as rj
from rigidjax import identification as ident
from rigidjax.identification.design.motion_limits import stack_limits
from rigidjax.identification.design.periodic import TreeRows

LIMITS = {
    "shoulder": ident.MotionLimits((-2.0, 1.0), 3.0, torque=12.0),
    "elbow": ident.MotionLimits((-2.5, 2.5), 4.0, 14.0, torque=1.5),
}
PERIOD = 5.0


@pytest.fixture(scope="module")
def arm():
    """The arm with its centres of mass away from the joints, as gravity is to act."""
    system = planar_arm()
    parameters = np.array(ident.inertial_parameters(system))
    parameters[[1, 11]] = 0.1, 0.07
    parameters[[6, 9, 16, 19]] += 0.05
    return ident.with_inertial_parameters(system, parameters)


@pytest.fixture(scope="module")
def trajectory(arm):
    floor = ident.WorkspaceBox(
        "fore", (-np.inf, -np.inf, -0.2), (np.inf, np.inf, np.inf), (0.1, 0, 0)
    )
    return ident.design_trajectory(
        arm, LIMITS, period=PERIOD, harmonics=3, workspace=[floor], terms=("viscous",),
        nominal={"shoulder.viscous": 0.4}, num_starts=2, max_iterations=40,
    )  # fmt: skip


def test_score_is_the_information_and_better_than_random_motions(trajectory, arm):
    """The determinant by a regressor of its own; other motions within the limits have less."""
    ts = PERIOD * np.arange(24) / 24

    def information(q, v, a):
        data = ident.joint_data(arm, q, v, a, np.zeros_like(q), terms=("viscous",))
        W = data.matrix[:, :, trajectory.base.chosen] / np.array([12.0, 1.5])[:, None]
        W = W.reshape(-1, 8)
        return np.linalg.slogdet(W.T @ W)[1] / 8

    best = information(*trajectory.samples(ts))
    rng = np.random.default_rng(0)
    for _ in range(20):
        # Rates at the start differ, which leaves more freedom.
        sine, cosine = rng.normal(size=(2, 3, 2))
        k = np.arange(1, 4) * 2 * np.pi / PERIOD
        v = np.cos(np.outer(ts, k)) @ (k[:, None] * sine) - np.sin(np.outer(ts, k)) @ (
            k[:, None] * cosine
        )
        scale = np.abs(v).max(axis=0) / [3.0, 4.0]
        q = (np.sin(np.outer(ts, k)) @ sine + np.cos(np.outer(ts, k)) @ cosine) / scale
        a = -(np.sin(np.outer(ts, k)) @ (k[:, None] ** 2 * sine)) / scale
        a -= np.cos(np.outer(ts, k)) @ (k[:, None] ** 2 * cosine) / scale
        if np.abs(q).max(axis=0)[0] < 1.5 and np.abs(q).max(axis=0)[1] < 2.5:
            assert information(q - [0.5, 0], v / scale, a) < best


def test_derivatives_are_exact(arm):
    """Score, torques and points against central differences."""
    box = ident.WorkspaceBox("fore", (-1, -1, -1), (1, 1, 1), (0.1, 0, 0))
    labels = rj.rate_labels(arm)
    rows = TreeRows(arm, labels, [box], ("viscous",), {}, stack_limits(LIMITS, labels))
    rng = np.random.default_rng(1)
    x, d = rng.normal(size=(24, 6)), rng.normal(size=(24, 6))
    h = 1e-6
    _, slope = rows.score(x)
    change = (rows.score(x + h * d)[0] - rows.score(x - h * d)[0]) / (2 * h)
    assert np.sum(slope * d) == pytest.approx(change, rel=1e-6)
    found = np.einsum("tnk,tk->tn", rows.differentiate_bounded(x), d)
    ends = [np.concatenate(rows.evaluate_bounded(x + s * h * d), axis=1) for s in (1, -1)]
    np.testing.assert_allclose(found, (ends[0] - ends[1]) / (2 * h), rtol=1e-6, atol=1e-7)


def test_csv_has_one_period(trajectory, tmp_path):
    trajectory.to_csv(tmp_path / "a.csv", 100.0)
    table = np.genfromtxt(tmp_path / "a.csv", delimiter=",", names=True, deletechars="")
    assert len(table) == 501 and table["time_s"][-1] == PERIOD
    np.testing.assert_allclose(
        table["q.elbow"], jax.vmap(trajectory.series("elbow"))(table["time_s"])
    )
    np.testing.assert_allclose(table["tau.elbow"], trajectory.torques(table["time_s"])[:, 1])
    with pytest.raises(FileExistsError):
        trajectory.to_csv(tmp_path / "a.csv", 100.0)
    with pytest.raises(ValueError, match="must be above 1.2 Hz, twice the highest"):
        trajectory.to_csv(tmp_path / "b.csv", 1.0)
    with pytest.raises(ValueError, match="takes one of .*; got 'hip'"):
        trajectory.series("hip")


def test_free_bodies_turn_by_their_rotation_vector():
    """Force and moment on a moved body are those of Newton and Euler, by differences of poses."""
    body = rj.Body("plate", 1.7, (0.02, 0.05, 0.06))
    system = rj.System([body], [], rj.Gravity((0, 0, -9.81)))
    labels = rj.rate_labels(system)
    limits = {label: ident.MotionLimits((-1.0, 1.0)) for label in labels}
    rows = TreeRows(system, labels, [], (), {}, stack_limits(limits, labels))
    assert rows.base.rank == 10
    rng = np.random.default_rng(2)
    q, v, a = rng.normal(size=(3, 6)) * 0.6
    h = 1e-4
    poses = [q + s * h * v + 0.5 * (s * h) ** 2 * a for s in (-1, 0, 1)]
    R = [np.asarray(rj.RotationVector().to_matrix(jnp.asarray(p[3:]))) for p in poses]
    omega = [R[k].T @ (R[k + 1] - R[k]) / h for k in (0, 1)]
    w0, w1 = (
        np.array([m[2, 1] - m[1, 2], m[0, 2] - m[2, 0], m[1, 0] - m[0, 1]]) / 2 for m in omega
    )
    w, inertia = (w0 + w1) / 2, np.array([0.02, 0.05, 0.06])
    moment = inertia * (w1 - w0) / h + np.cross(w, inertia * w)
    (tau,), _ = rows.evaluate_bounded(np.concatenate([q, v, a])[None])
    np.testing.assert_allclose(tau[:3], 1.7 * (a[:3] - [0, 0, -9.81]), rtol=1e-10)
    np.testing.assert_allclose(tau[3:], moment, atol=2e-4)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"period": 0.0}, "must be positive, s; got 0.0"),
        ({"harmonics": 1}, "needs at least 2 harmonics, 1 start and 1 iteration; got 1"),
        ({"limits": {"shoulder": LIMITS["shoulder"]}}, "one `MotionLimits` for each of"),
        ({"terms": ("drag",)}, r"`design_trajectory\(terms=...\)` takes of .* got 'drag'"),
        ({"nominal": {"elbow.coulomb": 1.0}}, r"takes values of \['shoulder.viscous', 'elbow.vis"),
    ],
)
def test_wrong_designs(arm, change, message):
    arguments = {"limits": LIMITS, "period": PERIOD, "terms": ("viscous",), **change}
    with pytest.raises(ValueError, match=message):
        ident.design_trajectory(arm, **arguments)


def test_limits_that_no_motion_meets(arm):
    """Gravity takes more than the torque limit wherever the arm may be."""
    limits = {**LIMITS, "shoulder": ident.MotionLimits((-0.2, 0.2), 3.0, torque=0.1)}
    with pytest.raises(ValueError, match="no motion within the limits was found from 1 starts"):
        ident.design_trajectory(
            arm, limits, period=PERIOD, harmonics=2, num_starts=1, max_iterations=2
        )


def test_wrong_limits():
    with pytest.raises(ValueError, match=r"the lower first; got \(1.0, -1.0\)"):
        ident.MotionLimits((1.0, -1.0))
    with pytest.raises(ValueError, match=r"`MotionLimits\(rate=...\)` must be positive; got 0.0"):
        ident.MotionLimits((-1.0, 1.0), 0.0)
    with pytest.raises(ValueError, match="must have shape .3,., low below high"):
        ident.WorkspaceBox("fore", (0, 0, 0), (1, 1, -1))
