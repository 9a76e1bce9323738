"""Priors: knowledge about parameters besides the data."""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from identification import cases

import rigidjax as rj
from rigidjax.identification import (
    GaussianPrior,
    Gyroscope,
    InertiaTensor,
    LogDetPrior,
    Measurements,
    Orientation,
    Parameter,
    PrincipalInertia,
    excitation,
    identify,
    sensitivity,
)

TS = 0.05 * np.arange(30)
RATES = (1.0, 4.0, -2.0)
NOISE = 0.01
# Inertia and prior in general position, and a proper turn of the body axes.
TURN = np.asarray(rj.RotationVector().to_matrix(jnp.array([0.3, -0.7, 0.4])))
INERTIA = TURN @ np.diag([0.020, 0.017, 0.006]) @ TURN.T
DRAWING = np.diag([0.024, 0.019, 0.009]) + 1e-3 * (np.ones((3, 3)) - np.eye(3))
TENSOR, MOMENTS = InertiaTensor(), PrincipalInertia()
EXPECTED = LogDetPrior(DRAWING, 2.5)


def euler(inertia):
    return 0.5 * jnp.trace(inertia) * jnp.eye(3) - inertia


def divergence(inertia, other):
    """The definition."""
    ratio = jnp.linalg.solve(euler(other), euler(inertia))
    return jnp.trace(ratio) - jnp.linalg.slogdet(ratio)[1] - 3


def free_body(inertia):
    return rj.NullSpace(rj.FixedPointBody(np.asarray(inertia)))


def fit_tensor(weight, turn=None, **options):
    """The fit of a torque-free body, described in axes that are turned by `turn`."""
    Q = np.eye(3) if turn is None else turn
    state = rj.State(angular_velocity=jnp.asarray(RATES))
    sol = rj.simulate(free_body(INERTIA), state, TS[-1], ts=TS, rtol=1e-11, atol=1e-11)
    values = np.asarray(sol.states.angular_velocity[:, 0])
    values = values + NOISE * np.random.default_rng(3).normal(size=values.shape)
    data = Measurements(TS, {Gyroscope(): values @ Q.T}, {Gyroscope(): NOISE})
    drawing = Q @ DRAWING @ Q.T
    prior = None if weight is None else LogDetPrior(drawing, weight)
    parameter = Parameter("inertia", cases.inertia_of, TENSOR, prior=prior, unit="kg m^2")
    state = rj.State(angular_velocity=Q @ np.asarray(RATES))
    model = free_body(drawing)
    return identify(model, data, parameter, state0=state, horizons=(1.0,), **options)


@jax.jit
def rows_and_derivatives(inertia):
    """Residuals and Jacobian, forward and backward; D by its definition and its derivatives."""
    prior, zero = EXPECTED, jnp.zeros(6)

    def rows(c):
        return prior.rows(TENSOR, TENSOR.perturbed(inertia, c))

    def cost(c):
        return 2.5 * divergence(TENSOR.perturbed(inertia, c), DRAWING)

    jacobians = (jax.jacfwd(rows)(zero), jax.jacrev(rows)(zero))
    return rows(zero), *jacobians, cost(zero), jax.grad(cost)(zero), jax.hessian(cost)(zero)


@pytest.mark.parametrize("change", [0.0, 1e-7, 1e-3, 0.4, 3.0])
def test_residuals_of_a_tensor_prior(change):
    """Half the sum of squares is `weight * D` with the gradient of D, also where S = 1."""
    inertia = jnp.asarray(DRAWING + change * INERTIA)
    r, J, backward, D, gradient, hessian = rows_and_derivatives(inertia)
    assert np.isclose(0.5 * jnp.sum(r**2), D, rtol=1e-10, atol=1e-14)
    assert np.allclose(J.T @ r, gradient, rtol=1e-10, atol=1e-11)
    assert np.allclose(backward, J, rtol=1e-9, atol=1e-9 * np.abs(J).max())
    # Where the residuals vanish, the second derivatives of D are those of least squares.
    if change < 1e-6:
        assert np.allclose(J.T @ J, hessian, rtol=1e-5 if change else 1e-9)


