"""Fits of simulated data whose truth is known."""

import json

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from identification import cases

import rigidjax as rj
from rigidjax.identification import (
    Attitude,
    Bounded,
    Experiment,
    Free,
    Gyroscope,
    IdentificationError,
    InertiaTensor,
    Measurements,
    Orientation,
    Parameter,
    Positive,
    PrincipalInertia,
    identify,
)
from rigidjax.identification.arguments import prepare
from rigidjax.identification.evaluation import evaluate
from rigidjax.identification.measurements import stack_runs
from rigidjax.identification.problem import Simulation, make_problem
from rigidjax.rotations import so3

START = cases.model((0.016, 0.015, 0.006), 4e-4)


@pytest.fixture(scope="module")
def noisy_fit():
    runs = cases.measurements(cases.NOISE, known=True)
    tolerance = cases.TOLERANCE
    return identify(START, runs, cases.parameters(), rtol=tolerance, atol=tolerance)


@pytest.fixture(scope="module")
def problem():
    runs = stack_runs(cases.measurements(cases.NOISE, known=True))
    _, states = prepare(START, runs, None)
    how = Simulation(diffrax.Dopri5(), 1e-10, 1e-10, True, 4096)
    return make_problem(START, runs, states, cases.parameters(), how)[0]


def test_exact_data_give_the_truth():
    fit = identify(START, cases.measurements(), cases.parameters())
    assert fit.converged and fit.failed_evaluations == 0
    # As accurate as the simulation in the fit, at its tolerance of 1e-8.
    np.testing.assert_allclose(fit.values, cases.truth(), rtol=1e-6)
    assert fit.rms["gyroscope"] < 1e-6
    assert sum(fit.iterations) < 40


@pytest.mark.float32
def test_noisy_data_give_the_truth_within_its_uncertainty(noisy_fit):
    error = noisy_fit.values - cases.truth()
    # The sum of squares of 12 normal numbers exceeds 32.9 once in a thousand.
    assert error @ np.linalg.solve(noisy_fit.covariance, error) < 32.9
    # 270 residuals, 12 parameters: the mean square has a standard deviation of 0.09.
    assert abs(noisy_fit.chi_square - 1) < 0.3
    assert noisy_fit.noise_is_known and noisy_fit.noise == 1
    assert abs(noisy_fit.autocorrelation["gyroscope"]) < 0.2


def test_result_is_described(noisy_fit):
    fit = noisy_fit
    assert fit.labels[:4] == ("I1", "I2", "drag", "rates[0][run0]")
    assert fit.units[0] == "kg m^2"
    assert fit.estimates["I1"] == fit.values[0] and fit.std["I1"] > 0
    np.testing.assert_allclose(fit.starts[:3], [0.016, 0.015, 4e-4], rtol=1e-12)
    np.testing.assert_array_equal(fit.model.system.inertia[:2], fit.values[:2])
    assert fit.model.system.inertia[2] == cases.INERTIA[2]
    for k, state in enumerate(fit.states):
        np.testing.assert_allclose(state.angular_velocity[0], fit.values[3 + 3 * k : 6 + 3 * k])
    assert [r["gyroscope"].shape for r in fit.residuals] == [(n, 3) for n in cases.LENGTHS]
    squares = sum(np.sum(r["gyroscope"] ** 2) for r in fit.residuals)
    np.testing.assert_allclose(fit.rms["gyroscope"], np.sqrt(squares / fit.num_residuals))
    np.testing.assert_allclose(
        [fit.rms_by_run["gyroscope"]["run1"], fit.rms_by_channel["gyroscope"]["omega2"]],
        [
            np.sqrt(np.mean(fit.residuals[1]["gyroscope"] ** 2)),
            np.sqrt(np.mean(np.concatenate([r["gyroscope"][:, 1] for r in fit.residuals]) ** 2)),
        ],
    )
    assert [t[0] for t in fit.ts] == [0.0, 0.5, 1.0]
    assert all(np.all(np.diff(cost) <= 0) for cost in fit.cost)


