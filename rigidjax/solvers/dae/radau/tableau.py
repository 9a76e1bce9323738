"""Coefficients of the Radau IIA methods."""

import functools
from typing import NamedTuple

import numpy as np
from jaxtyping import Array
from numpy.polynomial import Legendre


class RadauTableau(NamedTuple):
    r"""A Radau IIA method of s stages and the transformation of its Newton matrix.

    **Attributes:**

    - `c`: nodes, (s,).
    - `A_inverse`: inverse of the coefficient matrix $A$, (s, s).
    - `gamma`: the real eigenvalue of $A^{-1}$.
    - `pairs`: eigenvalues of $A^{-1}$ with positive imaginary part, ((s - 1)/2,).
    - `T`, `T_inverse`: eigenvectors as columns, (s, s), and the inverse matrix; the first column is
      the real eigenvector, the next ones are real and imaginary parts of the complex ones.
    - `error`: coefficients $d$ of the error estimate
      $(\gamma/h\,M - J)^{-1} (f_0 + M \sum_i d_i z_i / h)$, (s,).
    """

    c: np.ndarray
    A_inverse: np.ndarray
    gamma: float
    pairs: np.ndarray
    T: np.ndarray
    T_inverse: np.ndarray
    error: np.ndarray


@functools.cache
def radau_tableau(stages: int) -> RadauTableau:
    r"""Return the method with an odd number of stages s, of order 2 s - 1.

    **Source:** Hairer-Wanner II, IV.5 (5.7) and IV.8 (8.19). The nodes are the zeros of
    $d^{s-1}/dx^{s-1} [x^{s-1} (x - 1)^s]$, of $P_s - P_{s-1}$ on the interval from -1 to 1.
    """
    s = stages
    nodes = (Legendre.basis(s) - Legendre.basis(s - 1)).roots().real
    c = np.sort(0.5 * (1.0 + nodes))
    c[-1] = 1.0
    powers = np.arange(1, s + 1)
    vandermonde = c[:, None] ** (powers - 1)
    A = (c[:, None] ** powers / powers) @ np.linalg.inv(vandermonde)
    A_inverse = _differentiation_matrix(c)
    values, vectors = map(np.asarray, np.linalg.eig(A_inverse.astype(complex)))
    real = int(np.argmin(np.abs(np.imag(values))))
    upper = [i for i in np.argsort(np.imag(values)) if np.imag(values[i]) > 1e-8]
    columns = [np.real(vectors[:, real] / vectors[np.argmax(np.abs(vectors[:, real])), real])]
    for i in upper:
        columns += [np.real(vectors[:, i]), np.imag(vectors[:, i])]
    T = np.stack(columns, axis=1)
    gamma = float(np.real(values[real]))
    # Weights of a quadrature of order s that also uses the rate at 0, with weight 1 / gamma.
    right = 1.0 / powers
    right[0] -= 1.0 / gamma
    weights = np.linalg.solve(vandermonde.T, right)
    error = gamma * (weights - A[-1]) @ A_inverse
    return RadauTableau(c, A_inverse, gamma, values[upper], T, np.linalg.inv(T), error)


def _differentiation_matrix(c: np.ndarray) -> np.ndarray:
    """Return $A^{-1}$, (s, s), as derivatives at the nodes of the polynomials of `lagrange_basis`.

    The numerical inverse of $A$ would lose five digits for seven stages.
    """
    nodes = np.concatenate([[0.0], c])
    gaps = nodes[:, None] - nodes
    np.fill_diagonal(gaps, 1.0)
    products = np.prod(gaps, axis=1)
    D = products[:, None] / products / gaps
    np.fill_diagonal(D, 0.0)
    np.fill_diagonal(D, np.sum(1.0 / gaps, axis=1) - 1.0)
    return D[1:, 1:]


def lagrange_basis(c: np.ndarray, x: Array | np.ndarray):
    """Evaluate the Lagrange polynomials of the nodes `c` and 0, without that of the node 0.

    **Arguments:** `c`, nodes, (s,); `x`, array of any shape.
    **Returns:** a list of s arrays like `x`.
    """
    basis = []
    for j, node in enumerate(c):
        value = x / float(node)
        for k, other in enumerate(c):
            if k != j:
                value = value * ((x - float(other)) / float(node - other))
        basis.append(value)
    return basis
