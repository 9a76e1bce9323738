"""Values at saved times are as accurate as steps: error there against error at the steps."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optimistix as optx
import pytest

import rigidjax as rj
from rigidjax.solvers import BDF, Odex, Radau5, Radau9, Radau13, Seulex

ECCENTRICITY, END = 0.5, 6.0
# No step ends at one of these but the last.
TIMES = np.append((np.arange(96) + 0.37) / 96.0 * END, END)


def kepler(t, y, args):
    cube = (y[0] ** 2 + y[1] ** 2) ** 1.5
    return jnp.stack([y[2], y[3], -y[0] / cube, -y[1] / cube])


def orbit(t):
    """Position and velocity, from Kepler's equation."""
    e, E = ECCENTRICITY, np.array(t)
    for _ in range(50):
        E = E - (E - e * np.sin(E) - t) / (1.0 - e * np.cos(E))
    r, b = 1.0 - e * np.cos(E), np.sqrt(1.0 - e * e)
    return np.stack([np.cos(E) - e, b * np.sin(E), -np.sin(E) / r, b * np.cos(E) / r], axis=-1)


@eqx.filter_jit
def both(solver, tolerance):
    """The orbit at `TIMES` and at the steps, by diffrax alone."""
    finder = eqx.tree_at(
        lambda f: (f.rtol, f.atol, f.norm), solver.root_finder,
        (tolerance, tolerance, optx.rms_norm),
    )  # fmt: skip
    solver = eqx.tree_at(lambda s: s.root_finder, solver, finder)
    at_times, at_steps = diffrax.SubSaveAt(ts=jnp.asarray(TIMES)), diffrax.SubSaveAt(steps=True)
    solution = diffrax.diffeqsolve(
        diffrax.ODETerm(kepler), solver, 0.0, END, None, jnp.asarray(orbit(0.0)),
        stepsize_controller=solver.controller(tolerance, tolerance, optx.rms_norm),
        saveat=diffrax.SaveAt(subs=[at_times, at_steps]), adjoint=diffrax.ForwardMode(),
        max_steps=4096,
    )  # fmt: skip
    return solution.ts, solution.ys, solution.stats["num_accepted_steps"]


# Where a method is far more accurate than it was asked to be, saved values may be less so: the
# error estimates of Radau's methods are of the order of their collocation polynomials.
@pytest.mark.parametrize(
    "solver,strict",
    [
        (Odex(), True),
        (Seulex(), True),
        pytest.param(BDF(), True, marks=pytest.mark.exhaustive),
        pytest.param(Radau5(), False, marks=pytest.mark.exhaustive),
        pytest.param(Radau9(), False, marks=pytest.mark.exhaustive),
        pytest.param(Radau13(), False, marks=pytest.mark.exhaustive),
    ],
    ids=lambda x: type(x).__name__,
)
def test_saved_values_of_a_solver(solver, strict):
    for tolerance in (1e-4, 1e-6, 1e-8, 1e-10):
        _, (saved, steps), count = both(solver, jnp.asarray(tolerance))
        ts = both(solver, jnp.asarray(tolerance))[0][1]
        saved_error = np.max(np.abs(saved - orbit(TIMES)))
        step_error = np.max(np.abs(steps[:count] - orbit(np.asarray(ts[:count]))))
        limit = 10.0 * step_error if strict else max(10.0 * step_error, tolerance)
        assert saved_error < limit


TOP = rj.problems.heavy_top()
ABSOLUTE = rj.Absolute(TOP.system, rj.Quaternion(), index=3)
DIRECTORS = rj.NullSpace(TOP.system, rj.Directors())
BODY = rj.NullSpace(TOP.system, rj.Quaternion())
FIXED = {
    "EnergyMomentum, quaternions": (rj.solvers.EnergyMomentum(), BODY),
    "EnergyMomentum, directors": (rj.solvers.EnergyMomentum(), DIRECTORS),
    "Variational": (rj.solvers.Variational(), BODY),
    "SimoWong": (rj.solvers.SimoWong(), BODY),
    "MuntheKaas, RK4": (rj.solvers.MuntheKaas(rj.solvers.RK4()), BODY),
    "MuntheKaas, Dopri5": (rj.solvers.MuntheKaas(diffrax.Dopri5()), BODY),
    "CommutatorFree4": (rj.solvers.CommutatorFree4(), BODY),
    "GeneralizedAlpha": (rj.solvers.GeneralizedAlpha(), ABSOLUTE),
    "Dopri5": (diffrax.Dopri5(), BODY),
    "Tsit5": (diffrax.Tsit5(), BODY),
}


@pytest.fixture(scope="module")
def turning():
    """Attitude and angular velocity of the top at all quarters of steps."""
    ts = np.linspace(0.0, 0.5, 401)
    ends = diffrax.ClipStepSizeController(diffrax.PIDController(rtol=1e-12, atol=1e-12), step_ts=ts)
    states = rj.simulate(
        BODY, TOP.state0, 0.5, ts=ts, solver=diffrax.Dopri8(), stepsize_controller=ends
    ).states
    return attitudes(states), states.angular_velocity


def attitudes(states):
    return jax.vmap(rj.Quaternion().to_matrix)(states.orientation[:, 0])


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", FIXED)
def test_saved_values_between_fixed_steps(name, turning):
    solver, model = FIXED[name]
    states = rj.simulate(
        model, TOP.state0, 0.5, ts=np.linspace(0.0, 0.5, 401), solver=solver, dt=0.005
    ).states
    errors = [
        np.abs(a - b).reshape(401, -1).max(1)
        for a, b in zip((attitudes(states), states.angular_velocity), turning, strict=True)
    ]
    for error in errors:
        assert error.max() < 10.0 * error[::4].max()