@eqx.filter_jit
def at(problem, x):
    """The problem evaluated at all coordinates as one vector."""
    shared, own = problem.start()
    size = shared.shape[0]
    return evaluate(problem, x[:size], x[size:].reshape(own.shape))


def start_of(problem):
    shared, own = problem.start()
    return jnp.concatenate([shared, own.reshape(-1)])


def test_jacobian_against_finite_differences(problem):
    x = start_of(problem)
    J = np.asarray(at(problem, x).by_coordinates())
    for k in range(x.shape[0]):
        step = 1e-5 * jnp.zeros_like(x).at[k].set(1.0)
        difference = (at(problem, x + step).residuals - at(problem, x - step).residuals).reshape(
            -1
        ) / 2e-5
        np.testing.assert_allclose(J[:, k], difference, atol=2e-7 * np.abs(J[:, k]).max())


def test_jacobian_of_a_run_knows_no_other_run(problem):
    J = np.asarray(at(problem, start_of(problem)).by_coordinates())
    J = J.reshape(3, -1, 12)
    for run in range(3):
        others = [3 + 3 * k + i for k in range(3) if k != run for i in range(3)]
        assert np.all(J[run][:, others] == 0)
        assert np.all(np.abs(J[run][:, 3 + 3 * run : 6 + 3 * run]).max(axis=0) > 0)
    padded = J[2].reshape(max(cases.LENGTHS), 3, 12)[cases.LENGTHS[2] :]
    assert np.all(padded == 0)


def test_covariance_is_that_of_gauss_newton(noisy_fit, problem):
    """By the delta method from the coordinates of the fit, as an independent path."""
    transforms = [p.transform for p in problem.parameters]
    rates = jnp.asarray(noisy_fit.values[3:]).reshape(3, 1, 3)
    shared = [jnp.asarray(noisy_fit.model.system.inertia), jnp.asarray(noisy_fit.values[2])]
    u = [t.coordinates(leaf) for t, leaf in zip(transforms, shared, strict=False)]
    found = at(problem, jnp.concatenate([*u, rates.reshape(-1)]))
    J = np.asarray(found.by_coordinates())
    in_coordinates = np.linalg.inv(J.T @ J)
    G = np.eye(12)
    G[:2, :2] = jax.jacfwd(lambda v: transforms[0].leaf(v, shared[0])[:2])(u[0])
    G[2, 2] = noisy_fit.values[2]
    expected = G @ in_coordinates @ G.T
    size = np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    np.testing.assert_allclose(noisy_fit.covariance / size, expected / size, atol=1e-5)
    np.testing.assert_allclose(np.sqrt(np.diag(noisy_fit.covariance)), list(noisy_fit.std.values()))
    np.testing.assert_allclose(noisy_fit.correlations, expected / size, atol=1e-5)


def test_unknown_noise_is_estimated(noisy_fit):
    fit = identify(START, cases.measurements(cases.NOISE), cases.parameters())
    assert not fit.noise_is_known
    np.testing.assert_allclose(fit.values, noisy_fit.values, rtol=1e-6)
    np.testing.assert_allclose(fit.noise, cases.NOISE * np.sqrt(noisy_fit.chi_square), rtol=1e-9)
    np.testing.assert_allclose(
        fit.covariance, noisy_fit.covariance * noisy_fit.chi_square, rtol=1e-4, atol=1e-14
    )


