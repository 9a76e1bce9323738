"""Names of bodies and of unknowns, for files and tables."""

from ..formulations import (
    AbstractAbsolute,
    AbstractFormulation,
    AbstractNullSpace,
    Hamiltonian,
    Relative,
)
from ..initial import JointStart
from ..mechanics import has_joints
from ..mechanics.stacked.system import PreparedSystem


def body_names(model: AbstractFormulation) -> list[str]:
    """Names of the bodies; `"body"` for a `FixedPointBody`, which has none."""
    return [body.name for body in model.multibody.bodies]


def unknown_names(model: AbstractFormulation) -> list[str]:
    """Names of the unknowns, in their order, each once.

    Positions `x1` to `x3` and rotation coordinates `a1` ... of every body; velocities `v1` to `v3`
    and rotational velocities `w1` ..., behind the name of the body if there are several. In
    null-space coordinates a body that hangs on a joint has the rates of that joint, such as
    `hinge.rate1`; Hamilton's equations have momenta, `P1` to `P3` and `p1` to `p4`. Then the angles
    of joints whose turns are counted, `hinge.angle`; the multipliers of a descriptor form,
    `lambda1` ... of bodies (internal constraints) and of joints; and those of its stabilisation,
    `mu1` ...

    **Returns:** `model.num_unknowns` names.
    """
    if isinstance(model, JointStart):
        return unknown_names(model.model)
    return [
        *_positions(model),
        *_velocities(model),
        *_angles(model),
        *_multipliers(model),
    ]


def _prefixes(model: AbstractFormulation) -> list[str]:
    names = body_names(model)
    return [f"{name}." for name in names] if len(names) > 1 else [""]


def _positions(model: AbstractFormulation) -> list[str]:
    if isinstance(model, Relative) and model.layout.translates:
        return list(model.coordinate_labels)
    layout = model.layout
    own = _numbered("x", 3) if layout.translates else []
    own += _numbered("a", layout.num_coordinates)
    return [prefix + name for prefix in _prefixes(model) for name in own]


def _velocities(model: AbstractFormulation) -> list[str]:
    layout, prefixes, system = model.layout, _prefixes(model), model.multibody
    momenta = isinstance(model, Hamiltonian)
    free = _numbered("P" if momenta else "v", 3) if layout.translates else []
    free += _numbered("p" if momenta else "w", getattr(layout, "num_rates", 3))
    names = []
    for body, prefix in enumerate(prefixes):
        joint = None
        if isinstance(model, AbstractNullSpace):
            joint = system.topology.joints[body]
            if joint is not None:
                name = system.joints[joint].name
                names += _numbered(f"{name}.rate", system.rates_of_bodies[body])
        if joint is None:
            names += [prefix + name for name in free]
    return names


def _angles(model: AbstractFormulation) -> list[str]:
    system = model.system
    if not has_joints(system):
        return []
    return [f"{system.joints[j].name}.angle" for j in model.followed]


def _multipliers(model: AbstractFormulation) -> list[str]:
    if model.num_algebraic == 0:
        return []
    names = []
    twice = isinstance(model, AbstractAbsolute) and model.stabilized
    for kind in ("lambda", "mu") if twice else ("lambda",):
        for prefix in _prefixes(model):
            names += _numbered(prefix + kind, model.rotation.num_constraints)
        system = model.system
        if has_joints(system):
            joints = system.joints
            for group in PreparedSystem(system).groups:
                for j in group.indices:
                    names += _numbered(f"{joints[j].name}.{kind}", joints[j].num_constraints)
            for other in system.constraints:
                names += _numbered(f"{other.name}.{kind}", other.num_constraints)
    return names


def _numbered(name: str, count: int) -> list[str]:
    return [f"{name}{i + 1}" for i in range(count)]
