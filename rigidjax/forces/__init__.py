"""Applied forces: laws on poses and twists.

Start with `base.py` and `spring.py`, an example; a new force is one file.
May import `joints` and lower layers.
"""

from .actuator import AbstractActuator as AbstractActuator
from .base import (
    AbstractForce as AbstractForce,
    Bodies as Bodies,
    Joints as Joints,
    Kinematics as Kinematics,
    Loads as Loads,
    body_index as body_index,
)
from .bushing import Bushing as Bushing
from .cable import Cable as Cable
from .dc_motor import DCMotor as DCMotor
from .drag import Drag as Drag
from .ends import ends_at as ends_at
from .fixed_tendon import FixedTendon as FixedTendon
from .gravity import Gravity as Gravity
from .joint_force import AbstractJointForce as AbstractJointForce
from .lagged_motor import LaggedMotor as LaggedMotor
from .motor import Motor as Motor
from .pid_controller import PIController as PIController, PIDController as PIDController
from .point_force import PointForce as PointForce
from .position_servo import PositionServo as PositionServo
from .potential import AttitudePotential as AttitudePotential, Potential as Potential
from .rotor import Rotor as Rotor
from .spring import Spring as Spring
from .torque import Torque as Torque
from .torsion_spring import TorsionSpring as TorsionSpring
