r"""Coefficients of the formulas of order 1 to 5 at equal steps: Klopfenstein's and Shampine's.

$\sum_{j \le k} \nabla^j y_{n+1}/j - \kappa\,\gamma_k (y_{n+1} - y^{(0)}) = h\,\dot y_{n+1}$ with
$\gamma_k = \sum_{j \le k} 1/j$ and the prediction $y^{(0)}$: backward differentiation for
$\kappa = 0$; the $\kappa$ here lessen the error of order 2 by a half, at little cost in stability.

**Source:** Shampine-Reichelt, The MATLAB ODE suite, SIAM J. Sci. Comput. 18 (1997), Table 1.
"""

import numpy as np

MAX_ORDER = 5

# Numerical differentiation formulas of order 0 (not used) to 5; A(alpha) to 90, 90, 80, 66, 51
# degrees.
_KAPPA = np.array([0.0, -0.1850, -1 / 9, -0.0823, -0.0415, 0.0])
_GAMMA = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, MAX_ORDER + 1))])

# Over h, what a correction adds to the rate.
LEADING = (1.0 - _KAPPA) * _GAMMA
# Of the local error, times h to the k + 1 and the derivative of order k + 1; order 6 has none.
ERROR = np.append(_KAPPA * _GAMMA + 1.0 / np.arange(1, MAX_ORDER + 2), np.inf)
