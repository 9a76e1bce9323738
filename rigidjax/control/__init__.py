"""Control: what controllers see of a system, and hybrid runs."""

from ..formulations.view import SystemView as SystemView
from .contacts import JointStop as JointStop, PlaneContact as PlaneContact
from .locks import Lock as Lock, Release as Release
from .restitution import Restitution as Restitution
from .transition import Transition as Transition, TransitionRecord as TransitionRecord
