"""Copies of modules with other fields, made without their constructors."""

import dataclasses
from typing import Any, TypeVar

import equinox as eqx

from .base import AbstractJoint

# Fields of joints that act on their coordinates, and do not affect poses and velocities.
FORCE_FIELDS = ("damping", "armature", "friction", "stiffness", "rest", "limits", "stop")

Module = TypeVar("Module", bound=eqx.Module)


def replace_fields(module: Module, **fields: Any) -> Module:
    """Return a copy of a module with other values of these fields, static ones too, unchecked."""
    old = {field.name: getattr(module, field.name) for field in dataclasses.fields(module)}
    return make_unchecked(type(module), **{**old, **fields})


def make_unchecked(kind: type[Module], **fields: Any) -> Module:
    """Return a module of a class with these fields, static ones too, without its checks."""
    module = object.__new__(kind)
    for name, value in fields.items():
        object.__setattr__(module, name, value)
    return module


def rename_joint(
    joint: AbstractJoint, name: str, parent: str = "", child: str = ""
) -> AbstractJoint:
    """Return a copy of a joint with another name, and between other bodies if they are given."""
    bodies = {"parent": parent, "child": child} if parent else {}
    return replace_fields(joint, name=name, **bodies)


def without_motion(joint: AbstractJoint) -> AbstractJoint:
    """Return the joint without its prescribed motion, whose rate is then free."""
    return replace_fields(joint, motion=None) if joint.is_driven else joint
