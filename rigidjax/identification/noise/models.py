"""Models of the noise of one sensor, as linear state-space models driven by white noise.

The channels of a sensor have independent noise with the same parameters. The state has n entries;
the noise of a sample is the first of them, plus white noise for some models.
"""

import abc
import re
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from ...annotations import Matrix, Scalar
from ...checks import as_leaf, float_array
from ...sensors import AbstractSensor

# Number of squarings of a transition matrix: longer gaps than 2^16 samples count as infinite.
_SQUARINGS = 16


# An autoregressive model whose order is selected from the residuals.
SELECT_ORDER = "ar(p)"


class AbstractNoise(eqx.Module):
    """Noise of one sensor. A fit estimates the parameters of the model unless they are given.

    Gaps are the times between successive samples of a channel, s, or their number of sampling
    intervals where `counts_samples` is true.
    """

    counts_samples: eqx.AbstractClassVar[bool]
    # Whether the first state is unknown; else it has the covariance `first_covariance`.
    has_unknown_start: eqx.AbstractClassVar[bool]

    @property
    @abc.abstractmethod
    def is_known(self) -> bool:
        """Whether the parameters of the model are given."""

    @abc.abstractmethod
    def guess(self, std: float, interval: float, white_is_known: bool) -> Float[np.ndarray, " d"]:
        """Return coordinates to start an estimation from.

        **Arguments:** `std` of the residuals; `interval`, a typical one between samples, s;
        `white_is_known`, whether white noise of unit variance (in units of the given noise) is
        part of the residuals; else its standard deviation is a coordinate.
        """

    @abc.abstractmethod
    def at(self, coordinates: Float[Array, " d"], white_is_known: bool) -> "AbstractNoise":
        """Return the model with the parameters at unbounded coordinates."""

    @abc.abstractmethod
    def transition(self, gap: Scalar) -> Matrix:
        """Return the transition matrix over a gap."""

    @abc.abstractmethod
    def process_covariance(self, gap: Scalar, transition: Matrix) -> Matrix:
        """Return the covariance that the state gains over a gap."""

    @property
    @abc.abstractmethod
    def first_covariance(self) -> Matrix:
        """Covariance of the state at the first sample; without meaning for an unknown start."""

    @property
    @abc.abstractmethod
    def white_variance(self) -> Scalar | None:
        """Variance of the white noise in it, zero without any; `None` for that of the sensor."""

    @abc.abstractmethod
    def describe(self, unit: str) -> str:
        """Return the parameters in words."""


