"""Fisher information of a planned run."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, Unpack

import numpy as np
from jaxtyping import Array, ArrayLike, Float

from ...formulations.choice import ModelInput
from ...persistent_jit import persistent_jit
from ...results import RESULTS, SimulationError
from ...state import State
from ..experiment.parameters import Experiment, Parameter, describe_priors
from ..experiment.simulation import Settings, Simulation, resolve_simulation
from ..statistics.identifiability import Identifiability, judge
from .plan import RunPlan, make_plan


@dataclasses.dataclass(frozen=True, repr=False)
class Excitation:
    r"""Fisher information of a planned run, and quantities derived from it.

    For noise that is normal and independent from sample to sample, no unbiased estimate has a
    covariance below $F^{-1}$ (Cramer and Rao). Least squares reach it if the problem is nearly
    linear within the uncertainty.

    **Attributes:**

    - `labels`, `units`, `values`: of the parameters, (p,), as in a `Fit`.
    - `information`: $F = J^T J$, where $J$ has the derivatives of all readings, each divided by its
      noise, and below them the derivatives of the residuals of the priors, (p, p), in units of the
      parameters; `covariance`, its inverse, infinite for undetermined parameters; `correlations`,
      (p, p).
    - `scale`: the size of each parameter, (p,): its largest component, 1 if all are zero.
      `relative_information` is that of relative changes, from which the scores are computed.
    - `d_score`: $\log\det F$ of relative changes; larger is better.
    - `a_score`: $\mathrm{tr}\,F^{-1}$ of relative changes; smaller is better.
    - `e_score`: $\lambda_{\min}(F)$ of relative changes; larger is better.
    - `condition`: of the weighted Jacobian in relative changes, the square root of
      `modified_e_score`, $\lambda_{\max}/\lambda_{\min}$.
    - `identifiability`: the verdict, as for a fit.
    - `num_readings`: number of scalar readings.
    - `notes`: names of parameters with a prior.
    """

    labels: tuple[str, ...]
    units: tuple[str, ...]
    values: np.ndarray
    scale: np.ndarray
    information: np.ndarray
    covariance: np.ndarray
    correlations: np.ndarray
    d_score: float
    a_score: float
    e_score: float
    condition: float
    identifiability: Identifiability
    num_readings: int
    notes: tuple[str, ...] = ()

    @property
    def modified_e_score(self) -> float:
        """Largest over smallest eigenvalue of the relative information."""
        return self.condition**2

    @property
    def relative_information(self) -> np.ndarray:
        """Information on relative changes of the parameters, (p, p)."""
        return self.information * np.outer(self.scale, self.scale)

    @property
    def std(self) -> dict[str, float]:
        """Expected standard deviations, by label."""
        deviations = np.sqrt(np.diag(self.covariance))
        return {label: float(x) for label, x in zip(self.labels, deviations, strict=True)}

    def __repr__(self) -> str:
        rows = [
            f"{label} = {value:.6g} +- {std:.2g}{' ' * bool(unit)}{unit}"
            for label, unit, value, std in zip(
                self.labels, self.units, self.values, self.std.values(), strict=True
            )
        ]
        scores = (
            f"D {self.d_score:.4g}, A {self.a_score:.4g}, E {self.e_score:.4g}, condition "
            f"{self.condition:.4g}"
        )
        return "\n".join([*rows, scores, str(self.identifiability), *self.notes])


def excitation(
    model: ModelInput,
    state0: State,
    ts: ArrayLike,
    noise: Mapping[Any, ArrayLike],
    parameters: Parameter | Sequence[Parameter],
    *,
    simulation: Simulation | None = None,
    **settings: Unpack[Settings],
) -> Excitation:
    r"""Return the Fisher information of a planned run, without any data.

    A prior of a parameter adds its own information, linearised as in the covariance of a `Fit`:
    $1/\sigma_i^2$ for a `GaussianPrior`, the second derivatives of the divergence for a
    `LogDetPrior` at the planned value.

    **Arguments:**

    - `model`, `state0`: the planned run, with the expected values of the parameters; a `start` of a
      parameter replaces the value in the model.
    - `ts`: times of the samples, increasing, shape (T,), s. The run starts at `ts[0]`.
    - `noise`: for each sensor the standard deviation of its noise, in its unit: one number, one per
      channel (C,), or per sample and channel (T, C); `inf` for a sample that is not taken.
    - `parameters`: the parameters that would be fitted, each a `Parameter`, with or without a
      prior.
    - `simulation`: an `rj.Simulation`.
    - `solver`, `rtol`, `atol`, `dt`, `projection`, `adjoint`, `max_steps`, `backend`: instead of
      `simulation`, its arguments.

    **Returns:** an `Excitation`.
    **Raises:** `ValueError` and `TypeError` for arguments that do not fit; `SimulationError`.
    **Source:** Swevers et al., IEEE Trans. Robotics and Automation 13(5), 1997; Pronzato,
    Automatica 44(2), 2008.
    """
    run_settings = resolve_simulation("excitation", simulation, settings)
    plan = make_plan("excitation", model, state0, ts, noise, parameters, run_settings)
    return evaluate_excitation(plan, plan.experiment)


def evaluate_excitation(
    plan: RunPlan, experiment: Experiment, scale: np.ndarray | None = None
) -> Excitation:
    """Return the excitation of an experiment with the same structure as that of the plan.

    **Arguments:** `scale` of all components; that of the plan if left out.
    **Raises:** `SimulationError`.
    """
    jacobian, result = _evaluate(plan, experiment)
    if result != RESULTS.successful:
        raise SimulationError(RESULTS[result])
    jacobian = np.asarray(jacobian)
    table = plan.component_table().with_values(plan.values(experiment))
    scale = plan.scale() if scale is None else scale
    spectrum, verdict = judge(table, table.values, jacobian, 1.0, float(plan.resolution))
    indices = table.fitted_indices
    fitted, J = table.subset(indices), jacobian[:, indices]
    regular = spectrum.rank == len(indices)
    sizes = np.linalg.svd(np.linalg.qr(J * scale[indices], mode="r"), compute_uv=False)
    return Excitation(
        labels=fitted.labels,
        units=fitted.units,
        values=fitted.values,
        scale=scale[indices],
        information=J.T @ J,
        covariance=spectrum.covariance(),
        correlations=spectrum.correlations(),
        d_score=float(2 * np.sum(np.log(sizes))) if regular else -np.inf,
        a_score=float(np.sum(sizes**-2.0)) if regular else np.inf,
        e_score=float(sizes[-1] ** 2) if regular else 0.0,
        condition=float(sizes[0] / sizes[-1]) if regular else np.inf,
        identifiability=verdict,
        num_readings=plan.num_readings,
        notes=tuple(describe_priors(plan.parameters)),
    )


@persistent_jit
def _evaluate(plan: RunPlan, experiment: Experiment) -> tuple[Float[Array, "N K"], RESULTS]:
    return plan.jacobian(experiment)
