"""Sensors, one file each: the measured quantity and its prediction from the unknowns.

Start with `base.py`.
May import `formulations` and lower layers.
"""

from .accelerometer import Accelerometer as Accelerometer
from .attitude import Attitude as Attitude
from .base import (
    AbstractReading as AbstractReading,
    AbstractSensor as AbstractSensor,
    body_row as body_row,
    improve_states as improve_states,
    unwrap_measured_angles as unwrap_measured_angles,
)
from .delay import Delayed as Delayed
from .gyroscope import Gyroscope as Gyroscope
from .joint_coordinate import JointCoordinate as JointCoordinate, JointRate as JointRate
from .joint_torque import JointTorque as JointTorque
from .position import Position as Position
from .reaction import ReactionForce as ReactionForce, ReactionMoment as ReactionMoment