class AutoRegressive(AbstractNoise):
    r"""Stationary noise whose samples depend on the p before: $e_t = \sum_k a_k e_{t-k} + w_t$.

    **Arguments:** `order`, p, from 1 to 8; `coefficients`, $a$ (p,), of a stationary model, if the
    noise is known; `std`, of the samples, in the unit of the sensor, likewise. The model keeps them
    as `partial` autocorrelations (p,).
    **Errors:** `ValueError` for another order, coefficients that are not stationary, and one of
    `coefficients` and `std` without the other.
    **Source:** Box, Jenkins, *Time Series Analysis* (1976), chapter 3; coordinates: Monahan,
    Biometrika 71 (1984) 403.
    """

    counts_samples = True
    has_unknown_start = False
    order: int = eqx.field(static=True)
    partial: Any
    std: Any

    def __init__(
        self, order: int = 1, coefficients: ArrayLike | None = None, std: ArrayLike | None = None
    ):
        if isinstance(order, bool) or not isinstance(order, int) or not 1 <= order <= 8:
            raise ValueError(f"`AutoRegressive(order=...)` must be from 1 to 8; got {order!r}.")
        if (coefficients is None) != (std is None):
            raise ValueError(
                "`AutoRegressive` takes both `coefficients` and `std`, which then stay fixed, or "
                "neither, to estimate them."
            )
        self.order, self.partial, self.std = order, None, None
        if coefficients is not None:
            values = float_array(coefficients, "AutoRegressive(coefficients=...)", (order,))
            partial = _partial_correlations(np.asarray(values, float))
            if not np.all(np.abs(partial) < 1):
                raise ValueError(
                    "`AutoRegressive(coefficients=...)` must be those of a stationary model, whose "
                    f"noise does not grow; got {np.asarray(coefficients).tolist()}."
                )
            self.partial = as_leaf(partial)
            self.std = as_leaf(_positive(std, "AutoRegressive(std=...)"))

    @property
    def is_known(self) -> bool:
        return self.std is not None

    @property
    def coefficients(self) -> Float[Array, " p"]:
        """The coefficients $a$, (p,)."""
        return _levinson(self.partial)[0]

    def guess(self, std: float, interval: float, white_is_known: bool) -> Float[np.ndarray, " d"]:
        return np.array([np.log(std), np.arctanh(0.5), *np.zeros(self.order - 1)])

    def at(self, coordinates: Float[Array, " d"], white_is_known: bool) -> AbstractNoise:
        new = AutoRegressive(self.order)
        values = jnp.tanh(coordinates[1:]), jnp.exp(coordinates[0])
        return eqx.tree_at(
            lambda m: (m.partial, m.std), new, values, is_leaf=lambda leaf: leaf is None
        )

    def transition(self, gap: Scalar) -> Matrix:
        single = jnp.eye(self.order, k=-1, dtype=self.partial.dtype).at[0].set(self.coefficients)

        def square(carry, bit):
            power, product = carry
            product = jnp.where((steps >> bit) & 1, power @ product, product)
            return (power @ power, product), None

        steps = jnp.clip(jnp.round(gap), 0, 2.0**_SQUARINGS - 1).astype(jnp.int32)
        start = single, jnp.eye(self.order, dtype=single.dtype)
        return jax.lax.scan(square, start, jnp.arange(_SQUARINGS))[0][1]

    def process_covariance(self, gap: Scalar, transition: Matrix) -> Matrix:
        stationary = self.first_covariance
        return stationary - transition @ stationary @ transition.T

    @property
    def first_covariance(self):
        correlations = _levinson(self.partial)[1][: self.order]
        lags = np.abs(np.subtract.outer(np.arange(self.order), np.arange(self.order)))
        return self.std**2 * correlations[lags]

    @property
    def white_variance(self):
        return jnp.zeros_like(self.std)

    def describe(self, unit: str) -> str:
        numbers = ", ".join(f"{a:.3g}" for a in np.asarray(self.coefficients))
        return f"ar({self.order}), standard deviation {float(self.std):.4g} {unit}, {numbers}"


