"""Linear regression of inertial parameters from known motion and measured torques."""

import dataclasses
import os
from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, ArrayLike, Float

from ...bodies import MassProperties
from ...checks import find_duplicates, float_array
from ...forces.base import body_index
from ...formulations import AbstractFormulation
from ...io.document import estimate_text, std_text, write_report_file
from ...mechanics import System, rate_labels
from ...mechanics.kinematics.forward import check_placeable, tree_poses
from ..statistics.covariance import Spectrum
from ..statistics.estimate_covariance import (
    CovarianceMethod,
    EstimateCovariance,
    check_covariance,
    model_covariance,
    sandwich_covariance,
)
from ..statistics.stability import Rows, compare_halves
from ..statistics.verdict import (
    Finding,
    Verdict,
    dependence_finding,
    difference_finding,
    make_verdict,
    negative_finding,
    rejected_channels,
)
from ..statistics.whiteness import Whiteness, assess_whiteness
from .base_parameters import BaseParameters, base_parameters, solve_least_squares
from .regressor import check_tree, inverse_dynamics, parameter_labels, split_gravity

# Torque terms of joints by name, as functions of rates and accelerations.
TERMS = {
    "rotor": lambda rate, acceleration: acceleration,
    "viscous": lambda rate, acceleration: rate,
    "coulomb": lambda rate, acceleration: np.sign(rate),
    "offset": lambda rate, acceleration: np.ones_like(rate),
}


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class JointData:
    r"""Linear model of measured torques, $\tau = Y\pi$, sample by sample.

    **Attributes:** `system`, a tree; `labels`, (p,), of the parameters: ten per body, then those of
    the joints, then those of `extra`; `joints`, (f,), names of the coordinates; `matrix`, $Y$, (T,
    f, p); `torques`, (T, f), N m or N, plus the torques of known forces (springs). **Source:** see
    `regressor`.
    """

    system: System
    labels: tuple[str, ...]
    joints: tuple[str, ...]
    matrix: np.ndarray
    torques: np.ndarray

    def __repr__(self) -> str:
        count, f, p = self.matrix.shape
        return f"JointData({count} samples of {f} torques, {p} parameters)"

    @property
    def positive(self) -> np.ndarray:
        """Which parameters must be positive: rotor inertias and frictions, (p,)."""
        ends = (".rotor", ".viscous", ".coulomb")
        return np.array([label.endswith(ends) for label in self.labels])

    def torques_of(self, parameters: np.ndarray) -> np.ndarray:
        """Return the torques (T, f) for these parameters (p,), including those of known forces."""
        return self.matrix @ parameters

    def rms(self, parameters: np.ndarray) -> np.ndarray:
        """Return the root mean square of the residual torque of each joint, (f,), N m or N."""
        return np.sqrt(np.mean((self.torques_of(parameters) - self.torques) ** 2, axis=0))


