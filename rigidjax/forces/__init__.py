"""Applied forces: laws on poses and twists."""

from .base import AbstractForce as AbstractForce, Kinematics as Kinematics
from .gravity import Gravity as Gravity
from .point_force import PointForce as PointForce
from .potential import Potential as Potential
from .torque import Torque as Torque
