r"""Process noise of a model: unmodelled efforts and errors of inputs, by name.

Within a step of the solver a white noise $w(t)$ of intensity $s$ is replaced by its
projection on the first two Legendre polynomials, $d_0 + \sqrt3\,d_1 (2\tau - 1)$, whose
coefficients are independent with the standard deviation $s/\sqrt{h}$. Its effect on a state whose
response is a linear function of time within a step, such as a position that integrates a velocity,
is that of the white noise itself; for others it converges with the fourth power of $h$.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from ...annotations import Scalar
from ...bodies.fixed_point import FixedPointBody
from ...checks import did_you_mean
from ...forces import Motor, PointForce, Torque
from ...joints.replacing import replace_fields
from ...signals.inputs import Input
from ...signals.signal import Signal

_ARGUMENT = "identify(process_noise=...)"
# Name of the noise of the moment on a `FixedPointBody`.
MOMENT = "moment"


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


class NoiseSource(eqx.Module):
    """Process noise with one standard deviation.

    **Attributes:** `label` and `unit`, for reports; `period` of the samples of a logged input, s,
    whose errors are independent with `value` as standard deviation; `None` for a white noise of
    intensity `value`; `value`, `None` if it is estimated.
    """

    label: str = eqx.field(static=True)
    unit: str = eqx.field(static=True)
    period: float | None = eqx.field(static=True)
    value: float | None = eqx.field(static=True)

    @property
    def factor(self) -> float:
        """Ratio of the intensity of the white noise, per root hertz, to `value`."""
        return 1.0 if self.period is None else float(np.sqrt(self.period))


class ProcessNoise(eqx.Module):
    """All process noise of a model: `sources`, and `channels` that refer to them."""

    sources: tuple[NoiseSource, ...] = eqx.field(static=True)
    channels: tuple[Channel, ...] = eqx.field(static=True)

    @property
    def is_estimated(self) -> tuple[bool, ...]:
        """Whether each source is estimated."""
        return tuple(source.value is None for source in self.sources)

    def spread(self, intensity: Float[Array, " S"]) -> Float[Array, " m"]:
        """Return the intensity of every channel from those of the sources."""
        return intensity[np.array([channel.source for channel in self.channels], int)]

    def values(self, intensity: np.ndarray) -> dict[str, float]:
        """Return standard deviations by label, in the units of the sources."""
        pairs = zip(self.sources, intensity, strict=True)
        return {source.label: float(x) / source.factor for source, x in pairs}

    def describe(self, intensity: np.ndarray) -> str:
        """Return the standard deviations of the estimated sources with their units."""
        values, parts = self.values(intensity), []
        for source in self.sources:
            if source.value is None:
                parts.append(f"{source.label} {values[source.label]:.3g} {source.unit}")
        return ", ".join(parts)


def make_process_noise(
    model: Any, given: Mapping[str, Any], inputs: Mapping[str, tuple[Any, Any]]
) -> ProcessNoise:
    """Return the process noise that `identify(process_noise=...)` describes.

    **Arguments:** `model`, whose measured inputs are signals; `inputs`, of the first run.
    **Errors:** `TypeError` and `ValueError` for unknown names and values that do not fit.
    """
    if not isinstance(given, Mapping) or not given:
        raise TypeError(
            f"`{_ARGUMENT}` takes a dict of standard deviations by the names of joints, bodies, "
            f"signals and inputs, such as {{'hinge': 0.01}} or {{'hinge': None}}; got {given!r}."
        )
    sources: list[NoiseSource] = []
    channels: list[Channel] = []

    def add(label: str, unit: str, value: Any, period: float | None, parts: Sequence[tuple]):
        value = _check_value(label, value)
        if value == 0:
            return
        channels.extend(Channel(kind, target, k, len(sources)) for kind, target, k in parts)
        sources.append(NoiseSource(label, unit, period, value))

    known = _names(model)
    for name, value in given.items():
        kind = known.get(name)
        if kind is None:
            listed = f" There are {sorted(known)}."
            raise ValueError(
                f"`{_ARGUMENT}` names {name!r}, which is no joint, body, signal or input of the "
                f"model.{did_you_mean(name, known, listed)}"
            )
        if kind == "moment":
            add(name, "N m/sqrt(Hz)", value, None, [("moment", "", k) for k in range(3)])
        elif kind == "joint":
            joint = model.system.joints[model.system.joint_index(name)]
            units = ["N"] * joint.num_translations
            units += ["N m"] * (joint.num_rates - joint.num_translations)
            for k, (unit, part) in enumerate(
                zip(units, _parts(name, value, len(units)), strict=True)
            ):
                label = name if len(units) == 1 else f"{name}[{k}]"
                add(label, f"{unit}/sqrt(Hz)", part, None, [("joint", name, k)])
        elif kind == "body":
            force, torque = _parts(name, value, 2)
            for label, unit, part in (("force", "N", force), ("torque", "N m", torque)):
                parts = [(label, name, k) for k in range(3)]
                add(f"{name}: {label}", f"{unit}/sqrt(Hz)", part, None, parts)
        else:
            _check_not_motion(model, name)
            size = _size_of_input(model, name)
            period = None
            if name in inputs:
                period = float(np.median(np.diff(np.asarray(inputs[name][0], float))))
            unit = "per sample" if period is not None else "per sqrt(Hz)"
            add(name, unit, value, period, [("input", name, k) for k in range(size)])
    if not sources:
        raise ValueError(
            f"`{_ARGUMENT}` is zero everywhere. Give a standard deviation, `None` to estimate it, "
            'or use `method="levenberg-marquardt"`.'
        )
    return ProcessNoise(tuple(sources), tuple(channels))


def _names(model: Any) -> dict[str, str]:
    """Return the kinds of all targets of process noise by name."""
    inputs = {leaf.name: "input" for leaf in _input_leaves(model) if leaf.name}
    if is_fixed_point(model):
        return {**inputs, MOMENT: "moment"}
    system = model.system
    bodies = {body.name: "body" for body in system.bodies}
    joints = {
        j.name: "joint"
        for j in system.joints
        if j.num_rates > 0 and (j.num_translations > 0 or j.has_angle)
    }
    return {**bodies, **inputs, **joints}


def _input_leaves(tree: Any) -> list[Any]:
    leaves = jax.tree.leaves(tree, is_leaf=is_input_leaf)
    return [leaf for leaf in leaves if is_input_leaf(leaf)]


def _size_of_input(model: Any, name: str) -> int:
    leaf = next(leaf for leaf in _input_leaves(model) if leaf.name == name)
    shape = getattr(leaf, "shape_of_table", None)
    shape = leaf.shape if shape is None else shape
    return int(np.prod(shape, dtype=int))


def _check_not_motion(model: Any, name: str) -> None:
    """Raise `ValueError` for an input that prescribes a motion."""
    if is_fixed_point(model):
        return
    for joint in model.system.joints:
        if any(leaf.name == name for leaf in _input_leaves(getattr(joint, "motion", None))):
            raise ValueError(
                f"`{_ARGUMENT}` names {name!r}, which prescribes the motion of the joint "
                f"{joint.name!r}; white noise has no rates. Give the joint a motor instead."
            )


def _parts(name: str, value: Any, count: int) -> list[Any]:
    """Return `count` values, given one value for all or one for each."""
    if count == 1:
        return [value]
    if value is None or np.ndim(value) == 0:
        return [value] * count
    if len(value) != count:
        raise ValueError(f"`{_ARGUMENT}` of {name!r} must be one value or {count}; got {value!r}.")
    return list(value)


def _check_value(label: str, value: Any) -> float | None:
    if value is None:
        return None
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = np.nan
    if not (np.isfinite(number) and number >= 0):
        raise ValueError(
            f"`{_ARGUMENT}` of {label!r} must be a standard deviation, 0 for none, or `None` to "
            f"estimate it; got {value!r}."
        )
    return number


def initial_intensity(noise: ProcessNoise, dtype: Any) -> Float[Array, " S"]:
    """Return the intensities that are given, NaN for those to be estimated."""
    given = [np.nan if s.value is None else s.value * s.factor for s in noise.sources]
    return jnp.asarray(given, dtype)
