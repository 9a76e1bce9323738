"""The start state of a run as a parameter, whatever the joints."""

from ..bodies.fixed_point import FixedPointBody
from ..formulations import AbstractFormulation
from ..initial.local_coordinates import independent_rates
from ..state import State
from .checked_arguments import check_model
from .parameters import Parameter
from .priors import AbstractPrior
from .start_change import StartOf


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
    r"""The start state as a parameter that no joint is violated by.

    Its components are changes of the start state that `identify` is given, zero there: of the
    coordinates that are free (rad or m), and of their rates (rad/s or m/s). For a joint of the
    spanning tree these are its coordinates (for joints that turn about several axes, turns about
    the axes of the joint); for a body that hangs on none, its position, space components, its
    rotation about body axes, velocity and angular velocity. Of a closed loop only as many are
    fitted as there are degrees of freedom; the others follow.

    **Arguments:**

    - `model`: the formulation that is fitted.
    - `state0`: a state in which the independent coordinates of closed loops are chosen; the
      reference state if left out. Choose one that is not singular.
    - `positions`, `rates`: what is fitted of the start; the other part stays as it was given.
    - `per_run`: whether every run has its own.
    - `name`: for reports.
    - `prior`: what is known of the changes besides the data, such as `GaussianPrior(0.0, std)` of a
      start that was set up with these standard deviations.

    **Returns:** a `Parameter`; the fitted states are in `Fit.states`.
    **Raises:** `TypeError` for what is no formulation; `ValueError` for nothing to fit.
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
    chosen = [names[i] for i in independent]
    labels, units = [], []
    for used, part in ((positions, 0), (rates, 1)):
        if used:
            labels += [f"{name}: change of {entry[part]}" for entry in chosen]
            units += [entry[2] + ("/s" if part else "") for entry in chosen]
    return Parameter(
        name,
        StartOf(independent, len(names), positions, rates),
        per_run=per_run,
        unit=units,
        labels=labels,
        size=1.0,
        prior=prior,
    )


def _names(model: AbstractFormulation) -> list[tuple[str, str, str]]:
    """Position, rate and unit of the position of every minimal velocity."""
    system = model.system
    if isinstance(system, FixedPointBody):
        return [(f"phi{k}", f"omega{k}", "rad") for k in (1, 2, 3)]
    out = []
    for body, index in zip(system.bodies, system.topology.joints, strict=True):
        if index is None:
            of = f" of {body.name}"
            out += [(f"x{k}{of}", f"v{k}{of}", "m") for k in (1, 2, 3)]
            out += [(f"phi{k}{of}", f"omega{k}{of}", "rad") for k in (1, 2, 3)]
        else:
            out += _joint_names(system.joints[index])
    return out


def _joint_names(joint):
    lengths, angles = joint.num_translations, joint.num_rates - joint.num_translations
    out = []
    for count, what, unit in ((lengths, "length", "m"), (angles, "angle", "rad")):
        for k in range(count):
            number = f" {k + 1}" if count > 1 else ""
            of = f"{what}{number} of {joint.name}"
            out.append((of, f"rate of {of}", unit))
    return out
