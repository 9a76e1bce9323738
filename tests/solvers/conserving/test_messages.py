"""Errors of the conserving schemes, and the alternatives that they name."""

import equinox as eqx
import jax.numpy as jnp
import pytest
from solvers.conserving import models

import rigidjax as rj
from rigidjax.solvers import EnergyMidpoint, EnergyMomentum, SimoWong, Variational

BODY = models.FREE.system
STATE0 = models.FREE.state0
TWO = models.tethered_pair()
CHAIN = rj.problems.chain(2)


def assert_refused(model, state0, solver, message, **options):
    with pytest.raises(ValueError, match=message):
        rj.simulate(model, state0, 1.0, solver=solver, **{"dt": 0.1, **options})


@pytest.mark.parametrize("solver", [EnergyMomentum(), SimoWong(), Variational(), EnergyMidpoint()])
def test_unsupported_models_raise(solver):
    name = type(solver).__name__
    assert_refused(
        rj.NullSpace(BODY, rj.RotationVector()), STATE0, solver,
        rf"`{name}` is written in the coordinates of `rj.Quaternion\(\)`.*`RotationVector`.*Dopri8",
    )  # fmt: skip
    assert_refused(
        rj.Absolute(BODY, index=3), STATE0, solver,
        rf"`{name}` solves for the multipliers.*index=3.*`rj.solvers.Radau5\(\)`",
    )  # fmt: skip
    assert_refused(
        rj.NullSpace(BODY, rates="space"), STATE0, solver, rf'`{name}` .*Use rates="body"'
    )
    assert_refused(
        rj.EulerParameters(BODY), STATE0, solver, rf"`{name}` takes .*; got `EulerParameters`"
    )


def test_unsupported_joints_raise():
    assert_refused(
        rj.NullSpace(CHAIN.system), CHAIN.state0, SimoWong(),
        r"is for bodies without joints.*got 2 joint\(s\).*EnergyMomentum.*EnergyMidpoint",
    )  # fmt: skip


def test_variational_in_directors_raises():
    assert_refused(
        rj.NullSpace(BODY, rj.Directors()), STATE0, Variational(),
        r"coordinates of `rj.Quaternion\(\)`; got `Directors`",
    )  # fmt: skip


def test_unsupported_energy_midpoint_raises():
    assert_refused(
        rj.NullSpace(BODY), STATE0, EnergyMidpoint(),
        r'two equal moments.*mean="angular-velocity".*any_inertia=True.*Got',
    )  # fmt: skip
    assert_refused(
        rj.NullSpace(TWO), TWO.reference_state(), EnergyMidpoint(), "one body with a fixed point"
    )
    assert_refused(
        rj.Absolute(CHAIN.system), CHAIN.state0, EnergyMidpoint(),
        "one body on one `Spherical` joint to the ground; got 2 bodies",
    )  # fmt: skip
    top = rj.System(
        rj.Body("top", 1.0, (1.0, 1.0, 1.0), (0.0, 0.0, 1.0)),
        [rj.Spherical("ground", "top", (0.0, 0.0, 0.0))],
    )
    assert_refused(
        rj.NullSpace(top), top.reference_state(), EnergyMidpoint(),
        r"velocity of the centre of mass.*Use `rj.Absolute\(system, rj.Quaternion\(\), index=0\)`",
    )  # fmt: skip

    @eqx.filter_jit
    def run_traced(inertia):
        model = rj.NullSpace(rj.FixedPointBody(inertia))
        state0 = rj.State(angular_velocity=(1.0, 2.0, 2.0))
        return rj.simulate(model, state0, 0.1, solver=EnergyMidpoint(), dt=0.1).ys

    with pytest.raises(RuntimeError, match="two equal moments"):
        run_traced(jnp.array([6.0, 8.0, 3.0]))
    assert jnp.all(jnp.isfinite(run_traced(jnp.array([6.0, 6.0, 3.0]))))


def test_unsupported_saddle_point_form_raises():
    solver = EnergyMomentum(form="saddle-point")
    for model in (rj.NullSpace(BODY, rj.Directors()), rj.NullSpace(TWO)):
        state0 = STATE0 if model.system is BODY else TWO.reference_state()
        assert_refused(model, state0, solver, r"`FixedPointBody` in `rj.Quaternion\(\)`")


def test_invalid_options_raise():
    with pytest.raises(ValueError, match=r'form=...\)` must be "reduced", "saddle-point" or "null'):
        EnergyMomentum(form="full")
    with pytest.raises(ValueError, match=r'conserve=...\)` must be "momentum" or "energy"; got'):
        SimoWong(conserve="all")
    with pytest.raises(ValueError, match=r"half_rotation=...\)` must be .*; got 'half'"):
        EnergyMidpoint(half_rotation="half")
    with pytest.raises(ValueError, match=r"mean=...\)` must be .*; got 'momentum'"):
        EnergyMidpoint(mean="momentum")


def test_adaptive_steps_raise():
    assert_refused(
        rj.NullSpace(BODY), STATE0, EnergyMomentum(), r"pass `simulate\(dt=...\)`", dt=None
    )
    assert_refused(
        rj.NullSpace(BODY), STATE0, EnergyMomentum(), "conserves energy and momentum itself",
        projection=rj.projection.MassMetric(),
    )  # fmt: skip
