"""Control: what controllers see of a system, and hybrid runs."""

from ..formulations.view import SystemView as SystemView
