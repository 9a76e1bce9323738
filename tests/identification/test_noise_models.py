"""Models of dependent noise: filters against dense covariances, likelihood, orders, and fits."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from _studies import free_body
from scipy.signal import lfilter

import rigidjax as rj
from rigidjax.identification import AutoRegressive, GaussianProcess, Huber, RandomWalk, identify
from rigidjax.identification.noise.kalman import make_whitening, sample_gaps
from rigidjax.identification.noise.likelihood import LinearisedFit, SensorNoise
from rigidjax.identification.search.noise import difference_noise
from rigidjax.identification.statistics.sandwich import fit_autoregression

RNG = np.random.default_rng(3)
COUNT = 40
USED = RNG.random(COUNT) > 0.3
UNEVEN = np.cumsum(RNG.uniform(0.05, 0.2, COUNT))
EVEN = 0.01 * np.arange(COUNT)
WEIGHTS = 5.0 * USED[None, :, None]


def autoregressive_covariance(coefficients, std):
    """The covariance of COUNT successive samples, from the stationary equation of the process."""
    order = len(coefficients)
    companion = np.eye(order, k=-1)
    companion[0] = coefficients
    drive = np.zeros((order, order))
    drive[0, 0] = 1.0
    product = np.eye(order**2) - np.kron(companion, companion)
    stationary = np.linalg.solve(product, drive.ravel()).reshape(order, order)
    lags = [(np.linalg.matrix_power(companion, k) @ stationary)[0, 0] for k in range(COUNT)]
    index = np.arange(COUNT)
    return std**2 * np.array(lags)[np.abs(index[:, None] - index)] / lags[0]


def process_covariance(std, time_constant, white):
    distance = np.abs(UNEVEN[:, None] - UNEVEN)
    return std**2 * np.exp(-distance / time_constant) + white**2 * np.eye(COUNT)


def walk_covariance(intensity, white):
    return intensity**2 * np.minimum(UNEVEN[:, None], UNEVEN) + white**2 * np.eye(COUNT)


CASES = {
    "ar1": (AutoRegressive(1, [0.9], 2.0), EVEN, autoregressive_covariance([0.9], 2.0)),
    "ar3": (
        AutoRegressive(3, [0.5, 0.2, -0.3], 1.0),
        EVEN,
        autoregressive_covariance([0.5, 0.2, -0.3], 1.0),
    ),
    "gp": (GaussianProcess(0.7, 0.5, 0.3), UNEVEN, process_covariance(0.7, 0.5, 0.3)),
    "walk": (RandomWalk(0.5, 0.2), UNEVEN, walk_covariance(0.5, 0.2)),
}


def dense_filter(model, ts, weights=WEIGHTS):
    """The filter of a model as a matrix, for the samples that are there."""
    gaps = sample_gaps("encoder", ts[None], weights / weights.max(), model.counts_samples, False)
    whitening = make_whitening(model, jax.tree.map(lambda x: x[0], gaps))
    return np.asarray(whitening(jnp.eye(COUNT)[:, None]))[:, 0][USED][:, USED]


@pytest.mark.parametrize("case", CASES)
def test_filters_whiten_dense_covariances(case):
    model, ts, covariance = CASES[case]
    L = dense_filter(model, ts)
    if model.has_unknown_start:
        # Nothing is known of the first sample; what remains does not see a constant.
        np.testing.assert_allclose(L @ np.ones(len(L)), 0.0, atol=1e-13)
        np.testing.assert_array_equal(L[0], 0.0)
        L = L[1:]
    whitened = L @ covariance[USED][:, USED] @ L.T
    np.testing.assert_allclose(whitened, np.eye(len(L)), atol=1e-12)


def test_restricted_likelihood_equals_its_dense_formula():
    X, r = RNG.normal(size=(COUNT, 2)), RNG.normal(size=COUNT)
    gaps = sample_gaps("encoder", UNEVEN[None], WEIGHTS / 5.0, False, False)
    sensor = SensorNoise(GaussianProcess(), gaps, False)
    columns = jnp.asarray(np.where(USED[:, None], np.column_stack([X, r]), 0.0)[None, :, None])
    nothing = jnp.zeros(0), jnp.zeros((0, 2))
    fit = LinearisedFit(sensors=(sensor,), columns=(columns,), prior=nothing, num_shared=2)

    def dense(std, time_constant, white):
        V = process_covariance(std, time_constant, white)[USED][:, USED]
        A, b = X[USED], r[USED]
        W = np.linalg.inv(V)
        residual = b - A @ np.linalg.solve(A.T @ W @ A, A.T @ W @ b)
        logs = np.linalg.slogdet(V)[1] + np.linalg.slogdet(A.T @ W @ A)[1]
        return logs + residual @ W @ residual

    for numbers in ((0.7, 0.5, 0.3), (1.5, 0.1, 0.8)):
        found = fit.deviance(jnp.log(jnp.asarray(numbers)))
        np.testing.assert_allclose(found, dense(*numbers), rtol=1e-10)


def autoregressive_noise(coefficients, shape, rng):
    """Stationary noise of unit variance."""
    drive = rng.normal(size=(shape[0] + 500, *shape[1:]))
    series = lfilter([1.0], [1.0, *-np.asarray(coefficients)], drive, axis=0)[500:]
    impulse = lfilter([1.0], [1.0, *-np.asarray(coefficients)], np.eye(1, 4000)[0])
    return series / np.linalg.norm(impulse)


@pytest.mark.parametrize(("coefficients", "order"), [([0.9], 1), ([1.6, -0.9], 2)])
def test_orders_are_selected(coefficients, order):
    rng = np.random.default_rng(1)
    series = [autoregressive_noise(coefficients, (2000,), rng) for _ in range(2)]
    series[0][100:130] = np.nan
    assert len(fit_autoregression(series, 8)) == order


def test_differences_show_white_noise():
    rng = np.random.default_rng(2)
    ts = np.linspace(0.0, 4.0, 2001)
    values = np.sin(3.0 * ts) + 1e-3 * rng.normal(size=ts.shape)
    found = difference_noise(ts[None], values[None], np.ones((1, 2001, 1)))
    # The scatter of 2,000 samples is 3 %; the sine adds less.
    np.testing.assert_allclose(found, 1e-3, rtol=0.1)
    assert difference_noise(ts[None, :9], values[None, :9], np.ones((1, 9, 1))) == np.inf


@pytest.fixture(scope="module")
def experiment():
    study = free_body(101)
    return study, study.readings()


def fit_with(experiment, noise, std=None, coefficients=(0.9,), **options):
    study, exact = experiment
    rng = np.random.default_rng(4)
    (sensor, values), *_ = exact.items()
    errors = autoregressive_noise(coefficients, values.shape, rng)
    data = rj.Measurements(
        study.ts, {sensor: values + 0.01 * errors}, None if std is None else {sensor: std}
    )
    return identify(
        study.model, data, study.parameters, state0=study.state0, noise=noise,
        horizons=(1.0,), **options,
    )  # fmt: skip


def test_residuals_stay_plain(experiment):
    fit = fit_with(experiment, "ar1")
    (residuals,), (innovations,) = fit.residuals, fit.innovations
    assert 0.005 < np.std(residuals["gyroscope"]) < 0.02
    assert 0.8 < np.std(innovations["gyroscope"]) < 1.2


@pytest.mark.parametrize(
    ("noise", "error", "message"),
    [
        ("ar9", ValueError, r'must be "white", "ar1" to "ar8".*got \'ar9\''),
        ({"compass": "ar1"}, ValueError, r"names the sensor 'compass'; there are \['gyroscope'\]"),
        (3, TypeError, r"takes the name of a noise model.*got 3"),
    ],
)
def test_invalid_noise_raises(experiment, noise, error, message):
    with pytest.raises(error, match=message):
        fit_with(experiment, noise)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: AutoRegressive(0), r"order=...\)` must be from 1 to 8; got 0"),
        (lambda: AutoRegressive(1, [1.1], 1.0), r"must be those of a stationary model"),
        (lambda: AutoRegressive(1, [0.5]), r"takes both `coefficients` and `std`"),
        (lambda: GaussianProcess(1.0), r"takes both `std` and `time_constant`"),
        (lambda: GaussianProcess(-1.0, 1.0), r"std=...\)` must be positive; got -1.0"),
        (lambda: RandomWalk(white=1.0), r"`white=...`|needs `intensity`"),
        (
            lambda: sample_gaps("encoder", UNEVEN[None], WEIGHTS, True, False),
            r"equidistant samples.*'encoder' are 0\.\d+ intervals off",
        ),
    ],
)
def test_invalid_noise_models_raise(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_robust_losses_take_white_noise_only(experiment):
    with pytest.raises(ValueError, match=r"filters residuals, in which an outlier spreads"):
        fit_with(experiment, "ar1", 0.01, loss=Huber())