def joint_data(
    model: System | AbstractFormulation,
    coordinates: ArrayLike,
    rates: ArrayLike,
    accelerations: ArrayLike,
    torques: ArrayLike,
    *,
    terms: Sequence[str] = (),
    coupled: Mapping[str, Mapping[str, float]] | None = None,
    loads: Mapping[str, MassProperties] | None = None,
    extra: Mapping[str, ArrayLike] | None = None,
) -> JointData:
    """Return measured motion and torques of a tree as a linear model of its parameters.

    Forces of the model other than gravity are known: their effect is subtracted.

    **Arguments:**

    - `model`: a tree on the ground, or a formulation of one, placed by its joint coordinates (see
      `joint_states`).
    - `coordinates`, `rates`, `accelerations`: (T, f), m and rad, one column for each of
      `rate_labels`, smoothed without delay.
    - `torques`: of the actuators, on the child of each joint, (T, f), N m or N.
    - `terms`: further terms of each joint: `"rotor"` (a reflected inertia, times the acceleration),
      `"viscous"` (times the rate), `"coulomb"` (times the sign of the rate: omit samples at rest),
      `"offset"`.
    - `coupled`: motors that move several joints, by name, each with its rate as a combination of
      those of joints: `{"motor 6": {"joint 5": 1.0, "joint 6": 1.0}}`. Each gets the terms that are
      asked for but offsets, which act on the joints by the transposed combination.
    - `loads`: known mass properties that bodies carry in these samples and that are not part of
      them, such as a payload, in the frame of the body. Data with different loads are joined by
      `stack_joint_data`.
    - `extra`: further parameters by label, with their columns (T, f), such as coupled friction.

    **Errors:** `ValueError` for shapes, values that are not finite, unknown terms, duplicate
    labels, and models that `regressor` or `joint_states` reject.
    """
    system = check_tree(model)
    check_placeable(system)
    joints = rate_labels(system)
    arguments = {
        "coordinates": coordinates,
        "rates": rates,
        "accelerations": accelerations,
        "torques": torques,
    }
    q, v, a, tau = (_check_samples(name, value, joints) for name, value in arguments.items())
    if len({len(q), len(v), len(a), len(tau)}) > 1:
        raise ValueError(
            "`joint_data(...)` needs as many samples of each; got "
            f"{ {name: len(np.asarray(value)) for name, value in arguments.items()} }."
        )
    prepared, gravity = split_gravity(system)
    inertial, applied = (
        np.asarray(x) for x in _inverse_dynamics_of_samples(prepared, gravity, q, v, a)
    )
    columns, labels = [inertial], list(parameter_labels(system))
    for term in terms:
        if term not in TERMS:
            raise ValueError(
                f"`joint_data(terms=...)` takes of {list(TERMS)}; got {term!r}. Give other "
                "columns as `extra`."
            )
        # Each column acts on its joint alone.
        columns.append(TERMS[term](v, a)[:, :, None] * np.eye(len(joints)))
        labels += [f"{joint}.{term}" for joint in joints]
    for name, combination in (coupled or {}).items():
        row = _coupling_row(name, combination, joints)
        for term in terms:
            if term != "offset":
                columns.append((TERMS[term](v @ row, a @ row)[:, None] * row)[:, :, None])
                labels.append(f"{name}.{term}")
    for label, column in (extra or {}).items():
        columns.append(_check_samples(f"extra[{label!r}]", column, joints, len(q))[:, :, None])
        labels.append(label)
    if twice := find_duplicates(labels):
        raise ValueError(f"Every parameter needs a label of its own; got {twice} twice.")
    for name, load in (loads or {}).items():
        begin = 10 * body_index(system.bodies, name)
        applied = applied - inertial[:, :, begin : begin + 10] @ np.asarray(load.parameters())
    return JointData(
        system=system,
        labels=tuple(labels),
        joints=joints,
        matrix=np.concatenate(columns, axis=2),
        torques=tau + applied,
    )


def stack_joint_data(parts: Sequence[JointData]) -> JointData:
    """Return recordings of one tree as one, such as those with different loads.

    **Arguments:** `parts`, with the same parameters.
    **Errors:** `ValueError` for none, and for different parameters.
    """
    if not parts or any(part.labels != parts[0].labels for part in parts):
        raise ValueError(
            "`stack_joint_data` takes at least one `JointData`, all with the same parameters; got "
            f"{len(parts)} with {sorted({len(part.labels) for part in parts})} parameters."
        )
    return dataclasses.replace(
        parts[0],
        matrix=np.concatenate([part.matrix for part in parts]),
        torques=np.concatenate([part.torques for part in parts]),
    )


def _coupling_row(name: str, combination: Mapping[str, float], joints: Sequence[str]) -> np.ndarray:
    """Return the coefficients of the rates in the rate of a coupled motor, (f,)."""
    unknown = [joint for joint in combination if joint not in joints]
    if unknown or not combination:
        raise ValueError(
            f"`joint_data(coupled=...)`: {name!r} combines rates of {list(joints)}; got "
            f"{list(combination)}."
        )
    row = np.array([float(combination.get(joint, 0.0)) for joint in joints])
    if not np.isfinite(row).all():
        raise ValueError(f"`joint_data(coupled=...)`: the factors of {name!r} must be finite.")
    return row


@jax.jit
def _inverse_dynamics_of_samples(
    prepared: Any, gravity: Float[Array, "3"], q: np.ndarray, v: np.ndarray, a: np.ndarray
) -> tuple[Float[Array, "T f p"], Float[Array, "T f"]]:
    def evaluate_sample(q, v, a):
        none = jnp.zeros((0, 3, 3), q.dtype)
        poses = tree_poses(prepared, jnp.zeros((), q.dtype), q, none)
        return inverse_dynamics(prepared, gravity, poses, v, a)

    return jax.vmap(evaluate_sample)(jnp.asarray(q), jnp.asarray(v), jnp.asarray(a))


