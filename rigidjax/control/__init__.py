"""Control: what controllers see of a system, and hybrid runs.

Start with `transition.py`; contacts, locks, friction and impacts are its users.
May import `sensors`, `formulations` and what is below them.
"""

import typing as _typing

from ..deferred import deferred_names as _deferred_names

if _typing.TYPE_CHECKING:
    from ..formulations.view import SystemView as SystemView
    from .contacts import JointStop as JointStop, PlaneContact as PlaneContact
    from .restitution import Restitution as Restitution
    from .sticking import Lock as Lock, Release as Release
    from .transition import Transition as Transition, TransitionRecord as TransitionRecord

__getattr__, __dir__ = _deferred_names(
    __name__,
    {
        "SystemView": "transition",
        **dict.fromkeys(("JointStop", "PlaneContact"), "contacts"),
        **dict.fromkeys(("Lock", "Release"), "sticking"),
        "Restitution": "restitution",
        **dict.fromkeys(("Transition", "TransitionRecord"), "transition"),
    },
)
