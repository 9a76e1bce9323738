"""Law of the friction in a joint."""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from ..annotations import Scalar, T
from ..checks import ArrayInput, Rule, as_leaf, check_all, finite_rule, float_array
from ..signals.laws import as_law, check_shapes, law_result
from ..signals.switches import evaluate_law
from .replacing import replace_fields


class Stribeck(eqx.Module):
    r"""Level of friction at rest, `static` $F_s$, and the `velocity` $v_s$ at which it decays."""

    static: Float[Array, " *f"]
    velocity: Float[Array, " *f"]


class Friction(eqx.Module):
    r"""Friction on the coordinates of a joint, smooth in the rate $v = \dot q$.

    $$F(v) = -\left[F_c + (F_s - F_c)\,e^{-(v/v_s)^2}\right]\tanh\frac{v}{v_0} - d\,v$$

    It is given to a joint, as in `rj.Revolute(..., friction=rj.Friction(0.4))`. Friction opposes
    the motion at every rate; its power $F v$ is never positive. The sign of the rate is replaced by
    $\tanh(v / v_0)$, so that the force and all its derivatives are continuous: near rest the joint
    is a strong damper with the coefficient $F_s / v_0 + d$, or $F_c / v_0 + d$ without $F_s$. A
    joint at rest under a load $Q$ below the level of friction does not stick but creeps at the
    rate $v_0 \operatorname{artanh}(Q / F_c)$. Choose $v_0$ well below the rates of interest; the
    smaller it is, the stiffer are the equations near rest (implicit solvers: `rj.solvers`).

    With `sticking` there is no regularisation. The joint sticks at a rate of exactly zero while the
    effort that this needs is at most the level at rest, and slips otherwise, with the exact sign
    instead of $\tanh$. Sticking and slipping are transitions of `rj.simulate`; they are listed in
    `Solution.transitions`, and `Solution.inputs["hinge.sliding"]` has the direction of sliding, 0
    while the joint sticks. Other functions that evaluate forces raise an error for such a joint.

    Forces are N and velocities m/s where the coordinate is a length, N m and rad/s where it is an
    angle. Every argument is a scalar, or has an entry for each coordinate of the joint.

    **Arguments:**

    - `coulomb`, $F_c$, the level of friction in motion, N or N m. A brake takes a function of
      time, an `rj.Signal` or an `rj.Input`, a scalar for all coordinates; values below zero count
      as zero. It excludes `stribeck` and `sticking`.
    - `viscous`, $d$, N s/m or N m s; in addition to the `damping` of the joint.
    - `stribeck`: `None`, or the pair $(F_s, v_s)$ of the level of friction at rest, not below
      $F_c$, and the velocity at which it decays; kept as `stribeck.static` and
      `stribeck.velocity`. Unless $v_s$ exceeds $v_0$ several times, the peak is lower than $F_s$.
      With `sticking`, $v_s$ may be zero: friction drops from $F_s$ to $F_c$ when the joint slips.
    - `velocity`, $v_0$, the regularisation velocity, m/s or rad/s; of no effect with `sticking`.
    - `sticking`: whether the joint sticks exactly.

    **Errors:** `ValueError` for negative values, velocities that are not positive, a level at rest
    below that in motion, a wrong shape, or `stribeck` or `sticking` with a level that changes; when
    the joint is built, for a wrong number of entries.
    **Source:** Armstrong-Helouvry, Dupont, Canudas de Wit (1994), Automatica 30, with the
    regularised sign.
    """

    coulomb: Any
    viscous: Float[Array, " *f"]
    stribeck: Stribeck | None
    velocity: Float[Array, " *f"]
    sticking: bool = eqx.field(static=True)

    def __init__(
        self,
        coulomb: ArrayInput | Callable[..., Scalar],
        viscous: ArrayInput = 0.0,
        stribeck: Sequence[ArrayInput] | None = None,
        velocity: ArrayInput = 0.01,
        sticking: bool = False,
    ):
        if callable(coulomb):
            if sticking or stribeck is not None:
                raise ValueError(
                    "`Friction(coulomb=...)` must be constant with `sticking` or `stribeck`; a "
                    f"level that changes belongs to smooth friction without them. Got {coulomb!r}."
                )
            self.coulomb = as_law(coulomb, "Friction(coulomb=...)")
            check_shapes(self._level, ())
        else:
            self.coulomb = law_constant(coulomb, "Friction(coulomb=...)")
        self.viscous = law_constant(viscous, "Friction(viscous=...)")
        self.velocity = law_constant(velocity, "Friction(velocity=...)", is_positive=True)
        if not isinstance(sticking, bool):
            raise TypeError(f"`Friction(sticking=...)` must be True or False; got {sticking!r}.")
        self.sticking = sticking
        self.stribeck = None
        if stribeck is not None:
            if not isinstance(stribeck, Sequence) or len(stribeck) != 2:
                raise ValueError(
                    "`Friction(stribeck=...)` must be the level of friction at rest and the "
                    f"velocity at which it decays, (static, velocity); got {stribeck!r}."
                )
            name, level = "Friction(stribeck=...)", self.coulomb
            rule = (
                lambda x: (x >= level).all(),
                f"The level at rest in `{name}` must not be below `coulomb`.",
            )
            self.stribeck = Stribeck(
                law_constant(stribeck[0], name, rules=[rule]),
                law_constant(stribeck[1], name, is_positive=not sticking),
            )

    def at(self, t: Scalar) -> "Friction":
        """Return the friction with its level at the time `t`, s."""
        return replace_fields(self, coulomb=self._level(t)) if callable(self.coulomb) else self

    def _level(self, t: Scalar) -> Scalar:
        value = evaluate_law(self.coulomb, t)
        value = law_result(value, (), "`Friction(coulomb=...)` must return a scalar")
        return jnp.maximum(value, 0.0)

    def force(self, rate: Scalar) -> Scalar:
        """Return the force, N, or moment, N m, on the coordinate; `rate`, m/s or rad/s.

        **Errors:** `ValueError` with `sticking`, whose force is no function of the rate.
        """
        if self.sticking:
            raise ValueError(
                "`Friction(sticking=True)` is no function of the rate: only `rj.simulate` knows "
                "whether the joint sticks, in models of the formulations `Relative` and "
                "`NullSpace`. Use `sticking=False` here, which is smooth over `velocity`."
            )
        return self.sliding_force(jnp.tanh(rate / self.velocity), rate)

    @property
    def static_level(self) -> Float[Array, " *f"]:
        """Level of friction at rest, N or N m."""
        return self.coulomb if self.stribeck is None else self.stribeck.static

    def sliding_force(self, direction: Scalar, rate: Scalar) -> Scalar:
        """Return the force, N, or moment, N m, on a coordinate that slides.

        **Arguments:** `direction`, 1 or -1, the sign of the rate; `rate`, m/s or rad/s.
        """
        level = self.coulomb
        if self.stribeck is not None:
            scale = self.stribeck.velocity
            decays = scale > 0
            decay = jnp.exp(-((rate / jnp.where(decays, scale, 1.0)) ** 2))
            decay = jnp.where(decays, decay, 0.0)
            level = level + (self.stribeck.static - level) * decay
        return -level * direction - self.viscous * rate


