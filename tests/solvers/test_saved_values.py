"""Values at saved times are as accurate as steps: error there against error at the steps."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx
import pytest

import rigidjax as rj
from rigidjax.simulate.arguments import Tolerances, set_root_finder_tolerances
from rigidjax.solvers import BDF, Odex, Radau5, Radau9, Radau13, Seulex, Unrolled, continuous
from rigidjax.solvers.dae.base import AbstractDAESolver

ECCENTRICITY, END = 0.5, 6.0
# No step ends at one of these but the last.
TIMES = np.append((np.arange(96) + 0.37) / 96.0 * END, END)


def kepler(t, y, strength):
    pull = strength / (y[0] ** 2 + y[1] ** 2) ** 1.5
    return jnp.stack([y[2], y[3], -y[0] * pull, -y[1] * pull])


def orbit(t):
    """Position and velocity, from Kepler's equation."""
    e, E = ECCENTRICITY, np.array(t)
    for _ in range(50):
        E = E - (E - e * np.sin(E) - t) / (1.0 - e * np.cos(E))
    r, b = 1.0 - e * np.cos(E), np.sqrt(1.0 - e * e)
    return np.stack([np.cos(E) - e, b * np.sin(E), -np.sin(E) / r, b * np.cos(E) / r], axis=-1)


def solve_orbit(solver, tolerance, adjoint, strength, *more):
    """The orbit at `TIMES` and at `more`, by diffrax alone."""
    controller = diffrax.PIDController(rtol=tolerance, atol=tolerance)
    if isinstance(solver, AbstractDAESolver):
        controller = solver.controller(tolerance, tolerance, optx.rms_norm)
    solver = continuous(set_root_finder_tolerances(solver, controller, Tolerances(None, None)))
    at_times = diffrax.SubSaveAt(ts=jnp.asarray(TIMES))
    return diffrax.diffeqsolve(
        diffrax.ODETerm(kepler), solver, 0.0, END, None, jnp.asarray(orbit(0.0)), strength,
        stepsize_controller=controller, adjoint=adjoint, max_steps=4096,
        saveat=diffrax.SaveAt(subs=[at_times, *more] if more else at_times),
    )  # fmt: skip


@eqx.filter_jit
def both(solver, tolerance):
    """Times and orbit at `TIMES` and at the steps, and the number of these."""
    steps = diffrax.SubSaveAt(steps=True)
    solution = solve_orbit(solver, tolerance, diffrax.ForwardMode(), 1.0, steps)
    return solution.ts, solution.ys, solution.stats["num_accepted_steps"]


# Their steps converge slowly: at tighter tolerances they would be thousands.
LOOSE = (diffrax.Heun, diffrax.Midpoint, diffrax.Ralston, diffrax.Bosh3, diffrax.Kvaerno3)
EVERY = [
    *(method() for method in LOOSE), diffrax.Dopri5(), diffrax.Tsit5(), diffrax.Dopri8(), Odex(),
    diffrax.Kvaerno4(), diffrax.Kvaerno5(), rj.solvers.RK4(), Unrolled(diffrax.Dopri8()), BDF(),
    Radau5(), Radau9(), Radau13(), Seulex(),
]  # fmt: skip


@pytest.mark.exhaustive(but=("Dopri8", "Radau5"))
@pytest.mark.parametrize("solver", EVERY, ids=lambda x: type(x).__name__)
def test_saved_values_are_as_accurate_as_steps(solver):
    tolerances = (1e-4, 1e-6) if type(solver) in LOOSE else (1e-4, 1e-6, 1e-8, 1e-10)
    for tolerance in tolerances:
        (_, ts), (saved, steps), count = both(solver, jnp.asarray(tolerance))
        saved_error = np.max(np.abs(saved - orbit(TIMES)))
        step_error = np.max(np.abs(steps[:count] - orbit(np.asarray(ts[:count]))))
        assert saved_error < 10.0 * step_error