class GaussianProcess(AbstractNoise):
    r"""Noise with the covariance $s^2 e^{-|t - t'|/\tau}$, plus white noise.

    **Arguments:** `std`, $s$, in the unit of the sensor, if the noise is known; `time_constant`,
    $\tau$, s, likewise; `white`, standard deviation of the white noise, by default that of the
    measurements.
    **Errors:** `ValueError` for values that are not positive, and for one of `std` and
    `time_constant` without the other.
    **Source:** Rasmussen, Williams, *Gaussian Processes for Machine Learning* (2006), (4.14); as a
    filter: Särkkä, Solin, *Applied Stochastic Differential Equations* (2019), section 12.3.
    """

    counts_samples = False
    has_unknown_start = False
    std: Any
    time_constant: Any
    white: Any

    def __init__(
        self,
        std: ArrayLike | None = None,
        time_constant: ArrayLike | None = None,
        white: ArrayLike | None = None,
    ):
        if (std is None) != (time_constant is None) or (std is None and white is not None):
            raise ValueError(
                "`GaussianProcess` takes both `std` and `time_constant`, which then stay fixed, or "
                "neither, to estimate them."
            )
        given = {"std": std, "time_constant": time_constant, "white": white}
        for name, value in given.items():
            number = None if value is None else _positive(value, f"GaussianProcess({name}=...)")
            setattr(self, name, None if number is None else as_leaf(number))

    @property
    def is_known(self) -> bool:
        return self.std is not None

    def guess(self, std: float, interval: float, white_is_known: bool) -> Float[np.ndarray, " d"]:
        start = [np.log(0.7 * std), np.log(10 * interval)]
        return np.array(start if white_is_known else [*start, np.log(0.7 * std)])

    def at(self, coordinates: Float[Array, " d"], white_is_known: bool) -> AbstractNoise:
        values = jnp.exp(coordinates)
        return eqx.tree_at(
            lambda m: (m.std, m.time_constant, m.white),
            GaussianProcess(),
            (values[0], values[1], None if white_is_known else values[2]),
            is_leaf=lambda leaf: leaf is None,
        )

    def transition(self, gap: Scalar) -> Matrix:
        return jnp.exp(-gap / self.time_constant)[None, None]

    def process_covariance(self, gap: Scalar, transition: Matrix) -> Matrix:
        return -(self.std**2) * jnp.expm1(-2 * gap / self.time_constant)[None, None]

    @property
    def first_covariance(self):
        return (self.std**2)[None, None]

    @property
    def white_variance(self):
        return None if self.white is None else self.white**2

    def describe(self, unit: str) -> str:
        return (
            f"correlated noise of {float(self.std):.4g} {unit} with the time constant "
            f"{float(self.time_constant):.3g} s{_describe_white(self.white, unit)}"
        )


class RandomWalk(AbstractNoise):
    r"""A bias that walks at random, with the variance $q^2 t$ after the time $t$, plus white noise.

    The bias at the start of a run is unknown: a parameter for a constant bias of the same sensor
    would act on nothing.

    **Arguments:** `intensity`, $q$, in the unit of the sensor per root second, if the noise is
    known; `white`, standard deviation of the white noise, by default that of the measurements.
    **Errors:** `ValueError` for values that are not positive, and for `white` alone.
    **Source:** Särkkä, Svensson, *Bayesian Filtering and Smoothing* (2023), section 4.3.
    """

    counts_samples = False
    has_unknown_start = True
    intensity: Any
    white: Any

    def __init__(self, intensity: ArrayLike | None = None, white: ArrayLike | None = None):
        if intensity is None and white is not None:
            raise ValueError("`RandomWalk(white=...)` needs `intensity` too.")
        for name, value in (("intensity", intensity), ("white", white)):
            number = None if value is None else _positive(value, f"RandomWalk({name}=...)")
            setattr(self, name, None if number is None else as_leaf(number))

    @property
    def is_known(self) -> bool:
        return self.intensity is not None

    def guess(self, std: float, interval: float, white_is_known: bool) -> Float[np.ndarray, " d"]:
        start = [np.log(0.1 * std / np.sqrt(interval))]
        return np.array(start if white_is_known else [*start, np.log(0.9 * std)])

    def at(self, coordinates: Float[Array, " d"], white_is_known: bool) -> AbstractNoise:
        values = jnp.exp(coordinates)
        return eqx.tree_at(
            lambda m: (m.intensity, m.white),
            RandomWalk(),
            (values[0], None if white_is_known else values[1]),
            is_leaf=lambda leaf: leaf is None,
        )

    def transition(self, gap: Scalar) -> Matrix:
        return jnp.ones((1, 1), jnp.result_type(gap))

    def process_covariance(self, gap: Scalar, transition: Matrix) -> Matrix:
        return (self.intensity**2 * gap)[None, None]

    @property
    def first_covariance(self):
        return jnp.ones((1, 1), jnp.result_type(self.intensity))

    @property
    def white_variance(self):
        return None if self.white is None else self.white**2

    def describe(self, unit: str) -> str:
        return (
            f"a bias that walks by {float(self.intensity):.3g} {unit} per root second"
            f"{_describe_white(self.white, unit)}"
        )


