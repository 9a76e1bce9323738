"""A rigid body with one point fixed in space."""

from collections.abc import Callable
from typing import Any

import equinox as eqx
import jax.numpy as jnp

from ..annotations import Matrix3, Scalar, Vector3
from ..checks import ArrayInput, check_one_precision
from ..signals.laws import as_law, check_shapes, law_result, with_static_functions
from ..signals.shared_tables import number_tables
from ..signals.switches import evaluate_law
from .euler_equations import angular_momentum, euler_equations, rotational_energy
from .inertia import checked_inertia
from .potentials import AbstractPotential, AutodiffPotential


class FixedPointBody(eqx.Module):
    r"""A rigid body in spherical motion, $I\dot\Omega = \mu - \Omega \times I\Omega$.

    The fixed point may be any point of the body; for free rotation it is the centre of mass.

    **Arguments:**

    - `inertia`, about the **fixed point**, principal (3,) or symmetric (3, 3), kg m^2, body axes.
    - `potential(R) -> V`, potential energy of the orientation, J: an `AbstractPotential`, whose
      moment is in closed form, or any function, which is then differentiated automatically.
    - `moment(t, R, omega) -> (3,)`, a further moment, N m, body components.
    - `physical=False` admits an inertia that no distribution of mass has.

    Arrays in modules given as `potential` and `moment` are parameters; plain functions are static.

    **Errors:** `ValueError` for a wrong shape, an inertia that is not physical or not positive, or
    parts of different precision.
    """

    inertia: Vector3 | Matrix3
    potential: AbstractPotential | None
    moment: Any

    def __init__(
        self,
        inertia: ArrayInput,
        potential: Callable[[Matrix3], Scalar] | None = None,
        moment: Callable[..., Vector3] | None = None,
        *,
        physical: bool = True,
    ):
        self.inertia = checked_inertia(
            inertia, "FixedPointBody(inertia=...)", physical, regular=True
        )
        self.potential = self.moment = None
        if isinstance(potential, AbstractPotential):
            self.potential = with_static_functions(potential, type(potential).__name__)
        elif potential is not None:
            self.potential = AutodiffPotential(as_law(potential, "FixedPointBody(potential=...)"))
        if moment is not None:
            self.moment = number_tables(as_law(moment, "FixedPointBody(moment=...)"))
            check_shapes(self.extra_moment, (), (3, 3), (3,))
        parts = ("inertia", self.inertia), ("potential", self.potential), ("moment", self.moment)
        check_one_precision("`FixedPointBody(...)`", parts)

    @property
    def is_free(self) -> bool:
        """Whether the body has neither a potential nor a moment; a static property."""
        return self.potential is None and self.moment is None

    def angular_acceleration(self, t: Scalar, R: Matrix3, omega: Vector3) -> Vector3:
        r"""Return the angular acceleration $\dot\Omega$, body components, rad/s^2.

        Without potential and moment `R` is not used.

        **Arguments:** `t`, s; `R`, body to space, (3, 3); `omega`, body components, rad/s.
        **Source:** Lang (25), (42).
        """
        moment = None if self.is_free else self.applied_moment(t, R, omega)
        return euler_equations(self.inertia, omega, moment)

    def applied_moment(self, t: Scalar, R: Matrix3, omega: Vector3) -> Vector3:
        r"""Return the moment $\mu$ of the potential plus `moment`, body components, N m.

        **Arguments:** `t`, s; `R`, body to space, (3, 3); `omega`, body components, rad/s.
        **Errors:** `ValueError` if `moment` does not return shape (3,).
        """
        if self.moment is None:
            if self.potential is None:
                return jnp.zeros_like(omega)
            return self.potential.moment(R)
        extra = self.extra_moment(t, R, omega)
        return extra if self.potential is None else self.potential.moment(R) + extra

    def extra_moment(self, t: Scalar, R: Matrix3, omega: Vector3) -> Vector3:
        r"""Return the `moment` alone, without the potential's, body components, N m.

        It is zero without a `moment`. **Arguments, errors:** as for `applied_moment`.
        """
        if self.moment is None:
            return jnp.zeros_like(omega)
        subject = "`moment(t, R, omega)` must return shape (3,), body components"
        return law_result(evaluate_law(self.moment, t, R, omega), (3,), subject)

    def kinetic_energy(self, omega: Vector3) -> Scalar:
        r"""Return $\frac12 \Omega \cdot I \Omega$, J; `omega` in body components, rad/s."""
        return rotational_energy(self.inertia, omega)

    def potential_energy(self, R: Matrix3) -> Scalar:
        """Return the potential energy, J, zero without a potential; `R` body to space, (3, 3)."""
        if self.potential is None:
            return jnp.zeros((), R.dtype)
        return self.potential(R)

    def angular_momentum(self, omega: Vector3) -> Vector3:
        r"""Return the angular momentum $I\Omega$ about the fixed point, body, kg m^2/s."""
        return angular_momentum(self.inertia, omega)
