"""Physically consistent regression of inertial parameters."""

import dataclasses
from collections.abc import Mapping

import numpy as np

from ...bodies import MassProperties
from ...forces.base import body_index
from ...io.document import estimate_text, std_text
from ...mechanics import System
from .base_parameters import base_parameters, solve_least_squares
from .regression import JointData, Regression
from .regressor import with_inertial_parameters

# Factor between the weights of successive stages; each stage starts at the last solution.
_FACTOR = 3.0
_MAX_STEPS = 100
# Largest fraction of the distance to the boundary for a step; closer to it, Newton's method needs
# many steps to return.
_TO_BOUNDARY = 0.8
# Newton decrement, in units of the weight, at which the iteration has converged.
_DECREMENT = 1e-12
# Smallest eigenvalue of a prior's pseudo-inertia, scaled to unit diagonal, that counts as positive.
_FLAT = 1e-12


class ConsistencyError(RuntimeError):
    """Failure to find a physically consistent solution."""


@dataclasses.dataclass(frozen=True, kw_only=True, repr=False)
class ConsistentRegression:
    """Inertial parameters with a positive definite pseudo-inertia of every body.

    **Attributes:** `data`, that of the regression; `parameters`, (p,), in the order of
    `data.labels`; `covariance`, (p, p), from the second derivatives of the minimised function (data
    and prior) and from the dependence of residuals that the regression allows for; `divergence`,
    from the prior, of all bodies and positive terms; `num_steps`, of Newton's method.
    """

    data: JointData
    parameters: np.ndarray
    covariance: np.ndarray
    divergence: float
    num_steps: int

    def __repr__(self) -> str:
        std = np.sqrt(np.diag(self.covariance))
        lines = [
            f"{label} = {estimate_text(value, deviation)} +- {std_text(deviation)}"
            for label, value, deviation in zip(
                self.data.labels, self.parameters.tolist(), std.tolist(), strict=True
            )
        ]
        return "\n".join([f"{len(lines)} inertial parameters, consistent:", *lines])

    @property
    def rms(self) -> np.ndarray:
        """Root mean square of the residual torque of each joint, (f,), N m or N."""
        return self.data.rms(self.parameters)

    @property
    def system(self) -> System:
        """The system with the estimated bodies, without joint terms (friction, rotors)."""
        count = 10 * self.data.system.num_bodies
        return with_inertial_parameters(self.data.system, self.parameters[:count])

    @property
    def bodies(self) -> dict[str, MassProperties]:
        """Mass properties of every body by name, in the axes of its original frame."""
        names = [body.name for body in self.data.system.bodies]
        parts = self.parameters[: 10 * len(names)].reshape(-1, 10)
        return {
            name: MassProperties.from_parameters(p) for name, p in zip(names, parts, strict=True)
        }

    @property
    def terms(self) -> dict[str, float]:
        """Values of the other parameters by label."""
        skip = 10 * self.data.system.num_bodies
        values = self.parameters[skip:].tolist()
        return dict(zip(self.data.labels[skip:], values, strict=True))


def consistent_regression(
    regression: Regression,
    *,
    prior: Mapping[str, MassProperties] | None = None,
    weight: float = 1.0,
) -> ConsistentRegression:
    r"""Return the physically consistent parameters closest to the torques and to a prior.

    Minimises, over all positive definite pseudo-inertias $P_i$,

    $$\tfrac12 \sum |Y\pi - \tau|^2/\sigma^2 + w \sum_i d(P_i, P^0_i), \quad d(P, P^0) =
    \log\frac{\det P^0}{\det P} + \mathrm{tr}(P^{0\,-1} P) - 4,$$

    where the Bregman divergence of $-\log\det$ does not depend on the axes or units in which bodies
    are described. Rotor inertias and frictions stay positive by the analogous term for a scalar;
    their prior is the magnitude of the linear solution. The problem is convex in $\pi$ and has one
    minimum, to which Newton's method converges from any physical start. For $w \to 0$ it becomes
    the linear-matrix-inequality problem. Log-Cholesky parameters have the same minimum, but the
    problem is then not convex.

    **Arguments:** `regression`, with the noise that weighs the torques; `prior`, mass properties by
    the name of the body, in the frame of that body (from a drawing: the centre of mass need not be
    at its origin), by default those of the model; `weight`, $w$: one counts a prior as much as one
    measured torque.
    **Errors:** `ValueError` for a weight that is not positive, an unknown body, a prior without
    positive definite pseudo-inertia (a point, a thin rod), undetermined parameters without prior;
    `ConsistencyError`.
    **Source:** Lee, Wensing, Park, IEEE Trans. Robot. 36 (2020) 78, eq. (21), (28); Wensing, Kim,
    Slotine, IEEE Robot. Autom. Lett. 3 (2018) 60, eq. (12).
    """
    if not weight > 0:
        raise ValueError(
            f"`consistent_regression(weight=...)` must be positive; got {weight}. A small one, "
            "such as 1e-6, only affects parameters that the data do not determine."
        )
    data = regression.data
    start = _prior_parameters(regression, {} if prior is None else prior)
    barrier = _Barrier(start, data.positive, [body.name for body in data.system.bodies])
    W = (data.matrix / regression.noise[:, None]).reshape(-1, len(start))
    # Compressed to p rows; the last row only adds a constant to the cost.
    stacked = np.column_stack([W, (data.torques / regression.noise).ravel()])
    factor = np.asarray(np.linalg.qr(stacked, mode="r"))
    A, b = factor[: len(start), :-1], factor[: len(start), -1]
    free = ~data.positive & (np.arange(len(start)) >= 10 * data.system.num_bodies)
    _check_free(A, free, data.labels)
    pi, steps = start, 0
    rates = weight * _FACTOR ** np.arange(
        np.ceil(np.log(max(len(W) / weight, 1.0)) / np.log(_FACTOR)), -1, -1
    )
    for rate in rates:
        pi, used = _newton(A, b, barrier, float(rate), pi)
        steps += used
    return ConsistentRegression(
        data=data,
        parameters=pi,
        covariance=_covariance(regression, A, *_newton_rows(A, b, barrier, weight, pi)),
        divergence=barrier.value(pi),
        num_steps=steps,
    )