class TestIdentifiability:
    def test_scale_rests_on_what_is_fixed(self, noisy_fit):
        verdict = noisy_fit.identifiability
        assert verdict.identifiable and verdict.rank == verdict.num_parameters == 12
        assert np.isfinite(verdict.condition)
        text = str(verdict)
        assert "only the ratios of I1, I2, I3 and drag: their common scale rests on I3" in text
        (sharp,) = [c for c in verdict.sharp if c.label == "I1 - I2"]
        assert str(sharp).startswith("I1 - I2 = 0.00299")
        C = noisy_fit.covariance
        np.testing.assert_allclose(sharp.std**2, C[0, 0] + C[1, 1] - 2 * C[0, 1], rtol=1e-6)
        assert sharp.std < 0.3 * noisy_fit.std["I1"]

    def test_only_ratios_are_determined_if_nothing_is_fixed(self, noisy_fit):
        runs = cases.measurements(cases.NOISE, known=True)
        fit = identify(START, runs, cases.parameters(fixed=()))
        verdict = fit.identifiability
        assert fit.converged and not verdict.identifiable
        assert (verdict.rank, verdict.num_parameters, verdict.condition) == (12, 13, np.inf)
        (change,) = verdict.undetermined
        assert set(change) == {"I1", "I2", "I3", "drag"}
        np.testing.assert_allclose(list(change.values()), 1, atol=1e-6)
        assert "determine only the ratios of I1, I2, I3 and drag" in verdict.messages[0]
        assert "I1/I3 = " in verdict.messages[1]
        std = np.array(list(fit.std.values()))
        assert np.all(np.isinf(std[:4])) and np.all(np.isfinite(std[4:]))
        assert not np.any(np.isnan(fit.covariance)) and not np.any(np.isnan(fit.correlations))
        np.testing.assert_allclose(fit.correlations[:4, :4], 1)
        # The same ratios and the same fit as with the scale held.
        ratio = fit.values[:2] / fit.values[2] * cases.INERTIA[2]
        np.testing.assert_allclose(ratio, noisy_fit.values[:2], rtol=1e-5)
        np.testing.assert_allclose(fit.chi_square * (270 - 13), noisy_fit.chi_square * (270 - 12))
        # The standard deviation of a ratio is that with the other moment held.
        stated = float(verdict.messages[1].split("standard deviation ")[1].split(")")[0])
        expected = noisy_fit.std["I1"] / cases.INERTIA[2]
        np.testing.assert_allclose(stated, expected, rtol=0.05)  # written with two digits


class _Growth(eqx.Module):
    """A moment with which rates go to infinity in finite time if `a` is large."""

    a: jax.Array

    def __call__(self, t, R, omega):
        return self.a * (omega @ omega) ** 2 * omega


def _growth_of(experiment):
    return experiment.model.system.moment.a


def _growing(a):
    return rj.NullSpace(rj.FixedPointBody(np.array(cases.INERTIA), moment=_Growth(jnp.asarray(a))))


@pytest.fixture(scope="module")
def growing_run():
    ts = np.linspace(0, 1, 30)
    values = cases.simulated_rates(_growing(1e-7), cases.RATES[0], ts)
    return Measurements(ts, {Gyroscope(): values}, name="growing")


def _fit_growth(start, run, rates=cases.RATES[0], **options):
    return identify(
        _growing(start),
        run,
        Parameter("a", _growth_of),
        state0=rj.State(angular_velocity=np.array(rates)),
        max_steps=500,
        max_iterations=60,
        horizons=(1.0,),
        **options,
    )


def test_trials_that_fail_are_recovered_and_counted(growing_run):
    fit = _fit_growth(-1e-5, growing_run)
    assert fit.converged and fit.failed_evaluations >= 2
    np.testing.assert_allclose(fit.values, 1e-7, rtol=1e-5)
    assert f"{fit.failed_evaluations} trials had a simulation that failed" in fit.notes[0]
    assert np.all(np.isfinite(fit.covariance))


def test_a_start_that_fails_is_an_error(growing_run):
    with pytest.raises(IdentificationError, match=r"fails at the start values.*\['growing'\]"):
        _fit_growth(1e-4, growing_run)


def test_an_iteration_limit_is_not_an_optimum(growing_run):
    with pytest.raises(IdentificationError, match=r"did not converge: no optimum within 60 iter"):
        _fit_growth(-1e-5, growing_run, tolerance=0.0)
    fit = _fit_growth(-1e-5, growing_run, tolerance=0.0, throw=False)
    assert not fit.converged and fit.iterations == (60,)
    assert "**This fit did not converge: no optimum within 60 iterations.**" in fit.report()


