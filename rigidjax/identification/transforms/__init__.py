"""Coordinates in which parameters are fitted: every real vector is an admissible parameter."""

from .base import AbstractTransform as AbstractTransform
from .elementwise import Bounded as Bounded, Free as Free, Positive as Positive
from .inertia_tensor import InertiaTensor as InertiaTensor
from .orientation import Orientation as Orientation
from .principal_inertia import PrincipalInertia as PrincipalInertia
