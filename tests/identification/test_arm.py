"""The measured arm: what a regression of it finds, and how it predicts the other half."""

import pathlib

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.signal import butter, filtfilt

import rigidjax as rj
from rigidjax import identification as ident

DATA = pathlib.Path(rj.__file__).resolve().parents[1] / "datasets" / "staubli_tx40"
TERMS = ("rotor", "viscous", "coulomb", "offset")
# Beginning and end of a filter without delay are wrong.
EDGE = 20


def rotation(rpy):
    return np.asarray(rj.EulerAngles("ZYX").to_matrix(jnp.asarray(rpy[::-1])))


def system_and_prior(raw):
    """The arm with its frames at the joints; nominal links, link 6 as a small ball."""
    bodies, joints, prior, x, R = [], [], {}, np.zeros(3), np.eye(3)
    names = ["ground", *(f"link {i + 1}" for i in range(6))]
    for i, name in enumerate(names[1:]):
        x, R = x + R @ raw["joint_xyz"][i], R @ rotation(raw["joint_rpy"][i])
        mass, turn = raw["link_mass"][i], rotation(raw["link_rpy"][i])
        inertia = raw["link_inertia"][i] if i < 5 else np.eye(3) * 0.4 * mass * 0.03**2
        prior[name] = rj.MassProperties(mass, raw["link_center"][i], turn @ inertia @ turn.T)
        p = rj.Quaternion().from_matrix(jnp.asarray(R))
        bodies.append(rj.Body(name, mass, inertia, x, p))
        joints.append(rj.Revolute(names[i], name, x, R[:, 2], name=f"joint {i + 1}"))
    return rj.System(bodies, joints, rj.Gravity((0, 0, -9.81))), prior


@pytest.fixture(scope="module")
def halves():
    raw = np.load(DATA / "excitation.npz")
    dt = float(raw["dt"])
    num, den = butter(4, 50.0, fs=1 / dt)
    smooth = lambda x: filtfilt(num, den, x.astype(float), axis=0)  # noqa: E731
    ratio = np.diag(raw["reduction"])
    ratio[5, 4] = ratio[5, 5]
    q = np.linalg.solve(ratio, smooth(raw["motor_position"]).T).T
    q += np.pi / 2 * np.array([0, -1, 1, 0, 0, 0])
    v = np.gradient(q, dt, axis=0)
    a = np.gradient(v, dt, axis=0)
    tau = smooth(raw["motor_torque"]) @ ratio
    system, prior = system_and_prior(raw)
    zero = np.zeros((len(q), 4))

    def couple_motor(x):
        """Return the coupling of joints 5 and 6 by motor 6."""
        return np.column_stack([zero, x[:, 1], x[:, 0]])

    both = np.sign(v[:, 4] + v[:, 5])[:, None] * np.ones(2)
    extra = {
        "motor 6.rotor": couple_motor(a[:, 4:]),
        "motor 6.viscous": couple_motor(v[:, 4:]),
        "motor 6.coulomb": couple_motor(both),
    }
    middle = len(q) // 2
    parts = slice(EDGE, middle, 3), slice(middle, len(q) - EDGE, 3)
    data = [
        ident.joint_data(
            system, q[s], v[s], a[s], tau[s], terms=TERMS, extra={k: x[s] for k, x in extra.items()}
        )
        for s in parts
    ]
    return *data, prior


def test_halves_of_the_data_agree_within_their_intervals(halves):
    """Root-mean-square difference in standard deviations; friction differs between the halves.

    Standard deviations for independent residuals are far too small, and the report says so first.
    """
    first, second = (ident.regress(data) for data in halves[:2])
    assert first.base.chosen == second.base.chosen and first.method == second.method == "hac"

    def differ(method):
        variance = sum(linear.covariances[method].std ** 2 for linear in (first, second))
        return np.sqrt(np.mean((first.values - second.values) ** 2 / variance))

    assert differ("hac") < 1.6 and differ("model") > 3
    text = first.report()
    assert text.startswith("**Warning: the intervals may")
    assert "residuals of joint 1, joint 2, joint 3 and 3 more are not white" in text.split("\n")[0]
    assert "std (model)" in text and "allow for dependence within a run" in text
    assert str(first).startswith("Warning: ")


@pytest.mark.exhaustive
def test_base_parameters_and_friction(halves):
    """The rank that the source of the data states, and its friction from other measurements."""
    linear = ident.regress(halves[0])
    assert linear.base.rank == 61 and len(linear.data.labels) == 87
    assert linear.base.condition < 100
    found = dict(zip(linear.data.labels, linear.parameters, strict=True))
    viscous = [found[f"joint {i}.viscous"] for i in range(1, 7)]
    # Friction depends on temperature: not the same numbers on another day.
    np.testing.assert_allclose(viscous, [8.05, 5.53, 1.97, 1.11, 1.86, 0.65], rtol=0.2)


@pytest.mark.exhaustive
@pytest.mark.parametrize("nominal", [True, False])
def test_consistent_arm_predicts_the_other_half_better(halves, nominal):
    train, test, prior = halves
    linear = ident.regress(train)
    found = ident.consistent_regression(linear, prior=prior if nominal else None)
    for body in found.bodies.values():
        assert np.linalg.eigvalsh(body.pseudo_inertia())[0] > 0
    assert min(found.terms[label] for label in found.terms if "offset" not in label) > 0
    assert np.all(found.rms < 1.1 * linear.rms)

    def error(parameters):
        return np.linalg.norm(test.rms(parameters) / linear.noise)

    assert error(found.parameters) < error(linear.parameters)


@pytest.mark.exhaustive
def test_no_bodies_have_the_parameters_of_least_squares(halves):
    """With a negligible prior the residual remains larger: the minimum is not physical."""
    train, _, prior = halves
    linear = ident.regress(train)
    found = ident.consistent_regression(linear, prior=prior, weight=1e-4)
    excess = np.linalg.norm(found.rms / linear.noise) / np.linalg.norm(linear.rms / linear.noise)
    assert 1.005 < excess < 1.02
