r"""Contacts that close and open in a hybrid run: bodies at rest on a surface, joints at a stop.

A contact with `rj.Restitution` closes where its distance and the rate of it are zero and would
become negative, as at the end of infinitely many impacts. From then on an effort $\lambda$ holds
the distance. The contact opens where $\lambda$ falls through zero, and where another transition
separates the bodies. As for joints that stick, one contact changes at a time.
"""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Bool, Float

from ..annotations import Scalar
from ..formulations import AbstractFormulation
from ..formulations.charts import Unknowns
from ..formulations.holding import HeldContact, with_closed
from ..formulations.null_space import AbstractNullSpace
from ..formulations.view import SystemView
from ..joints.replacing import replace_fields
from ..mechanics import System
from .contacts import AbstractContact
from .restitution import Restitution
from .transition import AbstractChange, Transition

# Round-off of a distance, in units of the last place of its size.
_ROUND_OFF = 64
# Acceleration or effort, relative to those that cancel in it, that counts as round-off.
_CANCELLED = 1e-9


def can_rest(model: Any, item: Transition) -> bool:
    """Return whether the contact of a transition can stay closed."""
    is_impact = isinstance(item.change, Restitution) and item.change.friction is None
    is_contact = isinstance(item.when, AbstractContact) and item.direction == -1
    is_minimal = isinstance(model, AbstractNullSpace) and isinstance(model.system, System)
    when: Any = item.when
    return is_impact and is_contact and is_minimal and when.can_rest(model)


def with_contacts(model: Any, transitions: Sequence[Transition]) -> AbstractFormulation:
    """Return the model with the contacts that can stay closed, all open."""
    contacts = tuple(
        HeldContact(item.name or str(k), item.when, jnp.array(False))
        for k, item in enumerate(transitions)
        if can_rest(model, item)
    )
    if not contacts:
        return model
    return replace_fields(model, system=replace_fields(model.system, contacts=contacts))


class ContactMotions(NamedTuple):
    """Distances of C contacts and their motion; each array has one entry per contact.

    **Attributes:** `values`, `rates` and `accelerations` of the distances; `loads`, the
    accelerations if no contact were closed; `efforts` and `mobilities`; `is_closed`; `sizes`, see
    `AbstractContact.size`; `short`, a duration that counts as none, s, a scalar.
    """

    values: Float[Array, " C"]
    rates: Float[Array, " C"]
    accelerations: Float[Array, " C"]
    loads: Float[Array, " C"]
    efforts: Float[Array, " C"]
    mobilities: Float[Array, " C"]
    is_closed: Bool[Array, " C"]
    sizes: Float[Array, " C"]
    short: Scalar

    @property
    def penetrations(self) -> Float[Array, " C"]:
        """Largest penetrations that errors of the integration can explain."""
        return jnp.finfo(self.values.dtype).eps ** 0.5 * self.sizes

    @property
    def noise(self) -> Float[Array, " C"]:
        """Round-off of the distances."""
        return _ROUND_OFF * jnp.finfo(self.values.dtype).eps * self.sizes

    @property
    def is_near(self) -> Bool[Array, " C"]:
        """Whether a distance is zero."""
        above = 0.5 * jnp.abs(self.loads) * self.short**2 + self.noise
        return (self.values <= above) & (self.values >= -self.penetrations)

    @property
    def is_moving(self) -> Bool[Array, " C"]:
        """Whether a distance keeps changing for longer than `short`."""
        return jnp.abs(self.rates) > self.short * jnp.abs(self.loads)

    @property
    def urgencies(self) -> Float[Array, " C"]:
        """How much each contact contradicts the motion by being open or closed; zero if not."""
        cancelled = jnp.abs(self.loads) + jnp.abs(self.accelerations - self.loads)
        inward = -self.accelerations
        rests = ~self.is_closed & self.is_near & (inward > _CANCELLED * cancelled)
        rests &= jnp.abs(self.rates) <= self.short * inward
        # Without a load the contact closes too, as it may be loaded later.
        is_unloaded = ~self.is_closed & self.is_near & (cancelled == 0) & (self.rates == 0)
        least = jnp.max(jnp.abs(self.efforts), initial=0.0) * self.mobilities
        pull = -self.efforts * self.mobilities
        pulls = self.is_closed & (pull > _CANCELLED * jnp.maximum(least, jnp.abs(self.loads)))
        leaves = self.is_closed & self.is_moving & (self.rates > 0)
        least = jnp.finfo(pull.dtype).tiny * is_unloaded
        return jnp.where(leaves, jnp.inf, jnp.where(pulls, pull, jnp.where(rests, inward, least)))


def contact_motions(model: Any, t: Scalar, y: Unknowns, short: Scalar) -> ContactMotions:
    """Return the motion of the contacts of a model; see `ContactMotions`."""
    contacts: tuple[HeldContact, ...] = model.multibody.contacts
    view, at, still = (
        SystemView(model, t, y),
        model.holding(t, y),
        jnp.zeros_like(model.rates_of(y)),
    )
    distances: list[Any] = [contact.distance for contact in contacts]
    first = len(at.efforts) - len(contacts)
    return ContactMotions(
        jnp.stack([distance(t, view) for distance in distances]),
        jnp.stack([distance.motion(model, t, y, still).rate for distance in distances]),
        at.accelerations[first:],
        at.loads[first:],
        at.efforts[first:],
        at.mobilities[first:],
        jnp.stack([contact.is_closed for contact in contacts]),
        jnp.stack([distance.size(view) for distance in distances]),
        short,
    )


class _Effort(eqx.Module):
    """The function whose fall through zero opens a contact: its effort while it is closed."""

    index: int = eqx.field(static=True)

    def __call__(self, t: Scalar, view: SystemView) -> Scalar:
        model = view.model
        contacts = model.multibody.contacts
        k = self.index - len(contacts)
        return jax.lax.cond(
            contacts[self.index].is_closed,
            lambda t, y: model.holding(t, y).efforts[k],
            lambda t, y: jnp.ones_like(t),
            t,
            view.y,
        )


class CloseOrOpen(AbstractChange):
    """The change of a contact that opens, or that closes and ends the rate of its distance.

    **Attributes:** `index` of the contact among those of the model.
    """

    index: int = eqx.field(static=True)
    sets_modes: ClassVar[bool] = True

    def apply(self, model: Any, t: Scalar, y: Unknowns, when: Callable[..., Scalar]) -> Unknowns:
        """Return the unknowns after the transition; see `AbstractChange.apply`."""
        contacts = model.multibody.contacts
        contact = contacts[self.index]
        others = jnp.stack([other.is_closed for other in contacts]).at[self.index].set(False)
        nu = model.rates_of(y)
        rate, _, J = contact.distance.motion(model, t, y, jnp.zeros_like(nu))
        response = with_closed(model, others).impulse_response(t, y, J)
        impulse = jnp.where(contact.is_closed, 0.0, -rate / (J @ response))
        return model.with_rates(y, nu + response * impulse)


def closing_and_opening(model: Any) -> tuple[Transition, ...]:
    """Return the transitions of all contacts that can stay closed."""
    contacts = model.multibody.contacts
    return tuple(
        Transition(_Effort(c), CloseOrOpen(c), -1, contact.name)
        for c, contact in enumerate(contacts)
    )