def test_a_parameter_that_acts_on_nothing_is_named(growing_run):
    """A moment that grows with the rates does nothing to a body at rest."""
    with pytest.raises(ValueError, match=r"The parameters \['a'\] act on nothing that is measured"):
        _fit_growth(1e-7, growing_run, rates=(0.0, 0.0, 0.0))


def test_top_from_attitude_and_rates():
    """Full tensor and start attitude of a heavy top, two sensors with their own noise and gaps."""
    tensor = np.array([[0.030, 0.002, -0.001], [0.002, 0.025, 0.0015], [-0.001, 0.0015, 0.012]])
    potential = rj.GravityPotential([0.02, -0.01, 0.10], [0.0, 0.0, -9.81])
    top = rj.NullSpace(rj.FixedPointBody(tensor, potential))
    p0 = np.array([0.9, 0.3, -0.2, 0.1]) / np.sqrt(0.95)
    state = rj.State(orientation=p0, angular_velocity=[1.0, -2.0, 12.0])
    ts = np.linspace(0.0, 1.2, 61)
    exact = rj.simulate(top, state, ts[-1], ts=ts, rtol=1e-10, atol=1e-10).states
    rng = np.random.default_rng(5)
    turn = jax.vmap(so3.exp_quaternion)(jnp.asarray(0.01 * rng.normal(size=(61, 3))))
    attitude = jax.vmap(so3.multiply)(exact.orientation[:, 0], turn)
    rates = np.asarray(exact.angular_velocity[:, 0]) + 0.05 * rng.normal(size=(61, 3))
    rates[10:14] = np.nan
    run = Measurements(
        ts,
        {Gyroscope(): rates, Attitude(): attitude},
        {Gyroscope(): 0.05, Attitude(): 0.01},
        mask={Gyroscope(): np.isfinite(rates)},
    )
    start = rj.NullSpace(rj.FixedPointBody(np.diag([0.02, 0.02, 0.015]), potential))
    fit = identify(
        start,
        run,
        [
            Parameter("I", cases.inertia_of, InertiaTensor(), unit="kg m^2"),
            Parameter("p", cases.orientation_of, Orientation(), unit="rad"),
            Parameter("omega", cases.rates_of, unit="rad/s"),
        ],
    )
    assert fit.labels[:3] == ("I.I11", "I.I22", "I.I33") and fit.labels[6] == "p[0]"
    assert fit.identifiability.identifiable
    assert abs(fit.chi_square - 1) < 0.3
    assert np.all(np.isnan(fit.residuals[0]["gyroscope"][10:14]))
    assert fit.num_residuals == 61 * 6 - 12
    components = np.array([tensor[i] for i in ((0, 0), (1, 1), (2, 2), (1, 2), (0, 2), (0, 1))])
    error = np.concatenate(
        [
            fit.values[:6] - components,
            so3.log_quaternion(
                so3.multiply(so3.conjugate(jnp.asarray(p0)), fit.states[0].orientation[0])
            ),
            fit.values[9:] - [1.0, -2.0, 12.0],
        ]
    )
    assert error @ np.linalg.solve(fit.covariance, error) < 32.9


def test_parameters_of_each_run_bounds_and_parts():
    """A moment for each run within bounds; two of three start rates; the rest is held."""
    torques = np.array([0.01, -0.02])
    ts = np.linspace(0.0, 1.0, 21)
    omega0 = np.array([1.0, 2.0, 3.0])

    def spun(torque):
        moment = rj.ConstantMoment([torque, 0.0, 0.0])
        return rj.NullSpace(rj.FixedPointBody(np.array(cases.INERTIA), moment=moment))

    runs = [
        Measurements(ts, {Gyroscope(): cases.simulated_rates(spun(x), omega0, ts)}) for x in torques
    ]
    torque = Parameter(
        "torque",
        lambda e: e.model.system.moment.value,
        Bounded(-0.05, 0.05, which=(0,)),
        per_run=True,
        unit="N m",
    )
    rates = Parameter("omega", cases.rates_of, Free(which=(0, 2)), start=[[0.8, 2.0, 3.2]])
    fit = identify(spun(0.0), runs, [torque, rates], horizons=(0.5, 1.0))
    assert fit.labels == ("omega[0]", "omega[2]", "torque[0][1]", "torque[0][2]")
    np.testing.assert_allclose(fit.values, [1.0, 3.0, *torques], rtol=1e-6)
    np.testing.assert_allclose([m.system.moment.value[0] for m in fit.models], torques, rtol=1e-6)