@jax.jit
def rows_by_eigenvalues(moments, expected):
    tensor = eqx.tree_at(lambda p: p.value, EXPECTED, jnp.diag(expected))
    vector = eqx.tree_at(lambda p: p.value, EXPECTED, expected).rows(MOMENTS, moments)

    def rows(c):
        return tensor.rows(TENSOR, TENSOR.perturbed(jnp.diag(moments), c))

    h, e = 1e-3, jnp.eye(6)
    first, second, third = (
        jax.vmap(lambda d, k=k: rows(k * h * d) - rows(-k * h * d), out_axes=1)(e)
        for k in (1, 2, 3)
    )
    differences = (45 * first - 9 * second + third) / (60 * h)
    D = divergence(jnp.diag(moments), jnp.diag(expected))
    return vector, rows(jnp.zeros(6)), D, jax.jacfwd(rows)(jnp.zeros(6)), differences


@pytest.mark.parametrize("factors", [(1.0, 1.0, 1.0), (1.0, 1.3, 1.3), (0.2, 1.09, 4.0)])
def test_residuals_at_equal_moments(factors):
    """Moments are a diagonal tensor; derivatives agree with differences of order 6."""
    E0 = np.array([0.3, 0.5, 0.9])
    E = E0 * np.asarray(factors)
    vector, whole, D, J, differences = rows_by_eigenvalues(np.sum(E) - E, np.sum(E0) - E0)
    assert np.allclose(whole[:3], vector, rtol=1e-12, atol=1e-14)
    assert np.allclose(whole[3:], 0.0, atol=1e-14)
    assert np.isclose(0.5 * jnp.sum(vector**2), 2.5 * D, rtol=1e-12, atol=1e-15)
    assert np.allclose(J, differences, rtol=1e-7, atol=1e-8)


@pytest.fixture(scope="module")
def fits():
    """Fits of a torque-free body, by one compiled function, by the weight of the prior."""
    return {w: fit_tensor(w) for w in (1.0, 1e12)}


def inertia_of(fit):
    return np.asarray(fit.model.system.inertia)


def test_covariance_is_the_inverse_of_both_informations(fits):
    """Along the common scale only the prior contributes information."""
    fit = fits[1.0]
    found = inertia_of(fit)
    along = np.asarray(TENSOR.estimates(jnp.asarray(found)))
    values = np.linalg.eigvals(np.linalg.solve(euler(DRAWING), euler(found))).real
    # For each eigenvalue s of S: the square of s dh/ds times root 2, with h^2 = s - log s - 1.
    expected = np.sum((values - 1) ** 2 / (2 * (values - np.log(values) - 1)))
    assert along @ np.linalg.solve(fit.covariance, along) == pytest.approx(expected, rel=1e-5)


def test_heavy_prior_fixes_the_estimate(fits):
    assert np.allclose(inertia_of(fits[1e12]), DRAWING, rtol=0, atol=1e-7)


def test_prior_does_not_depend_on_axes(fits):
    """The motion and the prior in other axes give the same body."""
    Q = np.asarray(rj.RotationVector().to_matrix(jnp.array([-0.5, 0.2, 1.1])))
    turned = inertia_of(fit_tensor(1.0, Q))
    assert np.allclose(Q.T @ turned @ Q, inertia_of(fits[1.0]), rtol=0, atol=1e-7)


def bias_of(experiment):
    return experiment.sensors[0].bias


BIAS_STD, RATE_STD = np.array([0.1, 0.2, np.inf]), 0.5
BIAS_MEAN = np.array([0.3, -0.1, 0.0])


