"""Control: what controllers see of a system, and hybrid runs.

Start with `transition.py`; contacts, locks, friction and impacts are its users.
May import `sensors`, `formulations` and lower layers.
"""

import typing as _typing

from ..deferred import deferred_names as _deferred_names

if _typing.TYPE_CHECKING:
    from ..formulations.view import SystemView as SystemView
    from .contacts import JointStop as JointStop, PlaneContact as PlaneContact
    from .held_joints import Lock as Lock, Release as Release
    from .restitution import Restitution as Restitution
    from .transition import Transition as Transition, TransitionRecord as TransitionRecord

__getattr__, __dir__ = _deferred_names(
    __name__,
    {
        "SystemView": "transition",
        **dict.fromkeys(("JointStop", "PlaneContact"), "contacts"),
        **dict.fromkeys(("Lock", "Release"), "held_joints"),
        "Restitution": "restitution",
        **dict.fromkeys(("Transition", "TransitionRecord"), "transition"),
    },
)