def test_one_of_two_bodies_in_absolute_coordinates():
    """Any formulation of any system."""
    ts = np.linspace(0.0, 1.0, 15)

    def pair(second, third):
        first = rj.Body("first", 1.0, [2.0, second, third], angular_velocity=(1.0, 5.0, -2.0))
        return rj.Absolute(rj.System([first, rj.Body("second", 2.0, [1.0, 1.0, 1.0])]))

    truth = pair(3.0, 4.0)
    start = truth.system.reference_state()
    states = rj.simulate(truth, start, 1.0, ts=ts, rtol=1e-10, atol=1e-10).states
    gyroscope, attitude = Gyroscope("first"), Attitude("first")
    run = Measurements(
        ts,
        {gyroscope: states.angular_velocity[:, 0], attitude: states.orientation[:, 0]},
        {gyroscope: 0.01, attitude: 0.01},
    )
    inertia = Parameter(
        "inertia", lambda e: e.model.system.bodies[0].inertia, PrincipalInertia(fixed=("I1",))
    )
    fit = identify(pair(2.5, 3.8), run, inertia, horizons=(0.2, 1.0))
    np.testing.assert_allclose(fit.values, [3.0, 4.0], rtol=1e-6)
    assert fit.labels == ("inertia.I2", "inertia.I3")
    np.testing.assert_array_equal(fit.model.system.bodies[0].inertia[1:], fit.values)


def test_charts_that_move():
    """A minimal parametrization whose reference moves on while it is measured."""
    ts = np.linspace(0.0, 1.0, 15)

    def turning(drag):
        body = rj.FixedPointBody(np.array(cases.INERTIA), moment=rj.QuadraticDrag(drag))
        return rj.NullSpace(body, rj.RotationVector())

    values = cases.simulated_rates(cases.model(), cases.RATES[0], ts)
    fit = identify(
        turning(1e-4),
        Measurements(ts, {Gyroscope(): values}),
        Parameter("drag", cases.drag_of),
        horizons=(1.0,),
    )
    np.testing.assert_allclose(fit.values, cases.DRAG, rtol=1e-5)


class TestReport:
    def test_text(self, noisy_fit, tmp_path):
        path = tmp_path / "fit.md"
        text = noisy_fit.report(path)
        assert path.read_text() == text == noisy_fit.report()
        assert "3 runs, 270 samples, 12 parameters; converged after" in text
        assert "| I1 | 0.0" in text and "kg m^2 |" in text
        assert "chi square per degree of freedom" in text
        assert "Strongest correlations: I1, I2: +0.9" in text
        assert "their common scale rests on I3" in text
        assert "by run run0 0.0" in text
        with pytest.raises(FileExistsError, match=r"fit\.md exists"):
            noisy_fit.report(path)
        assert noisy_fit.report(path, force=True) == text

    def test_json(self, noisy_fit, tmp_path):
        noisy_fit.report(tmp_path / "fit.json")
        record = json.loads((tmp_path / "fit.json").read_text())
        assert record["converged"] is True
        assert record["parameters"][0]["label"] == "I1"
        assert record["parameters"][0]["estimate"] == noisy_fit.estimates["I1"]
        np.testing.assert_array_equal(record["covariance"], noisy_fit.covariance)

    def test_errors(self, noisy_fit, tmp_path):
        with pytest.raises(ValueError, match=r"writes \.md, \.txt or \.json"):
            noisy_fit.report(tmp_path / "fit.pdf")
        with pytest.raises(OSError, match=r"Cannot write"):
            noisy_fit.report(tmp_path / "missing" / "fit.md")
        assert list(tmp_path.iterdir()) == []


