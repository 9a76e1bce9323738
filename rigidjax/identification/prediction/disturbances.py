r"""Disturbances: unmodelled efforts on joints and bodies, and errors of inputs, as laws of time.

Within a step of the solver a white noise $w(t)$ of intensity $s$ is replaced by its
projection on the first two Legendre polynomials, $d_0 + \sqrt3\,d_1 (2\tau - 1)$, whose
coefficients are independent with the standard deviation $s/\sqrt{h}$. Its effect on a state whose
response is a linear function of time within a step, such as a position that integrates a velocity,
is that of the white noise itself; for others it converges with the fourth power of $h$.
"""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...annotations import Scalar
from ...bodies.fixed_point import FixedPointBody
from ...forces import Motor, PointForce, Torque
from ...joints.replacing import replace_fields
from ...signals.inputs import Input
from ...signals.signal import Signal


class Disturbance(eqx.Module):
    """Linear function of time over a step; `coefficients` (2,) or (2, n) of its Legendre
    polynomials of norm one; `start` and `span` of the step, s."""

    coefficients: Array
    start: Scalar
    span: Scalar

    def __call__(self, t: Scalar, *state: Array) -> Array:
        span = jnp.where(self.span > 0, self.span, 1.0)
        mean, slope = self.coefficients
        return mean + np.sqrt(3.0) * (2 * (t - self.start) / span - 1) * slope


class DisturbedLaw(eqx.Module):
    """Sum of a law, `None` for zero, and `gain` times a disturbance."""

    law: Any
    disturbance: Disturbance
    gain: Any

    def __call__(self, t: Scalar, *state: Array) -> Array:
        change = self.gain * self.disturbance(t)
        return change if self.law is None else self.law(t, *state) + change


class Channel(NamedTuple):
    """Scalar component of the process noise.

    **Attributes:** `kind` of its target; `target`, the name of a joint, body, signal or input;
    `entry`, index of the component in its target, (3,) for a force or moment; `source`, index of
    its standard deviation.
    """

    kind: Literal["joint", "force", "torque", "moment", "input"]
    target: str
    entry: int
    source: int


def disturb(
    model: Any,
    channels: Sequence[Channel],
    coefficients: Float[Array, "m 2"],
    start: Scalar,
    span: Scalar,
) -> Any:
    """Return the model with a disturbance of every channel over one step.

    **Arguments:** `coefficients` of the Legendre polynomials; `start` and `span`, s.
    """
    forces: list[Any] = []
    groups: dict[tuple[str, str], list[int]] = {}
    for k, channel in enumerate(channels):
        groups.setdefault((channel.kind, channel.target), []).append(k)
    for (kind, target), rows in groups.items():
        values = coefficients[np.array(rows)].T
        if kind in ("force", "torque", "moment"):
            entries = np.array([channels[k].entry for k in rows])
            values = jnp.zeros((2, 3), values.dtype).at[:, entries].set(values)
        law = Disturbance(values, start, span)
        if kind == "joint":
            joint = model.system.joints[model.system.joint_index(target)]
            for row, k in enumerate(rows):
                entry = channels[k].entry if joint.num_rates > 1 else None
                law = Disturbance(values[:, row], start, span)
                forces.append(Motor(target, law, component=entry))
        elif kind == "force":
            forces.append(PointForce(target, force=law))
        elif kind == "torque":
            forces.append(Torque(target, law))
        elif kind == "moment":
            disturbed = DisturbedLaw(model.system.moment, law, 1.0)
            system = replace_fields(model.system, moment=disturbed)
            model = replace_fields(model, system=system)
        else:
            model = _disturb_input(model, target, law)
    if forces:
        system = replace_fields(model.system, forces=(*model.system.forces, *forces))
        model = replace_fields(model, system=system)
    return model


def is_input_leaf(leaf: Any) -> bool:
    """Return whether a node of a model is an `Input` or a `Signal`."""
    return isinstance(leaf, Input | Signal)


def _disturb_input(model: Any, name: str, law: Disturbance) -> Any:
    """Return the model with a disturbance of the inputs or signals of this name."""

    def add_disturbance(leaf):
        if not is_input_leaf(leaf) or leaf.name != name:
            return leaf
        own, is_signal = law, isinstance(leaf, Signal)
        if isinstance(leaf, Signal):
            entry = None if leaf.entry is None else leaf.entry[0]
            shape = leaf.shape_of_table
        else:
            entry, shape = leaf.entry, leaf.shape
        if entry is not None or shape == ():
            own = Disturbance(law.coefficients[:, entry or 0], law.start, law.span)
        return DisturbedLaw(leaf, own, leaf.gain if is_signal else 1.0)

    return jax.tree.map(add_disturbance, model, is_leaf=is_input_leaf)


def is_fixed_point(model: Any) -> bool:
    """Return whether the system of a model is a `FixedPointBody`."""
    return isinstance(model.system, FixedPointBody)
