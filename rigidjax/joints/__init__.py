"""Joints, one file per kind, and other constraints.

Start with `base.py` and `revolute.py`, an example; a new joint is one file.
May import `bodies` and lower layers.
"""

from .arguments import point_leaf as point_leaf
from .axes import frame_of_axis as frame_of_axis, unit_vector as unit_vector
from .base import AbstractJoint as AbstractJoint, RelativePose as RelativePose
from .constraint import (
    AbstractConstraint as AbstractConstraint,
    AbstractPositionConstraint as AbstractPositionConstraint,
    Configuration as Configuration,
    Constraint as Constraint,
    Coupling as Coupling,
    PolynomialCoupling as PolynomialCoupling,
)
from .cylindrical import Cylindrical as Cylindrical
from .distance import Distance as Distance
from .free import Free as Free
from .friction import Friction as Friction
from .planar import Planar as Planar
from .prismatic import Prismatic as Prismatic
from .revolute import Revolute as Revolute
from .screw import Screw as Screw
from .spherical import Spherical as Spherical
from .stop import Stop as Stop
from .universal import Universal as Universal
from .velocity_constraint import VelocityConstraint as VelocityConstraint
from .weld import Weld as Weld
