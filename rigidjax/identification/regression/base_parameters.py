"""Base parameters: a minimal set of combinations that determine a linear model."""

import dataclasses
from collections.abc import Sequence

import numpy as np

# Coefficients between unit columns below this value are round-off.
_ROUND_OFF = 1e-9
# Columns shorter than this fraction of the longest are round-off.
_IDLE = 1e-13


@dataclasses.dataclass(frozen=True, repr=False)
class BaseParameters:
    r"""Combinations of parameters that the columns of a matrix determine, $Y\pi = Y_b\,K\pi$.

    **Attributes:**

    - `labels`: of all p parameters.
    - `chosen`: indices of basis columns, one per base parameter.
    - `combinations`, $K$, (r, p), with the minimal number of rows: the base parameters are $K\pi$,
      with coefficient one for the chosen column.
    - `idle`: parameters without effect.
    - `singular_values`: of the matrix with columns of unit length, without idle ones.
    """

    labels: tuple[str, ...]
    chosen: tuple[int, ...]
    combinations: np.ndarray
    idle: tuple[str, ...]
    singular_values: np.ndarray

    @property
    def rank(self) -> int:
        """Number of base parameters."""
        return len(self.chosen)

    @property
    def condition(self) -> float:
        """Condition number of the base columns of unit length, an upper bound of that of all."""
        return float(self.singular_values[0] / self.singular_values[self.rank - 1])

    @property
    def expressions(self) -> tuple[str, ...]:
        """Each base parameter as text, such as `"upper.Izz + 0.25 fore.m"`."""
        rows = zip(self.combinations, self.chosen, strict=True)
        return tuple(_expression_text(row, self.labels, k) for row, k in rows)

    def __repr__(self) -> str:
        lines = [f"{self.rank} base parameters of {len(self.labels)} parameters:"]
        lines += [f"  {text}" for text in self.expressions]
        if self.idle:
            lines.append(f"without effect: {', '.join(self.idle)}")
        return "\n".join(lines)


def base_parameters(
    matrix: np.ndarray, labels: Sequence[str], tolerance: float = 1e-8
) -> BaseParameters:
    """Return the base parameters of a matrix, from a rank-revealing QR decomposition.

    Columns are processed in order, and a column that depends on earlier ones is regrouped into
    them. Parameters of bodies near the ground thus absorb those of bodies further out.

    **Arguments:** `matrix` (N, p), such as a regressor of all samples; `labels` (p,); `tolerance`:
    relative length of the independent part of a column below which it counts as dependent.
    **Errors:** `ValueError` for labels that do not fit, values that are not finite, a zero matrix.
    **Source:** Gautier, J. Robotic Systems 8 (1991) 485, Sections 3 and 4.
    """
    matrix = np.asarray(matrix, float)
    if matrix.ndim != 2 or matrix.shape[1] != len(labels):
        raise ValueError(
            f"`base_parameters(matrix, labels)` takes a label for each column; got shape "
            f"{matrix.shape} and {len(labels)} labels."
        )
    if not np.isfinite(matrix).all():
        raise ValueError("`base_parameters(matrix=...)` must be finite numbers.")
    # Columns are scaled first, because their units differ by many orders of magnitude.
    size = np.linalg.norm(matrix, axis=0)
    if not size.any():
        raise ValueError("`base_parameters(matrix=...)` is zero: no parameter acts on anything.")
    # The ratio of columns depends on units: micrometres make masses 1e12 times smaller than
    # moments.
    acts = size > _IDLE * size.max()
    # The triangular factor has columns of the same lengths and angles.
    unit = np.asarray(np.linalg.qr(matrix[:, acts] / size[acts], mode="r"))
    independent = _independent_columns(unit, tolerance)
    dependent_in_active = np.setdiff1d(np.arange(unit.shape[1]), independent)
    active = np.flatnonzero(acts)
    chosen, dependent = active[independent], active[dependent_in_active]
    weights = np.linalg.lstsq(unit[:, independent], unit[:, dependent_in_active], rcond=None)[0]
    weights = np.where(np.abs(weights) > _ROUND_OFF, weights, 0.0)
    combinations = np.zeros((len(chosen), matrix.shape[1]))
    combinations[np.arange(len(chosen)), chosen] = 1.0
    combinations[:, dependent] = weights * size[dependent] / size[chosen][:, None]
    return BaseParameters(
        labels=tuple(labels),
        chosen=tuple(int(k) for k in chosen),
        combinations=combinations,
        idle=tuple(label for label, a in zip(labels, acts, strict=True) if not a),
        singular_values=np.linalg.svd(unit, compute_uv=False),
    )


def solve_least_squares(matrix: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the least-squares solution of a matrix of full rank, and $(A^TA)^{-1}$.

    It uses QR with columns of unit length; normal equations would lose half of the digits.
    """
    size = np.linalg.norm(matrix, axis=0)
    Q, R = np.linalg.qr(matrix / size)
    inverse = np.linalg.inv(R) / size[:, None]
    return np.linalg.solve(R, Q.T @ right) / size, inverse @ inverse.T


def _independent_columns(unit: np.ndarray, tolerance: float) -> np.ndarray:
    """Return columns that do not depend on earlier ones, by Gram-Schmidt applied twice."""
    basis = np.zeros((unit.shape[0], 0))
    independent = []
    for k, column in enumerate(unit.T):
        remainder = column - basis @ (basis.T @ column)
        remainder = remainder - basis @ (basis.T @ remainder)
        length = np.linalg.norm(remainder)
        if length > tolerance:
            independent.append(k)
            basis = np.column_stack([basis, remainder / length])
    return np.array(independent, int)


def _expression_text(row: np.ndarray, labels: tuple[str, ...], chosen: int) -> str:
    parts = [labels[chosen]]
    for k in np.flatnonzero(row).tolist():
        if k == chosen:
            continue
        size = abs(row[k])
        factor = "" if abs(size - 1) < 1e-9 else f"{size:.4g} "
        parts.append(f"{'-' if row[k] < 0 else '+'} {factor}{labels[k]}")
    return " ".join(parts)