def _describe_white(white: Array | None, unit: str) -> str:
    return "" if white is None else f", and white noise of {float(white):.4g} {unit}"


def _positive(value: ArrayLike | None, argument: str) -> np.ndarray:
    number = np.asarray(float_array(value, argument, ()))
    if not number > 0:
        raise ValueError(f"`{argument}` must be positive; got {value!r}.")
    return number


def _levinson(partial: Float[Array, " p"]) -> tuple[Float[Array, " p"], Float[Array, " q"]]:
    """Return coefficients (p,) and autocorrelations (p + 1,) of partial autocorrelations.

    **Source:** Durbin, Revue de l'Institut International de Statistique 28 (1960) 233.
    """
    coefficients, variance = partial[:0], jnp.ones_like(partial[0])
    correlations = [variance]
    for k in range(partial.shape[0]):
        before = jnp.stack(correlations[::-1])[:k]
        correlations.append(jnp.sum(coefficients * before) + partial[k] * variance)
        coefficients = jnp.concatenate(
            [coefficients - partial[k] * coefficients[::-1], partial[k : k + 1]]
        )
        variance = variance * (1 - partial[k] ** 2)
    return coefficients, jnp.stack(correlations)


def _partial_correlations(coefficients: np.ndarray) -> np.ndarray:
    """Return the partial autocorrelations of coefficients, by the recursion of `_levinson`."""
    partial, remaining = [], coefficients
    while len(remaining):
        last = remaining[-1]
        partial.append(last)
        if abs(last) >= 1:
            return np.array([last])
        remaining = (remaining[:-1] + last * remaining[-2::-1]) / (1 - last**2)
    return np.array(partial[::-1])


NoiseModel: TypeAlias = AbstractNoise | str
NoiseArgument: TypeAlias = NoiseModel | Mapping[AbstractSensor | str, NoiseModel]


def noise_models(
    entry: str, noise: NoiseArgument, sensors: Sequence[AbstractSensor]
) -> tuple[AbstractNoise | str | None, ...]:
    """Return the noise model of every sensor: `None` for white noise, or `SELECT_ORDER`.

    **Errors:** `ValueError` for an unknown model or sensor; `TypeError` for other objects.
    """
    if not isinstance(noise, Mapping):
        return (_noise_model(entry, noise),) * len(sensors)
    names = [sensor.name for sensor in sensors]
    models: dict[str, Any] = dict.fromkeys(names)
    for key, model in noise.items():
        name = key.name if isinstance(key, AbstractSensor) else key
        if name not in models:
            raise ValueError(f"`{entry}(noise=...)` names the sensor {name!r}; there are {names}.")
        models[name] = _noise_model(entry, model)
    return tuple(models.values())


def _noise_model(entry: str, model: Any) -> AbstractNoise | str | None:
    if isinstance(model, AbstractNoise):
        return model
    if not isinstance(model, str):
        raise TypeError(
            f"`{entry}(noise=...)` takes the name of a noise model, an object such as "
            f"`rj.identification.AutoRegressive(2)`, or a dictionary of them by sensor; got "
            f"{model!r}."
        )
    if model in ("white", SELECT_ORDER):
        return None if model == "white" else SELECT_ORDER
    if model in ("gp", "random-walk"):
        return GaussianProcess() if model == "gp" else RandomWalk()
    order = re.fullmatch(r"ar\(?([1-8])\)?", model)
    if order is None:
        raise ValueError(
            f'`{entry}(noise=...)` must be "white", "ar1" to "ar8", "{SELECT_ORDER}" (the order is '
            f'selected), "gp", "random-walk", or a dictionary of them by sensor; got {model!r}.'
        )
    return AutoRegressive(int(order[1]))