def _check_samples(
    name: str, value: Any, joints: Sequence[str], length: int | None = None
) -> np.ndarray:
    array = np.asarray(float_array(value, f"joint_data({name}=...)"))
    if array.ndim != 2 or array.shape[1] != len(joints) or length not in (None, len(array)):
        samples = "T" if length is None else length
        raise ValueError(
            f"`joint_data({name}=...)` must have shape ({samples}, {len(joints)}), one column for "
            f"each of {list(joints)}; got {array.shape}."
        )
    bad = np.flatnonzero(~np.isfinite(array).all(axis=1))
    if bad.size:
        raise ValueError(
            f"`joint_data({name}=...)` is not finite at sample {bad[0]}. Leave such samples out."
        )
    return array


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class Regression:
    """Weighted linear least squares of the base parameters.

    **Attributes:** `data`, the equations; `base`, the determined combinations; `values`, of the
    base parameters, (r,), SI units; `covariances`, by method, see `regress`; `method`, the one that
    intervals use; `noise`, standard deviation of each joint's torque, (f,), N m or N, given or
    estimated; `noise_is_known`, whether it was given; `parameters`, (p,), the solution with zero
    for all regrouped parameters, which predicts torques but is in general not physical: see
    `consistent_regression`; `whiteness`, tests of the residuals of each joint; `findings`, against
    the intervals, see `verdict`.
    """

    data: JointData
    base: BaseParameters
    values: np.ndarray
    covariances: dict[str, EstimateCovariance]
    method: str
    noise: np.ndarray
    noise_is_known: bool
    parameters: np.ndarray
    whiteness: dict[str, Whiteness | None]
    findings: tuple[Finding, ...]

    @property
    def covariance(self) -> np.ndarray:
        """Covariance of the base parameters, (r, r)."""
        return self.covariances[self.method].matrix

    @property
    def std(self) -> np.ndarray:
        """Standard deviations of the base parameters, (r,)."""
        return self.covariances[self.method].std

    @property
    def rms(self) -> np.ndarray:
        """Root mean square of the residual torque of each joint, (f,), N m or N."""
        return self.data.rms(self.parameters)

    @property
    def verdict(self) -> Verdict:
        """Whether the intervals may be used, and why; the first line of `report`."""
        supports = ["residuals are white", "both halves of the data agree"]
        return make_verdict(self.findings, supports)

    @property
    def warnings(self) -> tuple[str, ...]:
        """Reasons not to trust estimates or standard deviations."""
        return tuple(finding.text for finding in self.findings)

    def confidence_intervals(self, level: float = 0.95) -> np.ndarray:
        """Return confidence intervals of the base parameters, (r, 2), by Student's distribution.

        **Arguments:** `level`, the coverage probability, in (0, 1).
        """
        covariance = self.covariances[self.method]
        half = covariance.quantile(level) * covariance.std
        return np.stack([self.values - half, self.values + half], axis=1)

    def report(self, path: str | os.PathLike[str] | None = None, force: bool = False) -> str:
        """Return the regression as Markdown; write it to `path` if given.

        **Arguments:** `path`, ending in `.md` or `.txt`, or in `.json` or `.csv` for its values;
        `force`, whether to replace an existing file.
        **Errors:** `ValueError` for another ending; `FileExistsError` without `force`; `OSError`
        for a path that cannot be written.
        """
        from .report import as_document, as_record, numbers_table

        return write_report_file(
            path,
            force,
            lambda: as_document(self),
            lambda: as_record(self),
            lambda: numbers_table(self),
        )

    @property
    def estimate_lines(self) -> list[str]:
        """A line for each base parameter, with its standard deviation."""
        rows = zip(self.base.expressions, self.values, self.std, strict=True)
        return [
            f"{estimate_text(value, std):>12} +- {std_text(std):>8}   {label}"
            for label, value, std in rows
        ]

    def __repr__(self) -> str:
        count = f"{self.base.rank} base parameters of {len(self.data.labels)}"
        return "\n".join([str(self.verdict), count, *self.estimate_lines])