TOP = rj.problems.heavy_top()
ABSOLUTE = rj.Absolute(TOP.system, rj.Quaternion(), index=3)
DIRECTORS = rj.NullSpace(TOP.system, rj.Directors())
BODY = rj.NullSpace(TOP.system, rj.Quaternion())
MIDPOINT = rj.solvers.EnergyMidpoint
FIXED = {
    "Dopri8": (diffrax.Dopri8(), BODY),
    "EnergyMomentum, quaternions": (rj.solvers.EnergyMomentum(), BODY),
    "EnergyMomentum, directors": (rj.solvers.EnergyMomentum(), DIRECTORS),
    "Variational": (rj.solvers.Variational(), BODY),
    "SimoWong": (rj.solvers.SimoWong(), BODY),
    "SimoWong, energy": (rj.solvers.SimoWong(conserve="energy"), BODY),
    "EnergyMidpoint": (MIDPOINT(mean="angular-velocity"), BODY),
    "EnergyMidpoint, as printed": (MIDPOINT(mean="angular-momentum", any_inertia=True), BODY),
    "MuntheKaas, RK4": (rj.solvers.MuntheKaas(rj.solvers.RK4()), BODY),
    "MuntheKaas, Dopri5": (rj.solvers.MuntheKaas(diffrax.Dopri5()), BODY),
    "MuntheKaas, Dopri8": (rj.solvers.MuntheKaas(diffrax.Dopri8()), BODY),
    "GeneralizedAlpha": (rj.solvers.GeneralizedAlpha(), ABSOLUTE),
    "Euler": (diffrax.Euler(), BODY),
    "Heun": (diffrax.Heun(), BODY),
    "Bosh3": (diffrax.Bosh3(), BODY),
    "Dopri5": (diffrax.Dopri5(), BODY),
    "Tsit5": (diffrax.Tsit5(), BODY),
    "ImplicitEuler": (diffrax.ImplicitEuler(), BODY),
    "Kvaerno3": (diffrax.Kvaerno3(), BODY),
    "Kvaerno4": (diffrax.Kvaerno4(), BODY),
    "Kvaerno5": (diffrax.Kvaerno5(), BODY),
    "Radau1": (rj.solvers.Radau1(), BODY),
    "Radau5": (Radau5(), BODY),
    "Radau9": (Radau9(), BODY),
    "Radau13": (Radau13(), BODY),
}


@pytest.fixture(scope="module")
def turning():
    """Attitude and angular velocity of the top at all eighths of steps."""
    ts = np.linspace(0.0, 0.5, 401)
    ends = diffrax.ClipStepSizeController(diffrax.PIDController(rtol=1e-13, atol=1e-13), step_ts=ts)
    states = rj.simulate(BODY, TOP.state0, 0.5, ts=ts, stepsize_controller=ends).states
    return attitudes(states), states.angular_velocity


def attitudes(states):
    return jax.vmap(rj.Quaternion().to_matrix)(states.orientation[:, 0])


@pytest.mark.exhaustive(but=("Dopri8", "GeneralizedAlpha"))
@pytest.mark.parametrize("name", FIXED)
def test_saved_values_between_fixed_steps(name, turning):
    solver, model = FIXED[name]
    iterates = isinstance(solver, diffrax.AbstractImplicitSolver)
    newton = {"rtol": 1e-12, "atol": 1e-12} if iterates else {}
    for dt, every in ((0.01, 8), (0.005, 4)):
        states = rj.simulate(
            model, TOP.state0, 0.5, ts=np.linspace(0.0, 0.5, 401), solver=solver, dt=dt,
            **newton,
        ).states  # fmt: skip
        for shown, exact in zip((attitudes(states), states.angular_velocity), turning, strict=True):
            error = np.abs(shown - exact).reshape(401, -1).max(1)
            assert error.max() < 10.0 * error[::every].max()


def test_steps_do_not_depend_on_what_is_saved():
    """Dense output is made of the steps, not the steps of it."""
    plain, between = (rj.simulate(BODY, TOP.state0, 0.1, ts=ts) for ts in (None, [0.03, 0.1]))
    for key in ("num_accepted_steps", "num_rejected_steps"):
        assert plain.stats[key] == between.stats[key]
    assert np.allclose(plain.ys[0], between.ys[1], rtol=0.0, atol=1e-13)
