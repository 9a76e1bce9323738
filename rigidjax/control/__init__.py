"""Control: inputs of a model, what controllers see of it, and hybrid runs."""

from .view import SystemView as SystemView