def regress(
    data: JointData,
    *,
    noise: ArrayLike | None = None,
    tolerance: float = 1e-8,
    covariance: CovarianceMethod | None = None,
    base: BaseParameters | None = None,
) -> Regression:
    """Estimate the base parameters by least squares, each joint weighted by its noise.

    Without `noise`, the residuals of a first solution with equal weights give the noise of each
    joint, and a second solution uses it.

    **Arguments:**

    - `data`, from `joint_data`, samples in the order of time.
    - `noise`, standard deviation of each joint's torque (f,), N m or N.
    - `tolerance`, see `base_parameters`.
    - `covariance`, of the estimates: `"model"` for independent residuals of all joints; `"hac"` or
      `"sandwich"` for residuals that depend on earlier ones and on those of other joints, as in
      filtered data, see `hac_covariance`; `None` takes the latter where tests reject that the
      residuals of some joint are white.
    - `base`: the parameters to estimate, by default all base parameters of the data.

    **Errors:** `ValueError` for noise that is not positive, fewer samples than parameters, and an
    unknown covariance.
    **Source:** Gautier, Khalil, Int. J. Robotics Res. 11 (1992) 362; weights: Gautier, Proc.
    IEEE/ASME Int. Conf. Adv. Intelligent Mechatronics (1997) 37.
    """
    check_covariance("regress", covariance)
    if covariance == "cluster":
        raise ValueError(
            '`regress(covariance="cluster")` needs several runs, and the data are one. Use "hac".'
        )
    count, f, _ = data.matrix.shape
    if noise is None:
        sigma = np.ones(f)
    else:
        sigma = np.asarray(float_array(noise, "regress(noise=...)", (f,)))
        if not np.all(np.isfinite(sigma) & (sigma > 0)):
            raise ValueError("`regress(noise=...)` must be positive and finite, N m or N.")
    rows = data.matrix.reshape(count * f, -1)
    base = base_parameters(rows, data.labels, tolerance) if base is None else base
    freedom = count * f - base.rank
    if freedom <= 0:
        raise ValueError(
            f"There are {count * f} torques for {base.rank} base parameters. Measure more."
        )
    values = _solve_weighted(data, base, sigma)
    if noise is None:
        residuals = data.matrix[:, :, base.chosen] @ values - data.torques
        sigma = np.sqrt(np.sum(residuals**2, axis=0) * f / freedom)
        if not np.all(sigma > 0):
            sigma = np.maximum(sigma, np.finfo(float).eps * max(1.0, np.abs(data.torques).max()))
    values = _solve_weighted(data, base, sigma)
    parameters = np.zeros(len(data.labels))
    parameters[list(base.chosen)] = values
    residuals = data.torques_of(parameters) - data.torques
    whiteness = {joint: assess_whiteness([residuals[:, k]]) for k, joint in enumerate(data.joints)}
    columns = data.matrix[:, :, base.chosen] / sigma[:, None]
    spectrum = Spectrum(columns.reshape(count * f, -1), 0.0, np.zeros(base.rank), 1.0)
    run = Rows(columns, residuals / sigma, np.arange(base.rank))
    covariances = {
        "model": model_covariance(spectrum, np.inf if noise is not None else freedom),
        "hac": sandwich_covariance(
            "hac", spectrum, [run.scores(spectrum.basis)], float(np.sum(run.residuals**2))
        ),
    }
    rejected = rejected_channels(whiteness)
    method = "model" if covariance == "model" or not (covariance or rejected) else "hac"
    used = covariances[method]
    halves = compare_halves([run], spectrum, used)
    findings = [
        dependence_finding(rejected, base.expressions, used, covariances),
        difference_finding({"halves of the data": halves}, base.expressions),
        negative_finding(
            [
                (data.labels[k], value, std)
                for k, row, value, std in zip(
                    base.chosen, base.combinations, values, used.std, strict=True
                )
                if data.positive[k] and np.count_nonzero(row) == 1
            ]
        ),
    ]
    return Regression(
        data=data,
        base=base,
        values=values,
        covariances=covariances,
        method=method,
        noise=sigma,
        noise_is_known=noise is not None,
        parameters=parameters,
        whiteness=whiteness,
        findings=tuple(finding for finding in findings if finding is not None),
    )


def _solve_weighted(data: JointData, base: BaseParameters, sigma: np.ndarray) -> np.ndarray:
    """Return the weighted solution."""
    W = (data.matrix[:, :, base.chosen] / sigma[:, None]).reshape(-1, base.rank)
    return solve_least_squares(W, (data.torques / sigma).ravel())[0]