def test_priors_in_planned_runs():
    """The information of a plan equals that of a fit to data of this kind."""
    bias = Parameter("bias", bias_of, prior=GaussianPrior(BIAS_MEAN, BIAS_STD))
    rates = Parameter("rates", cases.rates_of, prior=GaussianPrior(1.0, RATE_STD))
    sphere = free_body((0.02, 0.02, 0.02))
    plan = excitation(sphere, rj.State(), TS[:12], {Gyroscope(): 0.05}, (bias, rates))
    readings = 12 / 0.05**2 * np.ones((2, 2))
    prior = np.concatenate([1 / BIAS_STD**2, np.full(3, 1 / RATE_STD**2)])
    expected = np.kron(readings, np.eye(3)) + np.diag(prior)
    assert np.allclose(plan.information, expected, rtol=1e-7, atol=1e-6)
    assert np.allclose(plan.covariance, np.linalg.inv(expected), rtol=1e-6)
    assert plan.notes[0].startswith("bias has a Gaussian prior; rates has a Gaussian prior.")


def test_priors_of_orientations_and_rates():
    """The mean of an orientation is a quaternion; its residual the rotation vector from it."""
    mean = np.array([np.cos(0.2), np.sin(0.2), 0.0, 0.0])
    prior = GaussianPrior(mean, (0.1, 0.2, 0.4))
    leaf = Orientation().leaf(jnp.array([0.1, -0.2, 0.4]) * 1e-3, jnp.asarray(mean))
    assert np.allclose(prior.rows(Orientation(), leaf), (1e-3, -1e-3, 1e-3), rtol=1e-4)


SKEW = ((1.0, 0.2, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


@pytest.mark.parametrize(
    ("kind", "arguments", "message"),
    [
        (LogDetPrior, ((1.0, 2.0), 1.0), r"LogDetPrior\(value=...\)` must have shape"),
        (LogDetPrior, (SKEW, 1.0), "must be finite, a tensor symmetric"),
        (LogDetPrior, ((1.0, 2.0, 3.0), 1.0), "must be the inertia of a body that is not flat"),
        (LogDetPrior, ((1.0, 1.0, 1.0), 0.0), r"weight=...\)` must be positive and finite; got 0"),
        (GaussianPrior, (np.nan, 1.0), r"GaussianPrior\(mean=...\)` must be finite"),
        (GaussianPrior, (0.0, (1.0, 0.0)), r"GaussianPrior\(std=...\)` must be positive, `inf`"),
    ],
)
def test_invalid_priors_raise(kind, arguments, message):
    with pytest.raises(ValueError, match=message):
        kind(*arguments)


def test_priors_that_do_not_fit_their_parameters_raise():
    moments = LogDetPrior((1.0, 1.0, 1.0), 1.0)
    with pytest.raises(
        ValueError, match="'drag', prior=LogDetPrior.* got Unconstrained. Use `Gaussian"
    ):
        Parameter("drag", cases.drag_of, prior=moments)
    with pytest.raises(TypeError, match=r"'drag', prior=...\)` must be a prior such as"):
        Parameter("drag", cases.drag_of, prior=1.0)  # pyright: ignore[reportArgumentType]

    data = cases.measurements(cases.NOISE, known=True)

    def attempt(where, transform, prior, **options):
        parameter = Parameter("it", where, transform, prior=prior)
        identify(cases.model(), data, parameter, **options)

    with pytest.raises(ValueError, match=r"of 'it' must have the shape of the parameter, \(3,\)"):
        attempt(cases.inertia_of, MOMENTS, LogDetPrior(DRAWING, 1.0))
    with pytest.raises(ValueError, match=r"GaussianPrior\(mean=...\)` of 'it' must be a number or"):
        attempt(cases.inertia_of, MOMENTS, GaussianPrior((1.0, 1.0), 1.0))
    with pytest.raises(ValueError, match="of 'it' must be one number or 3, one for each"):
        attempt(cases.inertia_of, MOMENTS, GaussianPrior(1.0, (1.0, 1.0)))
    parameter = Parameter("it", cases.inertia_of, MOMENTS, prior=LogDetPrior(DRAWING, 1.0))
    state, noise = rj.State(), {Gyroscope(): 1.0}
    with pytest.raises(ValueError, match=r"of 'it' must have the shape of the parameter, \(3,\)"):
        excitation(cases.model(), state, TS, noise, parameter)
    with pytest.raises(ValueError, match=r"`sensitivity` takes no priors; leave `prior` of \['it"):
        sensitivity(cases.model(), state, 1.0, parameter)
