"""Coordinates of fitted parameters, in which every real vector is an admissible value.

Start with `base.py`.
May import no other folder of `identification`.
"""

from .base import AbstractTransform as AbstractTransform
from .elementwise import (
    Bounded as Bounded,
    Known as Known,
    Positive as Positive,
    Unconstrained as Unconstrained,
)
from .inertia_tensor import InertiaTensor as InertiaTensor
from .orientation import Orientation as Orientation
from .principal_inertia import PrincipalInertia as PrincipalInertia
