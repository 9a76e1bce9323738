"""Results of an identification."""

import dataclasses
import functools
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import PRNGKeyArray

from ...formulations import AbstractFormulation
from ...io.document import estimate_text, std_text, write_report_file
from ...sensors import AbstractSensor
from ...state import State
from ..data.measurements import Measurements
from ..noise.models import AbstractNoise
from ..search.optimum import Optimum
from ..search.uncertainty import ActiveBound
from ..statistics.estimate_covariance import EstimateCovariance
from ..statistics.identifiability import Identifiability
from ..statistics.verdict import Finding, Verdict, make_verdict, shorten_names
from ..statistics.whiteness import Whiteness, assess_whiteness, successive_correlation
from .previous import Changes, changes_since

if TYPE_CHECKING:
    from ..causes.causes import Cause
    from ..intervals.posterior import Posterior
    from ..intervals.profile import Profile
    from .side_by_side import IntervalTable
    from .validation import Validation

# Confidence level of the intervals in reports.
LEVEL = 0.95


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Fit:
    """Estimates, their uncertainty, and diagnostics of a fit.

    **Attributes:**

    - `model`, `sensors`: with the estimates in them (for parameters per run, those of the first
      run); `models`, `states`, `sensors_by_run`: for every run the model, the state at the first
      sample, and the sensors.
    - `labels`, `units`, `values`, `starts`: of the k fitted parameters, in physical units; `starts`
      are the admissible start values that the fit used.
    - `covariances`: by method, `EstimateCovariance` objects: `"model"` for independent residuals,
      `"hac"` or `"cluster"` for others, see `rj.identify`; `method`, the one that standard
      deviations and intervals use. Linearised at the optimum: exact to first order in the noise,
      independent of the coordinates of the fit. Infinite for undetermined parameters.
    - `correlations`: of the estimates, (k, k).
    - `residuals`: for each run by sensor name, predicted minus measured, (T, C) in the sensor's
      unit; NaN for masked samples.
    - `innovations`: the residuals that the fit minimised, in units of their standard deviation as
      far as that is known: weighted, and whitened by `noise_models`; like `residuals`.
    - `ts`, `run_names`: times, (T,) s, and name of each run.
    - `num_residuals`, the number of scalar samples; `noise_is_known`, whether noise was given;
      `noise`, the standard deviation of a weighted residual: 1 if noise was given, else estimated
      from the residuals, in the sensor's unit; `noise_by_sensor`, estimated noise of each sensor,
      in its unit; `noise_models`, by sensor, of dependent noise; `chi_square`: sum of squares of
      the weighted residuals per degree of freedom.
    - `identifiability`: the verdict; `print(fit.identifiability)`.
    - `result`: "converged", or the reason why not; see also `converged`.
    - `warnings`: reasons not to trust estimates or standard deviations, and remedies.
    - `notes`: changes of the input and recovered failures.
    - `findings` against the intervals, see `verdict`.
    - `offset`: root-mean-square distance of the parameters to the optimum of the linearisation, in
      standard errors; at most 0.1 for a converged fit. With active bounds, the optimum within the
      bounds.
    - `bounds`: the active bounds, `ActiveBound` objects; empty without any. `covariance` is that of
      the linearisation without bounds.
    - `iterations`, `failed_evaluations`, `cost`: see `Minimum`; one entry per stage where the
      horizon grows in stages.
    - `optimum`: the problem and its minimum, see `Optimum`.
    - `process_noise`, `smoothed_states`, `log_likelihood`: of a prediction-error fit, else `None`.
      Standard deviations of the process noise by name; for every run the states at its samples
      given all of its data, (T, ...); the logarithm of the likelihood. Its `residuals` are the
      innovations: predictions one sample ahead minus measured.
    """

    model: AbstractFormulation
    sensors: tuple[AbstractSensor, ...]
    models: tuple[AbstractFormulation, ...]
    states: tuple[State, ...]
    sensors_by_run: tuple[tuple[AbstractSensor, ...], ...]
    labels: tuple[str, ...]
    units: tuple[str, ...]
    values: np.ndarray
    starts: np.ndarray
    covariances: dict[str, EstimateCovariance]
    method: str
    correlations: np.ndarray
    residuals: tuple[dict[str, np.ndarray], ...]
    ts: tuple[np.ndarray, ...]
    run_names: tuple[str, ...]
    num_residuals: int
    noise_is_known: bool
    noise: float
    noise_by_sensor: dict[str, float]
    noise_models: dict[str, AbstractNoise]
    innovations: tuple[dict[str, np.ndarray], ...]
    chi_square: float
    identifiability: Identifiability
    result: str
    warnings: tuple[str, ...]
    findings: tuple[Finding, ...]
    notes: tuple[str, ...]
    iterations: tuple[int, ...]
    failed_evaluations: int
    offset: float
    bounds: tuple[ActiveBound, ...]
    cost: tuple[np.ndarray, ...]
    optimum: Optimum
    process_noise: dict[str, float] | None = None
    smoothed_states: tuple[State, ...] | None = None
    log_likelihood: float | None = None

    def __repr__(self) -> str:
        estimates = ", ".join(
            f"{label}={estimate_text(value, self.std[label])} +- {std_text(self.std[label])}"
            for label, value in list(self.estimates.items())[:6]
        )
        rms = ", ".join(
            f"{name} {value:.4g} {self.sensor_units[name]}" for name, value in self.rms.items()
        )
        more = f", {len(self.labels) - 6} more" if len(self.labels) > 6 else ""
        return f"Fit({self.result}; {estimates}{more}; rms: {rms})"

    def __str__(self) -> str:
        """Return the verdict on the intervals, and the estimates."""
        return f"{self.verdict}\n{self!r}"

    @property
    def verdict(self) -> Verdict:
        """Whether the intervals may be used, and why; the first line of `report`."""
        findings = list(self.findings)
        if not self.converged:
            reason = f"the fit did not converge ({self.result})"
            findings.insert(0, Finding(reason, "", True))
        undetermined = [label for label, std in self.std.items() if not np.isfinite(std)]
        if undetermined:
            reason = f"the data do not determine {shorten_names(undetermined)}"
            findings.append(Finding(reason, "", False))
        supports = []
        tests = [test for tests in self.whiteness.values() for test in tests.values()]
        if all(tests):
            supports.append("residuals are white")
        if self.noise_is_known:
            supports.append("residuals are not larger than the given noise")
        supports.append("parts of the data agree")
        return make_verdict(findings, supports)

    @functools.cached_property
    def causes(self) -> "tuple[Cause, ...]":
        """Possible causes of residuals if the verdict warns, at most three, the best first.

        Friction, loads, gains, delays, gravity and geometry that the model lacks, and errors of
        sensors and data are each added to the fit. A report has them below a verdict that warns.
        They take some seconds, and are empty for prediction errors and robust losses.
        """
        from ..causes.causes import find_causes

        return find_causes(self.optimum, self.noise_is_known) if self.verdict.is_warning else ()

    @property
    def covariance(self) -> np.ndarray:
        """Covariance (k, k) of the estimates by `method`, in physical units."""
        return self.covariances[self.method].matrix

    @property
    def converged(self) -> bool:
        """Whether the minimisation met its criterion."""
        return self.result == "converged"

    @property
    def estimates(self) -> dict[str, float]:
        """Estimates by label, in physical units."""
        return dict(zip(self.labels, self.values.tolist(), strict=True))

    @property
    def std(self) -> dict[str, float]:
        """Standard deviations by label; infinite for undetermined parameters."""
        return dict(zip(self.labels, np.sqrt(np.diag(self.covariance)).tolist(), strict=True))

    @property
    def sensor_units(self) -> dict[str, str]:
        """Unit of the residuals of every sensor, by its name."""
        return {s.name: s.unit_in(self.model) for s in self.sensors}

    @property
    def degrees_of_freedom(self) -> int:
        """Number of residuals minus number of parameters."""
        return self.num_residuals - len(self.labels)

    def quantile(self, level: float, one_sided: bool = False, label: str | None = None) -> float:
        """Return the half-width of a confidence interval in standard deviations.

        The quantile is that of the normal distribution for given noise and independent residuals,
        of Student's distribution with `degrees_of_freedom` for estimated noise, and with those of
        `EstimateCovariance` for dependent residuals. It is infinite without degrees of freedom.

        **Arguments:** `level`, in (0, 1); `one_sided`, for an interval with one end; `label` of the
        estimate, the largest of all if left out.
        """
        quantiles = self.covariances[self.method].quantile(level, one_sided)
        return float(quantiles.max() if label is None else quantiles[self.labels.index(label)])

    def confidence_intervals(self, level: float = 0.95) -> dict[str, tuple[float, float]]:
        r"""Return confidence intervals by label, in physical units: $\hat\theta \pm q\,\sigma$.

        $q$ is the two-sided `quantile`. The intervals are valid, like `covariance`, for residuals
        as `method` assumes them, and where the model is linear over their width. They are infinite
        for undetermined parameters and without degrees of freedom.

        The interval of a parameter on a bound is one-sided: from the bound to $\sigma$ times the
        one-sided quantile inside. As the optimum without the bound lies beyond it, this interval
        contains the part of the unbounded one-sided interval that the bound admits.

        **Arguments:** `level`, the coverage probability, in (0, 1).
        **Errors:** `ValueError` for another level.
        **Source:** Seber and Wild, *Nonlinear Regression* (1989), Section 5.1.
        """
        covariance = self.covariances[self.method]
        half = covariance.quantile(level) * covariance.std
        intervals = {
            label: (float(value - width), float(value + width))
            for label, value, width in zip(self.labels, self.values, half, strict=True)
        }
        bounded = {
            b.label: b.interval(self.quantile(level, True, b.label))
            for b in self.bounds
            if b.label is not None
        }
        return intervals | bounded

    def correlation(self, first: str, second: str) -> float:
        """Return the correlation of two estimates, by label."""
        return float(self.correlations[self.labels.index(first), self.labels.index(second)])

    @property
    def rms(self) -> dict[str, float]:
        """Root mean square of the residuals over samples and channels, by sensor, in its unit."""
        return {s.name: _rms(np.concatenate(self._by_run(s.name))) for s in self.sensors}

    @property
    def rms_by_run(self) -> dict[str, dict[str, float]]:
        """Root mean square of the residuals of each run, by sensor and run."""
        return {
            s.name: dict(zip(self.run_names, map(_rms, self._by_run(s.name)), strict=True))
            for s in self.sensors
        }

    @property
    def rms_by_channel(self) -> dict[str, dict[str, float]]:
        """Root mean square of the residuals of each channel, by sensor and channel."""
        rms = {}
        for s in self.sensors:
            samples = np.concatenate(self._by_run(s.name))
            rms[s.name] = {c: _rms(samples[:, k]) for k, c in enumerate(s.channels)}
        return rms

    @property
    def autocorrelation(self) -> dict[str, float]:
        """Correlation of successive innovations, pooled over runs and channels, by sensor.

        It is near zero for independent residuals.
        """
        return {s.name: successive_correlation(self._innovations(s.name)) for s in self.sensors}

    @property
    def whiteness(self) -> dict[str, dict[str, Whiteness | None]]:
        """Results of the tests for whiteness of the innovations, by sensor and channel.

        `None` for too few residuals. A small `p_value` indicates that residuals are not
        independent, see `ljung_box`.
        """
        results = {}
        for s in self.sensors:
            runs = self._innovations(s.name)
            results[s.name] = {
                c: assess_whiteness([r[:, k] for r in runs]) for k, c in enumerate(s.channels)
            }
        return results

    def report(
        self,
        path: str | os.PathLike[str] | None = None,
        force: bool = False,
        previous: str | os.PathLike[str] | None = None,
        intervals: "IntervalTable | None" = None,
        causes: bool = True,
    ) -> str:
        """Return the fit as Markdown; write it to `path` if given, in the format of its ending.

        **Arguments:** `path`, ending in `.md`, `.txt`, `.json` with all numbers, or `.csv` with the
        table of the estimates; `force`, whether to replace an existing file; `previous`, an earlier
        report in JSON, whose estimates are compared; `intervals` of this fit by several methods,
        from `rigidjax.identification.interval_table`, by default those of the fit alone; `causes`,
        whether to search for `causes` of residuals if the verdict warns.
        **Errors:** `ValueError` for another ending, and for another `previous` file;
        `FileExistsError` without `force`; `OSError` for a path that cannot be read or written.
        """
        # Imported here because reports and tables of intervals are made from fits.
        from .report import as_document, as_record, numbers_table
        from .side_by_side import interval_table

        table = interval_table(self) if intervals is None else intervals
        changes = None if previous is None else self.changes_since(previous)
        more = {} if changes is None else {"changes": changes.to_record()}

        def record_causes() -> dict[str, Any]:
            return {"causes": [cause._asdict() for cause in self.causes]} if causes else {}

        return write_report_file(
            path,
            force,
            lambda: as_document(self, table, changes, causes),
            lambda: as_record(self) | more | record_causes() | {"intervals": table.to_record()},
            lambda: numbers_table(self),
        )

    def changes_since(self, previous: str | os.PathLike[str]) -> Changes:
        """Return the changes of the estimates since an earlier report.

        **Arguments:** `previous`, a file that `report("fit.json")` wrote.
        **Errors:** `OSError` for a file that cannot be read; `ValueError` for other content.
        """
        from .report import as_record

        return changes_since(as_record(self), previous)

    def validate(
        self,
        held_out: Measurements | Sequence[Measurements],
        state0: State | Sequence[State] | None = None,
    ) -> "Validation":
        """Predict held-out runs, which the fit has not seen, and compare with their readings.

        Every run is predicted twice. The prediction from the start alone uses nothing of the run
        but its inputs and its start. For the prediction with fitted starts, the start of the run,
        and other parameters with one value per run, are fitted to its readings, with all other
        parameters held. Parameters with one value per run begin at the value in the model that the
        fit was given.

        ```python
        fit = rj.identify(model, runs[:4], parameters)
        print(fit.validate(runs[4:]))
        ```

        **Arguments:** `held_out`, runs with the sensors and measured inputs of the fit, their noise
        is that of the fit if they have none; `state0`, as in `rj.identify`: if left out, the start
        is that of the first samples.
        **Returns:** a `Validation`: a table by sensor and a sentence.
        **Errors:** `ValueError` for runs with other sensors or without inputs;
        `IdentificationError` for a run that cannot be simulated.
        """
        from .validation import validate

        dependent = {name: self.rms[name] for name in self.noise_models}
        return validate(self.optimum, dependent | self.noise_by_sensor, held_out, state0)

    def profile(self, name: str, level: float = 0.95) -> "Profile":
        r"""Return the profile likelihood of one parameter and its interval.

        The parameter is held at values on both sides of its estimate, and all others are fitted
        again. The interval has the values that a likelihood-ratio test accepts. It follows the
        curvature of the model, and near a bound of the parameter its level is right, whereas the
        linearisation has intervals that are symmetric or end at the bound. Priors count as data.
        Estimated noise stays at its estimate.

        ```python
        print(fit.profile("damping"))
        ```

        **Arguments:** `name`, a label of `Fit.labels`; `level` of the interval, in (0, 1).
        **Returns:** a `Profile`.
        **Errors:** `ValueError` for other arguments, for components of orientations, for parameters
        that the data do not determine, and for robust losses.
        **Source:** Seber and Wild, *Nonlinear Regression* (1989), Section 5.9.3; near bounds
        Cowan, Cranmer, Gross, Vitells, Eur. Phys. J. C 71 (2011) 1554.
        """
        from ..intervals.profile import profile

        is_label = name in self.labels and 0 < level < 1
        std = dict(zip(self.labels, self.covariances["model"].std.tolist(), strict=True))
        return profile(
            self.optimum,
            name,
            level=level,
            std=std.get(name, float("nan")),
            linearised=self.confidence_intervals(level)[name] if is_label else (0.0, 0.0),
            variance=self.noise**2,
            freedom=float("inf") if self.noise_is_known else float(self.degrees_of_freedom),
        )

    def posterior(
        self, key: PRNGKeyArray, samples: int = 1000, chains: int = 4, warmup: int = 300
    ) -> "Posterior":
        r"""Sample the posterior distribution of the parameters.

        Where it is close to its Laplace approximation, chains accept or reject independent draws
        around the estimate, whose runs are one batch. Otherwise the No-U-Turn sampler runs all
        chains at once, with exact gradients from the Jacobian of the residuals.
        Parameters without a prior have a flat one in physical units, within their bounds. Noise
        that was estimated is integrated out with the prior $1/\sigma$.

        It needs the optional package BlackJAX: `pip install 'rigidjax[posterior]'`.

        ```python
        posterior = fit.posterior(jax.random.key(0))
        print(posterior, posterior.intervals())
        ```

        **Arguments:** `key`, a JAX random key; `samples` of each chain; `chains`, 2 or more;
        `warmup`, number of samples in which the step size is adapted, which are dropped.
        **Returns:** a `Posterior`.
        **Errors:** `ValueError` for other numbers, and for parameters that the data do not
        determine; `ModuleNotFoundError` without BlackJAX.
        **Source:** Hoffman and Gelman, J. Mach. Learn. Res. 15 (2014) 1593; R-hat and effective
        samples: Vehtari, Gelman, Simpson, Carpenter, Bürkner, Bayesian Anal. 16 (2021) 667.
        """
        from ..intervals.posterior import sample_posterior

        if not self.identifiability.identifiable:
            raise ValueError(
                "`Fit.posterior`: the data do not determine all parameters, so that their "
                "posterior has no finite width. Fix some of them, or give priors."
            )
        return sample_posterior(
            self.optimum,
            key,
            samples,
            chains,
            warmup,
            variance=self.noise**2,
            bounds={b.label: (b.limit, b.is_lower) for b in self.bounds if b.label is not None},
        )

    def _by_run(self, name: str) -> list[np.ndarray]:
        return [run[name] for run in self.residuals]

    def _innovations(self, name: str) -> list[np.ndarray]:
        return [run[name] for run in self.innovations]


def _rms(values: Any) -> float:
    return float(np.sqrt(np.nanmean(np.square(values))))
