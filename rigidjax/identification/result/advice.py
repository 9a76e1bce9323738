"""Sentences of a report: principal axes of fitted inertias, and the next experiment."""

import itertools
from typing import TYPE_CHECKING

import numpy as np

from ...io.document import estimate_text, std_text
from ..transforms import InertiaTensor

if TYPE_CHECKING:
    from .result import Fit


def principal_axes_texts(fit: "Fit") -> list[str]:
    r"""Return a sentence for each fitted inertia tensor: its principal moments and axes.

    Standard deviations are those of the linearisation, $d\lambda_i = v_i^T\,dI\,v_i$.
    """
    texts, table = [], fit.optimum.table
    chosen = table.fitted_indices
    for group in dict.fromkeys(table.groups[chosen].tolist()):
        if not isinstance(fit.optimum.problem.parameter_of(group).transform, InertiaTensor):
            continue
        rows = np.flatnonzero(table.groups[chosen] == group)
        a, b, c, d, e, f = fit.values[rows]
        moments, axes = np.linalg.eigh([[a, f, e], [f, b, d], [e, d, c]])
        x, y, z = axes
        slopes = np.stack([x * x, y * y, z * z, 2 * y * z, 2 * x * z, 2 * x * y])
        std = np.sqrt(np.diag(slopes.T @ fit.covariance[np.ix_(rows, rows)] @ slopes))
        parts = "; ".join(
            f"{estimate_text(m, s)} +- {std_text(s)} about ({v[0]:.3f}, {v[1]:.3f}, {v[2]:.3f})"
            for m, s, v in zip(moments.tolist(), std.tolist(), axes.T.tolist(), strict=True)
        )
        name = fit.labels[rows[0]].removesuffix(".I11")
        texts.append(f"Principal moments of {name}, {fit.units[rows[0]]}: {parts}.")
    return texts


def next_experiment(fit: "Fit") -> str:
    """Return what would make the least known estimate better, from the linearised fit.

    It is the one with the largest standard deviation relative to its parameter. Compared are a
    second run of this kind, half of the noise of one sensor, and a measured value of
    one other parameter. The text is empty for estimates that the data do not determine.
    """
    std, table = np.array(list(fit.std.values())), fit.optimum.table
    chosen, runs = table.fitted_indices, fit.optimum.runs
    starts = table.values.copy()
    starts[chosen] = fit.starts
    sizes = table.magnitudes(starts)[chosen]
    if not np.all(np.isfinite(std)) or not np.any(sizes > 0):
        return ""
    evaluation = fit.optimum.evaluate()
    parts_of_size = np.divide(std, sizes, out=np.zeros_like(std), where=sizes > 0)
    weakest = int(np.argmax(parts_of_size))
    J = evaluation.component_jacobian()[:, chosen].reshape(len(runs.names), -1, len(chosen))
    ends = np.cumsum([0, *(w[0].size for w in runs.weights)])
    parts = [np.einsum("bni,bnj->ij", *[J[:, a:b]] * 2) for a, b in itertools.pairwise(ends)]
    scale = 1 / np.sqrt(np.diag(sum(parts)))
    prior = np.asarray(evaluation.prior.component_jacobian())[:, chosen]
    parts = [scale[:, None] * part * scale for part in (*parts, fit.noise**2 * prior.T @ prior)]
    total = sum(parts)

    def deviation(information: np.ndarray, kept: np.ndarray) -> float:
        inverse = np.linalg.pinv(information[np.ix_(kept, kept)], hermitian=True)
        return float(np.sqrt(np.diag(inverse)[kept == weakest][0]))

    every = np.arange(len(chosen))
    now = deviation(total, every)
    choices = {"a second run like these": deviation(total + sum(parts[:-1]), every)}
    for sensor, part in zip(runs.sensors, parts, strict=False):
        choices[f"half of the noise of the {sensor.name}"] = deviation(total + 3 * part, every)
    groups = table.groups[chosen]
    for k in every[groups != groups[weakest]]:
        choices[f"a known value of {fit.labels[k]}"] = deviation(total, np.delete(every, k))
    best = sorted(choices, key=lambda name: choices[name])[:3]
    listed = ", ".join(f"by {100 * (1 - choices[name] / now):.0f} % with {name}" for name in best)
    return (
        f"Least known is {fit.labels[weakest]}, to {100 * parts_of_size[weakest]:.2g} %. Its standard deviation would be "
        f"smaller {listed}."
    )