class HeldFriction(eqx.Module):
    """Friction of a joint at one time, and the efforts that hold its coordinates.

    **Attributes:** `effort`, N or N m; `direction` of sliding, 1 or -1, 0 for a coordinate that
    friction holds; `law`, `None` without friction.
    """

    effort: Float[Array, " *f"]
    direction: Float[Array, " *f"]
    law: Friction | None

    def at(self, t: Scalar) -> "HeldFriction":
        """Return the friction with its level at the time `t`, s."""
        return self if self.law is None else replace_fields(self, law=self.law.at(t))

    def force(self, rate: Scalar) -> Scalar:
        """Return the force, N, or moment, N m, on the coordinate; `rate`, m/s or rad/s."""
        if self.law is None:
            return self.effort
        if not self.law.sticking:
            return self.effort + self.law.force(rate)
        sliding = self.law.sliding_force(self.direction, rate)
        return self.effort + jnp.where(self.direction == 0, 0.0, sliding)


def values_of_coordinate(laws: T, k: int) -> T:
    """Return constants of the laws of a joint, (f,), at coordinate `k`; functions are of all."""
    return jax.tree.map(lambda leaf: leaf if callable(leaf) else leaf[k], laws, is_leaf=callable)


def law_constant(
    value: ArrayInput, argument: str, is_positive: bool = False, rules: Sequence[Rule] = ()
) -> Float[Array, " *f"]:
    """Return a checked constant of a law, (), or (f,) for the coordinates of a joint.

    **Arguments:** `is_positive`, whether zero is an error, as negative values are; `rules`, more of
    `checks.check_all`.
    """
    array = float_array(value, argument)
    if array.ndim > 1:
        raise ValueError(
            f"`{argument}` must be a scalar or have an entry for each coordinate of the joint; got "
            f"shape {array.shape}."
        )
    sign: Rule = (
        (lambda x: (x > 0).all(), f"`{argument}` must be positive.")
        if is_positive
        else (lambda x: (x >= 0).all(), f"`{argument}` must not be negative.")
    )
    return as_leaf(check_all(array, [finite_rule(argument), sign, *rules]))
