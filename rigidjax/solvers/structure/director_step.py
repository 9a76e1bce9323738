"""One step of the energy-momentum scheme in directors."""

from ...bodies.inertia import euler_tensor
from ...rotations.euler_map import euler_map
from ...rotations.matrix import product
from ...rotations.so3 import skew, unskew
from .increments import cayley
from .mean_twist import AbstractMeanTwistStep, less_impulses, momentum_gains
from .midpoint_loads import mean_loads
from .motion import turned


class DirectorStep(AbstractMeanTwistStep):
    r"""$d_{n+1} - d_n = \frac h2 (\dot d_n + \dot d_{n+1})$ and
    $M_9(\dot d_{n+1} - \dot d_n) = h (f - G(d_{n+1/2})^T \lambda)$ with $\lambda$ eliminated.

    The constraints hold at both ends, their rates $G\dot d$ in the middle alone: $\dot d_{n+1}$ has
    a part that is not tangent, and the energy that is conserved is $\frac12 \dot d^T M_9 \dot d$
    with it.
    """

    @property
    def mean_directors(self):
        return True

    def increment(self, psi):
        return cayley(psi)

    def conclude(self, V, W, increments, coordinates):
        assert self.start.rates is not None
        velocities = [2.0 * mean - v for mean, v in zip(V, self.start.velocities, strict=True)]
        omegas, rates = [], []
        for a, v, d, w, one in zip(
            self.start.coordinates, self.start.rates, coordinates, W, increments, strict=True
        ):
            # Not the difference of the directors, whose round-off would be divided by h.
            R = self.rotation.to_matrix(turned(self.rotation, a, one.half)) / one.square
            rate = 2.0 * one.chord * product(R, skew(w)).T.reshape(9) - v
            rates.append(rate)
            omegas.append(self.rotation.angular_velocity(d, rate))
        return velocities, omegas, rates

    def balance(self, V, W, increments):
        assert self.start.rates is not None
        v1 = [2.0 * mean - v for mean, v in zip(V, self.start.velocities, strict=True)]
        linear = momentum_gains(self.mechanics, self.start.velocities, v1)
        angular = [
            self._angular(a, v, w, one, inertia)
            for a, v, w, one, inertia in zip(
                self.start.coordinates, self.start.rates, W, increments,
                self.mechanics.inertias(), strict=True,
            )
        ]  # fmt: skip
        loads = mean_loads(self.mechanics, self.middle(V, W, increments), True)
        return less_impulses(linear, angular, self.h, loads)

    def _angular(self, a, v, w, one, inertia):
        r"""$\sum_i E_i\,d_{i,n+1/2} \times (\dot d_{i,n+1} - \dot d_{i,n})$ in the middle frame."""
        F = euler_map(one.half) / one.square
        N = product(self.rotation.to_matrix(a).T, self.rotation.to_matrix(v))
        gain = 2.0 * one.chord * skew(w) - 2.0 * product(F.T, N)
        E = euler_tensor(inertia)
        weighted = gain * E[None, :] if E.ndim == 1 else product(gain, E)
        return 2.0 * unskew(product(weighted, 0.5 * (F + F.T)))
