"""Errors of the solvers with steps of a fixed length, and the alternatives that they name."""

import diffrax
import equinox as eqx
import jax.numpy as jnp
import pytest
from solvers.conserving import models

import rigidjax as rj
from rigidjax.solvers import (
    EnergyMidpoint,
    EnergyMomentum,
    GeneralizedAlpha,
    MuntheKaas,
    SimoWong,
    Variational,
)

BODY = models.FREE.system
TWO = rj.System([rj.Body(name, 1.0, (0.4, 0.5, 0.6)) for name in "ab"])
CHAIN = rj.problems.chain(2).system
TOP = rj.System(
    rj.Body("top", 1.0, (1.0, 1.0, 1.0), (0.0, 0.0, 1.0)),
    [rj.Spherical("ground", "top", (0.0, 0.0, 0.0))],
)
SADDLE_POINT = EnergyMomentum(form="saddle-point")


def assert_refused(model, solver, message, **options):
    system = model.system
    state0 = system.reference_state() if isinstance(system, rj.System) else rj.State()
    with pytest.raises(ValueError, match=message):
        rj.simulate(model, state0, 1.0, solver=solver, **{"dt": 0.1, **options})


@pytest.mark.parametrize("solver", [EnergyMomentum(), SimoWong(), Variational(), EnergyMidpoint()])
def test_unsupported_models_of_conserving_schemes_raise(solver):
    name = type(solver).__name__
    for model, message in (
        (rj.NullSpace(BODY, rj.RotationVector()),
         rf"`{name}` is written in the coordinates of `rj.Quaternion\(\)`.*`RotationV.*Dopri8"),
        (rj.Absolute(BODY, index=3),
         rf"`{name}` solves for the multipliers.*index=3.*`rj.solvers.Radau5\(\)`"),
        (rj.NullSpace(BODY, rates="space"), rf'`{name}` .*Use rates="body"'),
        (rj.EulerParameters(BODY), rf"`{name}` takes .*; got `EulerParameters`"),
    ):  # fmt: skip
        assert_refused(model, solver, message)


@pytest.mark.parametrize(
    ("model", "solver", "message"),
    [
        (rj.NullSpace(CHAIN), SimoWong(),
         r"is for bodies without joints.*got 2 joint\(s\).*EnergyMomentum.*EnergyMidpoint"),
        (rj.NullSpace(CHAIN), EnergyMomentum(form="null-space"), "takes no joints"),
        (rj.NullSpace(BODY, rj.Directors()), Variational(),
         r"coordinates of `rj.Quaternion\(\)`; got `Directors`"),
        (rj.NullSpace(BODY, rj.Directors()), SADDLE_POINT,
         r"`FixedPointBody` in `rj.Quaternion\(\)`"),
        (rj.NullSpace(TWO), SADDLE_POINT, r"`FixedPointBody` in `rj.Quaternion\(\)`"),
        (rj.NullSpace(BODY), EnergyMidpoint(),
         r'two equal moments.*mean="angular-velocity".*any_inertia=True.*Got'),
        (rj.NullSpace(TWO), EnergyMidpoint(), "one body with a fixed point"),
        (rj.Absolute(CHAIN), EnergyMidpoint(),
         "one body on one `Spherical` joint to the ground; got 2 bodies"),
        (rj.NullSpace(TOP), EnergyMidpoint(),
         r"velocity of the centre of mass.*`rj.Absolute\(system, rj.Quaternion\(\), index=0\)`"),
        (rj.Absolute(TOP), GeneralizedAlpha(),
         "got index=0. For another index use `rj.solvers.Radau5"),
        (rj.Absolute(TOP, rj.Directors(), index=3), GeneralizedAlpha(), "got `Directors`"),
        (rj.NullSpace(BODY, rates="space"), GeneralizedAlpha(),
         "in body rates; got `NullSpace`"),
        (rj.NullSpace(CHAIN), GeneralizedAlpha(), "null-space coordinates with joints use"),
        (rj.Absolute(BODY), MuntheKaas(),
         r"NullSpace\(system, rj.Quaternion.*got `Absolute\(index=0"),
        (rj.Absolute(BODY, index=3), MuntheKaas(), "index 3 use `rj.solvers.GeneralizedAlpha"),
        (rj.NullSpace(BODY, rj.Directors()), MuntheKaas(), "got `Directors`"),
        (rj.NullSpace(BODY, rj.RotationVector()), MuntheKaas(), "got `RotationVector`"),
    ],
)  # fmt: skip
def test_unsupported_models_raise(model, solver, message):
    assert_refused(model, solver, message)


def test_traced_moments_that_are_not_equal_raise():
    @eqx.filter_jit
    def run_traced(inertia):
        model = rj.NullSpace(rj.FixedPointBody(inertia))
        state0 = rj.State(angular_velocity=(1.0, 2.0, 2.0))
        return rj.simulate(model, state0, 0.1, solver=EnergyMidpoint(), dt=0.1).ys

    with pytest.raises(RuntimeError, match="two equal moments"):
        run_traced(jnp.array([6.0, 8.0, 3.0]))
    assert jnp.all(jnp.isfinite(run_traced(jnp.array([6.0, 6.0, 3.0]))))


def test_invalid_options_raise():
    with pytest.raises(ValueError, match=r'form=...\)` must be "reduced", "saddle-point" or "null'):
        EnergyMomentum(form="full")
    with pytest.raises(ValueError, match=r'conserve=...\)` must be "momentum" or "energy"; got'):
        SimoWong(conserve="all")
    with pytest.raises(ValueError, match=r"half_rotation=...\)` must be .*; got 'half'"):
        EnergyMidpoint(half_rotation="half")
    with pytest.raises(ValueError, match=r"mean=...\)` must be .*; got 'momentum'"):
        EnergyMidpoint(mean="momentum")
    for radius in (-0.1, 1.1, "0.9", float("nan")):
        with pytest.raises(ValueError, match="must be a number from 0"):
            GeneralizedAlpha(radius)
    for method in (diffrax.Kvaerno5(), diffrax.Dopri5):
        with pytest.raises(TypeError, match="takes an explicit Runge-Kutta method of diffrax"):
            MuntheKaas(method)
    with pytest.raises(ValueError, match="largest power of commutators, an integer >= 0"):
        MuntheKaas(truncated=-1)


def test_adaptive_steps_and_projections_raise():
    model = rj.NullSpace(BODY)
    assert_refused(model, EnergyMomentum(), r"pass `simulate\(dt=...\)`", dt=None)
    assert_refused(model, GeneralizedAlpha(), "steps of a fixed length", dt=None)
    message = r"steps of a fixed length: pass `simulate\(dt="
    assert_refused(model, MuntheKaas(diffrax.Euler()), message, dt=None)
    message = "conserves energy and momentum itself"
    assert_refused(model, EnergyMomentum(), message, projection=rj.projection.MassMetric())
