"""Runs of `simulate` as kernels: the same as by XLA, step for step, and their derivatives."""

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from rule_cases import equations

import rigidjax as rj
from rigidjax.native import machine

T1 = 0.3
BODY = rj.FixedPointBody(jnp.array([0.5, 0.5, 0.25]), potential=lambda R: 5.0 * R[2, 2])
START = rj.State(
    orientation=jnp.array([[0.8, 0.6, 0.0, 0.0]]), angular_velocity=jnp.array([[0.1, 0.0, 20.0]])
)
TOP = rj.NullSpace(BODY)

RUNS = {
    "Dopri5": (TOP, dict(solver=diffrax.Dopri5())),
    "Dopri8 at times": (TOP, dict(ts=jnp.linspace(0.0, T1, 7))),
    "fixed step": (TOP, dict(solver=diffrax.Heun(), dt=0.01)),
    "no projection": (TOP, dict(solver=diffrax.Tsit5(), projection=False)),
    "steps": (TOP, dict(saveat=diffrax.SaveAt(steps=True, t0=True), max_steps=200)),
    "recharting": (rj.NullSpace(BODY, rj.RotationVector()), {}),
    "directors": (rj.NullSpace(BODY, rj.Directors()), {}),
    "absolute": (rj.Absolute(BODY), {}),
    "BDF": (TOP, dict(solver=rj.solvers.BDF(), rtol=1e-6, atol=1e-6)),
    "BDF at index 3": (
        rj.Absolute(BODY, index=3),
        dict(solver=rj.solvers.BDF(), rtol=1e-5, atol=1e-5),
    ),
    "Radau5": (TOP, dict(solver=rj.solvers.Radau5(), rtol=1e-6, atol=1e-6)),
    "Radau5 at index 2": (
        rj.Absolute(BODY, index=2),
        dict(solver=rj.solvers.Radau5(), rtol=1e-5, atol=1e-5),
    ),
    "Odex": (TOP, dict(solver=rj.solvers.Odex())),
    "Seulex": (TOP, dict(solver=rj.solvers.Seulex(), rtol=1e-6, atol=1e-6)),
    "EnergyMomentum": (TOP, dict(solver=rj.solvers.EnergyMomentum(), dt=0.01)),
    "Variational": (TOP, dict(solver=rj.solvers.Variational(), dt=0.005)),
    "MuntheKaas": (TOP, dict(solver=rj.solvers.MuntheKaas(diffrax.Dopri5()))),
}
QUICK = ("Dopri5", "Dopri8 at times", "BDF", "EnergyMomentum")


def unknowns(sol):
    return jax.tree.leaves(sol.ys)[0]


@pytest.mark.parametrize("projection", [True, False])
def test_loops_over_stages_are_written_out(projection):
    """Where the last stage of a step is the first of the next, the program says how many follow.

    Otherwise the loop has a known number of turns, and the emitter writes it out.
    """

    def run(state0):
        return rj.simulate(TOP, state0, T1, solver=diffrax.Dopri5(), projection=projection).ys

    program = jax.make_jaxpr(run)(START).jaxpr
    (solve,) = (e.params["solve"] for e in equations(program) if "solve" in e.params)
    counts = [
        sum(e.primitive.name in ("while", "scan") for e in equations(jaxpr.jaxpr))
        for jaxpr in (solve.jaxpr, solve.kernel_jaxpr())
    ]
    assert counts == ([2, 2] if projection else [2, 1])


@pytest.mark.exhaustive(
    but=(
        "EnergyMomentum",
        "Dopri5",
        "Dopri8 at times",
    )
)
@pytest.mark.parametrize(
    "name", [n if n in QUICK else pytest.param(n, marks=pytest.mark.exhaustive) for n in RUNS]
)
def test_same_steps_and_results_as_xla(name):
    model, options = RUNS[name]
    native, xla = (
        rj.simulate(model, START, T1, backend=backend, **options) for backend in ("native", "xla")
    )
    assert native.stats["backend"] == "native"
    assert xla.stats["backend"] == "xla"
    if name == "BDF at index 3":
        # Its error estimate divides round-off by the step: steps differ, results do not.
        np.testing.assert_allclose(unknowns(native), unknowns(xla), atol=1e-3)
        return
    for count in ("num_steps", "num_rejected_steps"):
        assert int(native.stats[count]) == int(xla.stats[count])
    reached = np.isfinite(np.asarray(xla.ts))
    # Adaptive steps repeat round-off of the error estimate in their length.
    np.testing.assert_allclose(native.ts[reached], xla.ts[reached], rtol=1e-6)
    same_times = native.ts[reached] == xla.ts[reached]
    np.testing.assert_allclose(
        unknowns(native)[reached][same_times], unknowns(xla)[reached][same_times], atol=1e-10
    )
    assert same_times.any()


