"""Names of bodies and of unknowns, for files and tables."""

from ..formulations import (
    AbstractAbsolute,
    AbstractFormulation,
    AbstractNullSpace,
    Hamiltonian,
    Relative,
)
from ..formulations.binding import state_names
from ..initial import JointStart
from ..mechanics import has_joints
from ..mechanics.stacked.system import PreparedSystem


def body_names(model: AbstractFormulation) -> list[str]:
    """Return the names of the bodies, `"body"` for a `FixedPointBody`, which has no name."""
    return [body.name for body in model.multibody.bodies]


def unknown_names(model: AbstractFormulation) -> list[str]:
    """Return unique names of the unknowns, in their order.

    The order is:

    - positions `x1` to `x3` and rotation coordinates `a1` ... of every body;
    - velocities `v1` to `v3` and rotational velocities `w1` ... of every body. In null-space
      coordinates a body that is attached to a joint has the rates of that joint instead, such as
      `hinge.rate1`; Hamilton's equations have the momenta `P1` to `P3` and `p1` to `p4`;
    - unwrapped angles of joints, such as `hinge.angle`;
    - states of actuators, such as `hinge.current`, and of sampled controllers, `u.held1` ... and
      `u.state1` ...;
    - multipliers of a descriptor form, `lambda1` ..., of bodies (internal constraints) and joints,
      and the multipliers of its stabilisation, `mu1` ...

    If there are several bodies, the name of the body precedes the names of its unknowns.

    **Returns:** `model.num_unknowns` names.
    """
    if isinstance(model, JointStart):
        return unknown_names(model.model)
    angles = model.unwrapped_joints if has_joints(model.system) else ()
    return [
        *_positions(model),
        *_velocities(model),
        *(f"{model.multibody.joints[j].name}.angle" for j in angles),
        *state_names(model.multibody),
        *_multipliers(model),
    ]


def _prefixes(model: AbstractFormulation) -> list[str]:
    names = body_names(model)
    return [f"{name}." for name in names] if len(names) > 1 else [""]


def _positions(model: AbstractFormulation) -> list[str]:
    if isinstance(model, Relative) and model.layout.translates:
        return list(model.coordinate_labels)
    layout = model.layout
    names = _with_numbers("x", 3) if layout.translates else []
    names += _with_numbers("a", layout.num_coordinates)
    return [prefix + name for prefix in _prefixes(model) for name in names]


def _velocities(model: AbstractFormulation) -> list[str]:
    layout, prefixes, system = model.layout, _prefixes(model), model.multibody
    momenta = isinstance(model, Hamiltonian)
    free = _with_numbers("P" if momenta else "v", 3) if layout.translates else []
    free += _with_numbers("p" if momenta else "w", getattr(layout, "num_rates", 3))
    names = []
    for body, prefix in enumerate(prefixes):
        joint = None
        if isinstance(model, AbstractNullSpace):
            joint = system.topology.joints[body]
            if joint is not None:
                name = system.joints[joint].name
                names += _with_numbers(f"{name}.rate", system.rates_of_bodies[body])
        if joint is None:
            names += [prefix + name for name in free]
    return names


def _multipliers(model: AbstractFormulation) -> list[str]:
    if model.num_algebraic == 0:
        return []
    names = []
    is_stabilized = isinstance(model, AbstractAbsolute) and model.stabilized
    for kind in ("lambda", "mu") if is_stabilized else ("lambda",):
        for prefix in _prefixes(model):
            names += _with_numbers(prefix + kind, model.rotation.num_constraints)
        system = model.system
        if has_joints(system):
            joints = system.joints
            for group in PreparedSystem(system).groups:
                for j in group.indices:
                    names += _with_numbers(f"{joints[j].name}.{kind}", joints[j].num_constraints)
            for other in system.constraints:
                names += _with_numbers(f"{other.name}.{kind}", other.num_constraints)
    return names


def _with_numbers(name: str, count: int) -> list[str]:
    return [f"{name}{i + 1}" for i in range(count)]