def _covariance(
    regression: Regression, A: np.ndarray, stack: np.ndarray, right: np.ndarray
) -> np.ndarray:
    """Return $H^{-1} (S + P) H^{-1}$, with second derivatives $H$ of the data and the prior $P$.

    $S$ is the covariance of the gradient of the data term, from the covariance of the base
    parameters that the regression uses; for independent residuals $S + P = H$.
    """
    columns = regression.data.matrix[:, :, regression.base.chosen] / regression.noise[:, None]
    W = columns.reshape(-1, regression.base.rank)
    information = W.T @ W @ regression.base.combinations
    inverse = solve_least_squares(stack, right)[1]
    spread = information.T @ regression.covariance @ information
    return inverse @ (spread + stack.T @ stack - A.T @ A) @ inverse


def _prior_parameters(regression: Regression, prior: Mapping[str, MassProperties]) -> np.ndarray:
    data, bodies = regression.data, regression.data.system.bodies
    for name in prior:
        body_index(bodies, name)
    values = np.zeros(len(data.labels))
    for i, body in enumerate(bodies):
        of = prior.get(body.name, body.mass_properties)
        values[10 * i : 10 * i + 10] = of.parameters()
    return np.where(data.positive, _parameter_magnitudes(regression), values)


def _parameter_magnitudes(regression: Regression) -> np.ndarray:
    """Return magnitudes of all parameters from the linear solution; half a sum if regrouped."""
    base = regression.base
    sizes = np.abs(regression.parameters)
    for k in np.flatnonzero(sizes == 0.0):
        parts = np.abs(base.combinations[:, k])
        row = int(np.argmax(parts))
        sizes[k] = 0.5 * abs(regression.values[row]) / parts[row] if parts[row] > 0 else 1.0
    return np.where(sizes > 0, sizes, 1.0)


def _check_free(A: np.ndarray, free: np.ndarray, labels: tuple[str, ...]) -> None:
    """Raise `ValueError` unless the data determine all parameters without a prior."""
    if not free.any():
        return
    names = [label for label, f in zip(labels, free, strict=True) if f]
    columns = A[:, free]
    determined = base_parameters(columns, names).chosen if columns.any() else ()
    idle = [name for k, name in enumerate(names) if k not in determined]
    if idle:
        raise ValueError(
            f"The parameters {idle} have no prior, and the data do not tell them from the others. "
            "Leave them out."
        )


