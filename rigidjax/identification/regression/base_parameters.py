"""Base parameters: the fewest combinations of parameters on which a linear model depends."""

import dataclasses
from collections.abc import Sequence

import numpy as np

# Coefficients below this, between columns of unit length, are round-off.
_ROUND_OFF = 1e-9
# Columns below this part of the longest are round-off themselves.
_IDLE = 1e-13


@dataclasses.dataclass(frozen=True, repr=False)
class BaseParameters:
    r"""What the columns of a matrix determine: $Y\pi = Y_b\,K\pi$ with the fewest rows of $K$.

    **Attributes:**

    - `labels`: of all p parameters.
    - `chosen`: those whose columns are a basis, one for each base parameter.
    - `combinations`, $K$, (r, p): the base parameters are $K\pi$, one in each chosen column.
    - `idle`: parameters that act on nothing.
    - `singular_values`: of the matrix with columns of unit length, idle ones left out.
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
        """Of the base parameters' columns, each of unit length (upper bound: of all columns)."""
        return float(self.singular_values[0] / self.singular_values[self.rank - 1])

    @property
    def expressions(self) -> tuple[str, ...]:
        """Each base parameter in words, such as `"upper.Izz + 0.25 fore.m"`."""
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
    """Base parameters of a matrix, from a rank-revealing QR decomposition.

    Columns are taken in their order; one that is a combination of earlier ones is regrouped into
    them. So the parameters of bodies near the ground take up those of the bodies further out.

    **Arguments:** `matrix` (N, p), such as a regressor of all samples; `labels` (p,); `tolerance`:
    the part of a column, relative to its length, that is independent of the earlier ones, below
    which the column counts as dependent.
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
    # Scaled before the decomposition: units differ by many orders of magnitude.
    size = np.linalg.norm(matrix, axis=0)
    if not size.any():
        raise ValueError("`base_parameters(matrix=...)` is zero: no parameter acts on anything.")
    # Units set the ratio of columns, not `tolerance`: masses of micrometres are 1e-12 of moments.
    acts = size > _IDLE * size.max()
    # Columns of the same lengths and angles.
    unit = np.asarray(np.linalg.qr(matrix[:, acts] / size[acts], mode="r"))
    independent = _independent_columns(unit, tolerance)
    rest = np.setdiff1d(np.arange(unit.shape[1]), independent)
    active = np.flatnonzero(acts)
    chosen, dependent = active[independent], active[rest]
    weights = np.linalg.lstsq(unit[:, independent], unit[:, rest], rcond=None)[0]
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
    """Least squares of a matrix of full rank by QR with columns of unit length; and $(A^TA)^{-1}$.

    Normal equations would lose half of the digits.
    """
    size = np.linalg.norm(matrix, axis=0)
    Q, R = np.linalg.qr(matrix / size)
    inverse = np.linalg.inv(R) / size[:, None]
    return np.linalg.solve(R, Q.T @ right) / size, inverse @ inverse.T


def _independent_columns(unit: np.ndarray, tolerance: float) -> np.ndarray:
    """Columns that are not combinations of earlier ones, by Gram-Schmidt done twice."""
    basis = np.zeros((unit.shape[0], 0))
    found = []
    for k, column in enumerate(unit.T):
        left = column - basis @ (basis.T @ column)
        left = left - basis @ (basis.T @ left)
        length = np.linalg.norm(left)
        if length > tolerance:
            found.append(k)
            basis = np.column_stack([basis, left / length])
    return np.array(found, int)


def _expression_text(row, labels, chosen):
    parts = [labels[chosen]]
    for k in np.flatnonzero(row):
        if k == chosen:
            continue
        size = abs(row[k])
        factor = "" if abs(size - 1) < 1e-9 else f"{size:.4g} "
        parts.append(f"{'-' if row[k] < 0 else '+'} {factor}{labels[k]}")
    return " ".join(parts)
