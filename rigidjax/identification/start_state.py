"""The start state of a run as a fitted parameter."""

from ..bodies.fixed_point import FixedPointBody
from ..formulations import AbstractFormulation
from ..initial.local_coordinates import independent_rates
from ..joints import AbstractJoint
from ..state import State
from .checked_arguments import check_model
from .parameters import Parameter
from .priors import AbstractPrior
from .start_change import StartSelector


def start_state(
    model: AbstractFormulation,
    state0: State | None = None,
    *,
    positions: bool = True,
    rates: bool = True,
    per_run: bool = True,
    name: str = "start",
    prior: AbstractPrior | None = None,
) -> Parameter:
    """Return the start state as a parameter, in coordinates that satisfy all joints.

    Its components are changes of the start state that `identify` is given: of the independent
    coordinates (rad or m), and of their rates (rad/s or m/s). Zero is the given start. For a joint
    of the spanning tree these are its coordinates (small rotations about the joint axes for a joint
    with several of them); for a body that is attached to no joint, its position in space
    components, its rotation about body axes, velocity and angular velocity. In a closed loop as
    many coordinates are fitted as there are degrees of freedom; the others follow.

    **Arguments:**

    - `model`: the formulation that is fitted.
    - `state0`: a state at which the independent coordinates of closed loops are chosen; the
      reference state if left out. It must not be singular.
    - `positions`, `rates`: whether this part of the start is fitted; the other part keeps its given
      value.
    - `per_run`: whether every run has a start of its own.
    - `name`: for reports.
    - `prior`: knowledge of the changes besides the data, such as `GaussianPrior(0.0, std)` for a
      start that was set up with these standard deviations.

    **Returns:** a `Parameter`; the fitted states are in `Fit.states`.
    **Raises:** `TypeError` if `model` is not a formulation; `ValueError` if there is nothing to
    fit.
    **Source:** Lang (11): the null space of the joints gives the directions.
    """
    check_model("start_state", model)
    if not (positions or rates):
        raise ValueError("`start_state` needs `positions=True`, `rates=True` or both.")
    state0 = model.multibody.reference_state() if state0 is None else state0
    independent = independent_rates(model, model.check_state(state0))
    if not independent:
        raise ValueError(
            "`start_state(model)`: the joints of this system leave no degree of freedom, so that "
            "there is no start to fit."
        )
    names = _names(model)
    entries = [names[i] for i in independent]
    labels, units = [], []
    for used, column in ((positions, 0), (rates, 1)):
        if used:
            labels += [f"{name}: change of {entry[column]}" for entry in entries]
            units += [entry[2] + ("/s" if column else "") for entry in entries]
    return Parameter(
        name,
        StartSelector(independent, len(names), positions, rates),
        per_run=per_run,
        unit=units,
        labels=labels,
        size=1.0,
        prior=prior,
    )


def _names(model: AbstractFormulation) -> list[tuple[str, str, str]]:
    """Return names of position and rate, and the unit of the position, per generalised velocity."""
    system = model.system
    if isinstance(system, FixedPointBody):
        return [(f"phi{k}", f"omega{k}", "rad") for k in (1, 2, 3)]
    entries = []
    for body, index in zip(system.bodies, system.topology.joints, strict=True):
        if index is None:
            suffix = f" of {body.name}"
            entries += [(f"x{k}{suffix}", f"v{k}{suffix}", "m") for k in (1, 2, 3)]
            entries += [(f"phi{k}{suffix}", f"omega{k}{suffix}", "rad") for k in (1, 2, 3)]
        else:
            entries += _joint_names(system.joints[index])
    return entries


def _joint_names(joint: AbstractJoint) -> list[tuple[str, str, str]]:
    lengths, angles = joint.num_translations, joint.num_rates - joint.num_translations
    entries = []
    for count, kind, unit in ((lengths, "length", "m"), (angles, "angle", "rad")):
        for k in range(count):
            index = f" {k + 1}" if count > 1 else ""
            label = f"{kind}{index} of {joint.name}"
            entries.append((label, f"rate of {label}", unit))
    return entries
