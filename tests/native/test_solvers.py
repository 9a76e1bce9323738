"""Solvers that run as kernels: the table in `docs/native.md` is correct."""

import pathlib

import diffrax
import jax
import jax.numpy as jnp
import pytest

import rigidjax as rj

BODY = rj.FixedPointBody(jnp.array([0.5, 0.5, 0.25]), potential=lambda R: 5.0 * R[2, 2])
STATE = rj.State(angular_velocity=jnp.array([[0.1, 0.0, 20.0]]))
LOOSE = dict(rtol=1e-5, atol=1e-5)
SOLVERS = {
    "diffrax.Euler": (diffrax.Euler, dict(dt=0.01)),
    "diffrax.Heun": (diffrax.Heun, {}),
    "diffrax.Midpoint": (diffrax.Midpoint, {}),
    "diffrax.Ralston": (diffrax.Ralston, {}),
    "diffrax.Bosh3": (diffrax.Bosh3, {}),
    "diffrax.Tsit5": (diffrax.Tsit5, {}),
    "diffrax.Dopri5": (diffrax.Dopri5, {}),
    "diffrax.Dopri8": (diffrax.Dopri8, {}),
    "diffrax.Kvaerno3": (diffrax.Kvaerno3, LOOSE),
    "diffrax.Kvaerno5": (diffrax.Kvaerno5, LOOSE),
    "rj.solvers.Radau5": (rj.solvers.Radau5, LOOSE),
    "rj.solvers.BDF": (rj.solvers.BDF, LOOSE),
    "rj.solvers.Odex": (rj.solvers.Odex, {}),
    "rj.solvers.Seulex": (rj.solvers.Seulex, LOOSE),
    "rj.solvers.EnergyMomentum": (rj.solvers.EnergyMomentum, dict(dt=0.01)),
    "rj.solvers.Variational": (rj.solvers.Variational, dict(dt=0.005)),
    "rj.solvers.SimoWong": (rj.solvers.SimoWong, dict(dt=0.01)),
    "rj.solvers.EnergyMidpoint": (rj.solvers.EnergyMidpoint, dict(dt=0.01)),
    "rj.solvers.GeneralizedAlpha": (rj.solvers.GeneralizedAlpha, dict(dt=0.01)),
    "rj.solvers.MuntheKaas": (lambda: rj.solvers.MuntheKaas(diffrax.Dopri5()), {}),
}
QUICK = ("diffrax.Tsit5", "rj.solvers.Radau5", "rj.solvers.Odex")
PAGE = pathlib.Path(__file__).parents[2] / "docs" / "native.md"


def table():
    """Return the solvers of the page, and whether it lists them as kernels."""
    rows = [line.split("|")[1:3] for line in PAGE.read_text().splitlines() if "|" in line]
    return {name.strip(" `"): said.strip() == "yes" for name, said in rows if name.startswith(" `")}


@pytest.mark.parametrize(
    "name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.exhaustive) for n in SOLVERS]
)
def test_table_of_the_page_is_correct(name):
    solver, options = SOLVERS[name]
    found = []

    def run(rates):
        state = rj.State(angular_velocity=rates)
        sol = rj.simulate(rj.NullSpace(BODY), state, 0.1, solver=solver(), **options)
        found.append(sol.stats["backend"])
        return sol.ys

    jax.eval_shape(run, STATE.angular_velocity)
    assert (found[0] == "native") == table()[name]


def test_table_of_the_page_is_complete():
    assert set(table()) == set(SOLVERS)


def test_large_loops_are_left_to_xla():
    """Large matrices are slower in kernels, unless `backend="native"` requests them."""
    problem, seen = rj.problems.n_four_bar(8), []

    def run(state):
        solution = rj.simulate(rj.NullSpace(problem.system), state, 1.0, dt=0.1, throw=False)
        seen.append(solution.stats["backend"])
        return solution.ys

    jax.eval_shape(run, problem.state0)
    assert seen == ["xla"]
    assert any("loops that share joints" in reason for reason in seen[0].why_not)