class _Barrier:
    """Divergence from the prior, of the matrices that must stay positive definite.

    They are the pseudo-inertias of the bodies, and matrices (1, 1) of the positive parameters.
    """

    def __init__(self, prior: np.ndarray, positive: np.ndarray, names: list[str]):
        # Indices of parameters, and the matrices of which they are the coefficients.
        self.blocks = [(np.arange(10 * i, 10 * i + 10), _PSEUDO) for i in range(len(names))]
        self.blocks += [(np.array([k]), np.ones((1, 1, 1))) for k in np.flatnonzero(positive)]
        matrices = self._matrices(prior)
        for name, matrix in zip(names, matrices, strict=False):
            size = np.sqrt(np.abs(np.diag(matrix)))
            normalised = matrix / np.outer(size, size) if size.all() else matrix
            if not size.all() or np.linalg.eigvalsh(normalised)[0] < _FLAT:
                raise ValueError(
                    f"The prior of {name!r} has no positive definite pseudo-inertia: it is a "
                    "point, a rod or a plate without thickness. Give it some extent."
                )
        self.inverses = [np.linalg.inv(matrix) for matrix in matrices]
        self.determinants = [np.linalg.slogdet(matrix)[1] for matrix in matrices]

    def _matrices(self, pi: np.ndarray) -> list[np.ndarray]:
        return [np.einsum("k,kij->ij", pi[k], basis) for k, basis in self.blocks]

    def value(self, pi: np.ndarray) -> float:
        """Return the divergence, infinite where a matrix is not positive definite."""
        total = 0.0
        for matrix, inverse, log_det in zip(
            self._matrices(pi), self.inverses, self.determinants, strict=True
        ):
            try:
                L = np.linalg.cholesky(matrix)
            except np.linalg.LinAlgError:
                return np.inf
            total += log_det - 2 * np.sum(np.log(np.diag(L))) + np.sum(inverse * matrix) - len(L)
        return float(total)

    def rows(self, pi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return $C$ and $c$ with the gradient $C^T c$ and the second derivatives $C^T C$."""
        matrices, vectors = [], []
        for (k, basis), block, inverse in zip(
            self.blocks, self._matrices(pi), self.inverses, strict=True
        ):
            L = np.linalg.cholesky(block)
            relative = np.linalg.solve(L, np.linalg.solve(L, basis).swapaxes(1, 2))
            matrix = np.zeros((L.size, len(pi)))
            matrix[:, k] = relative.reshape(len(k), -1).T
            matrices.append(matrix)
            vectors.append((L.T @ inverse @ L - np.eye(len(L))).ravel())
        return np.concatenate(matrices), np.concatenate(vectors)

    def distance(self, pi: np.ndarray, direction: np.ndarray) -> float:
        """Return the multiple of a direction at which the first matrix becomes singular."""
        sizes = [basis.shape[1] for _, basis in self.blocks]
        parts = np.split(self.rows(pi)[0] @ direction, np.cumsum(np.square(sizes))[:-1])
        least = min(
            np.linalg.eigvalsh(part.reshape(n, n))[0] for part, n in zip(parts, sizes, strict=True)
        )
        return -1 / least if least < 0 else np.inf


def _newton(
    A: np.ndarray, b: np.ndarray, barrier: _Barrier, weight: float, pi: np.ndarray
) -> tuple[np.ndarray, int]:
    """Return the minimum for one weight, by damped Newton steps, and their number.

    Optimistix's minimisers do not support a domain: a step that leaves it ends them.
    """

    def cost(pi):
        return 0.5 * np.sum((A @ pi - b) ** 2) + weight * barrier.value(pi)

    now = cost(pi)
    for step in range(_MAX_STEPS):
        stack, right = _newton_rows(A, b, barrier, weight, pi)
        direction = -solve_least_squares(stack, right)[0]
        decrement = float(np.sum((stack @ direction) ** 2))
        if decrement < max(_DECREMENT * weight, 64 * np.finfo(float).eps * now):
            return pi, step
        length = min(1.0, _TO_BOUNDARY * barrier.distance(pi, direction))
        while True:
            new = pi + length * direction
            value = cost(new)
            if value <= now - 0.25 * length * decrement + 1e-14 * abs(now):
                break
            length *= 0.5
            if length < 1e-12:
                raise ConsistencyError(
                    f"The step at weight {weight:.3g} does not decrease the cost; decrement "
                    f"{decrement:.3g}. Use a larger weight, or check the scale of the torques."
                )
        pi, now = new, value
    raise ConsistencyError(f"No optimum within {_MAX_STEPS} steps at weight {weight:.3g}.")


def _newton_rows(
    A: np.ndarray, b: np.ndarray, barrier: _Barrier, weight: float, pi: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return a Newton step as a least-squares problem."""
    C, c = barrier.rows(pi)
    root = np.sqrt(weight)
    return np.concatenate([A, root * C]), np.concatenate([A @ pi - b, root * c])


def _pseudo_inertias() -> np.ndarray:
    """Return the pseudo-inertia (4, 4) of each unit parameter, (10, 4, 4)."""
    pseudo_inertias = np.zeros((10, 4, 4))
    pseudo_inertias[0, 3, 3] = 1.0
    for k in range(3):
        pseudo_inertias[1 + k, k, 3] = pseudo_inertias[1 + k, 3, k] = 1.0
    for k, (i, j) in enumerate([(0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2)]):
        inertia = np.zeros((3, 3))
        inertia[i, j] = inertia[j, i] = 1.0
        pseudo_inertias[4 + k, :3, :3] = 0.5 * np.trace(inertia) * np.eye(3) - inertia
    return pseudo_inertias


_PSEUDO = _pseudo_inertias()