def test_a_misfit_is_noted():
    runs = cases.measurements(cases.NOISE)
    runs = [Measurements(r.ts, {Gyroscope(): r.values[0]}, {Gyroscope(): 0.01}) for r in runs]
    fit = identify(START, runs, cases.parameters())
    assert "times as large as the noise that was given" in fit.notes[0]


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"model": rj.FixedPointBody([1.0, 1.0, 1.0])}, TypeError, r"takes a formulation such as"),
        ({"parameters": ["inertia"]}, TypeError, r"takes `rj.Parameter` objects; got str"),
        ({"parameters": []}, ValueError, r"needs parameters of different names"),
        ({"horizons": (0.5, 0.7)}, ValueError, r"must increase, from above 0, to 1"),
        ({"horizons": ()}, ValueError, r"must increase, from above 0, to 1"),
        ({"max_iterations": 2}, ValueError, r"must be at least 4; got 2"),
        ({"state0": [rj.State()]}, ValueError, r"one for each of the 3 runs; got 1"),
        (
            {"parameters": [Parameter("a", cases.drag_of), Parameter("b", cases.drag_of)]},
            ValueError,
            r"Parameters 'a' and 'b' pick the same leaf",
        ),
        (
            {"parameters": Parameter("x", lambda e: e.model.system.mass)},
            ValueError,
            r"`Parameter\('x', where=\.\.\.\)` finds nothing",
        ),
        (
            {"parameters": Parameter("x", lambda e: e.model.system)},
            ValueError,
            r"must pick one array of real numbers; got FixedPointBody",
        ),
        (
            {"parameters": Parameter("x", lambda e: e.model.system.inertia[0])},
            ValueError,
            r"must pick an array as it is stored",
        ),
        (
            {"parameters": Parameter("x", cases.inertia_of, labels=("a", "b"))},
            ValueError,
            r"must have 3 entries, one for each component",
        ),
        (
            {"parameters": Parameter("x", cases.inertia_of, start=[1.0])},
            ValueError,
            r"must have shape \(3,\); got \(1,\)",
        ),
        (
            {"parameters": Parameter("x", cases.inertia_of, start=[1.0, 1.0, np.nan])},
            ValueError,
            r"The start of x must be finite",
        ),
        (
            {"parameters": Parameter("x", cases.drag_of, Positive(), start=-1.0)},
            ValueError,
            r"The start of x cannot be used: a positive parameter must start above zero",
        ),
        (
            {"parameters": Parameter("x", cases.drag_of, PrincipalInertia())},
            ValueError,
            r"Parameter 'x': `PrincipalInertia` takes principal moments",
        ),
        (
            {
                "measurements": Measurements([0.0, 1.0], {Gyroscope(): np.ones((2, 3))}),
                "parameters": [Parameter("x", cases.inertia_of), *cases.parameters()[1:],
                               Parameter("y", cases.orientation_of, Orientation())],
            },
            ValueError,
            r"There are 6 scalar samples for 10 parameters",
        ),
        (
            {"measurements": Measurements([0.0, 1.0], {Gyroscope("a"): np.ones((2, 3))})},
            ValueError,
            r"a `FixedPointBody` has no name",
        ),
    ],
)  # fmt: skip
def test_errors(change, error, message):
    arguments = {
        "model": START,
        "measurements": ERROR_RUNS,
        "parameters": cases.parameters(),
        **change,
    }
    with pytest.raises(error, match=message):
        identify(**arguments)


ERROR_RUNS = [
    Measurements([0.0, 0.1, 0.2, 0.3], {Gyroscope(): np.ones((4, 3))}, name=f"{k}")
    for k in range(3)
]


def test_parameter_errors():
    with pytest.raises(TypeError, match=r"must be a non-empty string"):
        Parameter("", cases.drag_of)
    with pytest.raises(TypeError, match=r"must be a function of an `Experiment`"):
        Parameter("x", "inertia")
    with pytest.raises(TypeError, match=r"must be a transformation such as"):
        Parameter("x", cases.drag_of, "positive")
    assert Experiment(START, rj.State(), ()).model is START