@pytest.fixture(scope="module")
def members():
    """Moments and rates of a batch that is no multiple of the lanes, and a run of one member."""
    rng = np.random.default_rng(20260101)
    moments = jnp.array([0.5, 0.5, 0.25]) * (1 + 0.1 * rng.random((5, 3)))
    rates = jnp.array([0.1, 0.0, 20.0]) * (1 + 0.9 * rng.random((5, 3)))

    def run(backend):
        def end(moments, rates):
            model = eqx.tree_at(lambda m: m.system.inertia, TOP, moments)
            state = eqx.tree_at(lambda s: s.angular_velocity, START, rates[None])
            sol = rj.simulate(model, state, T1, solver=diffrax.Bosh3(), rtol=1e-5, backend=backend)
            return sol.ys[-1], sol.stats["num_steps"]

        return end

    return run, moments, rates


def test_members_of_a_batch_are_the_same_as_alone(members):
    run, moments, rates = members
    ends, steps = jax.jit(jax.vmap(run("native")))(moments, rates)
    one = jax.jit(run("native"))
    for k in range(len(moments)):
        alone, count = one(moments[k], rates[k])
        assert int(steps[k]) == int(count)
        np.testing.assert_allclose(ends[k], alone, atol=1e-11)
    assert len(set(np.asarray(steps).tolist())) > 1


def test_derivatives(members, monkeypatch):
    # With few optimisations: the long code of derivatives takes seconds otherwise.
    monkeypatch.setattr(machine, "LONG", 0)
    run, moments, rates = members

    def derivatives(backend):
        end = lambda m, w: run(backend)(m, w)[0]  # noqa: E731
        forward = jax.jvp(lambda m: end(m, rates[0]), (moments[0],), (moments[1],))[1]
        backward = jax.grad(lambda m, w: end(m, w)[1], argnums=(0, 1))
        return forward, jax.vmap(backward)(moments, rates)

    actual, expected = (jax.jit(lambda b=b: derivatives(b))() for b in ("native", "xla"))
    for a, b in zip(jax.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-9)


def test_only_what_moves_has_a_tangent(members):
    run, moments, rates = members
    end = lambda m: run("native")(m, rates[0])[0]  # noqa: E731
    program = jax.make_jaxpr(lambda m: jax.jvp(end, (m,), (m,)))(moments[0])
    (given,) = {e.params["given"] for e in equations(program.jaxpr) if "given" in e.params}
    # The moments, of the body and of its mechanics, in the vector field and in the projection.
    assert sum(given) == 4
    assert len(given) > 10


LOOPS = {
    "four-bar": lambda: (rj.NullSpace, rj.problems.four_bar()),
    "four-bar, absolute": lambda: (rj.Absolute, rj.problems.four_bar(thickness=0.05)),
    "Bricard": lambda: (rj.NullSpace, rj.problems.bricard()),
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", LOOPS)
def test_closed_loops(name):
    """Their rank decisions and inverses come from singular values."""
    formulation, problem = LOOPS[name]()
    model = formulation(problem.system)
    native, xla = (
        rj.simulate(model, problem.state0, 0.1, solver=diffrax.Dopri5(), backend=backend)
        for backend in ("native", "xla")
    )
    assert int(native.stats["num_steps"]) == int(xla.stats["num_steps"])
    np.testing.assert_allclose(native.ys[-1], xla.ys[-1], atol=1e-9)


def test_a_member_that_fails_keeps_its_result():
    def run(rates):
        state = eqx.tree_at(lambda s: s.angular_velocity, START, rates[None])
        sol = rj.simulate(
            TOP, state, T1, solver=diffrax.Dopri5(), backend="native", max_steps=40, throw=False
        )
        return sol.result == rj.RESULTS.successful, sol.ys[-1]

    rates = jnp.array([[0.0, 0.0, 1.0], [0.0, 0.0, 500.0], [0.1, 0.0, 2.0]])
    okay, ends = jax.jit(jax.vmap(run))(rates)
    assert okay.tolist() == [True, False, True]
    assert np.isfinite(ends[np.array([0, 2])]).all()


def test_auto_says_why_not():
    sol = rj.simulate(TOP, START, T1, solver=diffrax.Kvaerno3(), rtol=1e-4, atol=1e-4)
    assert sol.stats["backend"] == "xla"
    assert sol.stats["backend"].why_not


def test_messages():
    with pytest.raises(ValueError, match='"auto", "native" or "xla"; got \'gpu\''):
        rj.simulate(TOP, START, T1, backend="gpu")
    with pytest.raises(ValueError, match="cannot run this as a kernel: .*callback"):
        rj.simulate(TOP, START, T1, backend="native", progress=True)
    with pytest.raises(ValueError, match="runs with `rj.AnyMode"):
        rj.simulate(TOP, START, T1, backend="native", adjoint=diffrax.ForwardMode())
