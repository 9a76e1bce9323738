r"""Coefficients of the numerical differentiation formulas of order 1 to 5 at equal steps.

The formula of order k is
$\sum_{j \le k} \nabla^j y_{n+1}/j - \kappa\,\gamma_k (y_{n+1} - y^{(0)}) = h\,\dot y_{n+1}$ with
$\gamma_k = \sum_{j \le k} 1/j$ and the prediction $y^{(0)}$. With $\kappa = 0$ it is the backward
differentiation formula. The values of $\kappa$ used here, by Klopfenstein and Shampine, reduce the
error constant, that of order 2 by half, and reduce the region of stability only slightly.

**Source:** Shampine-Reichelt, The MATLAB ODE suite, SIAM J. Sci. Comput. 18 (1997), Table 1.
"""

import numpy as np

MAX_ORDER = 5

# Values of kappa for order 0 (not used) to 5. The formulas of order 1 to 5 are A(alpha)-stable with
# alpha = 90, 90, 80, 66 and 51 degrees.
_KAPPA = np.array([0.0, -0.1850, -1 / 9, -0.0823, -0.0415, 0.0])
_GAMMA = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, MAX_ORDER + 1))])

# Leading coefficients: a correction of the unknowns changes the rate by this factor over h.
LEADING = (1.0 - _KAPPA) * _GAMMA
# Error constants: factors of h^(k+1) and the derivative of order k + 1 in the local error of order
# k; infinite for order 6, which does not exist.
ERROR = np.append(_KAPPA * _GAMMA + 1.0 / np.arange(1, MAX_ORDER + 2), np.inf)
