"""Fitting parameters to measurements: estimates, their uncertainty, what data cannot tell."""

from .fit import Fit as Fit, IdentificationError as IdentificationError
from .identifiability import Combination as Combination, Identifiability as Identifiability
from .identify import identify as identify
from .measurements import Measurements as Measurements
from .parameters import Experiment as Experiment, Parameter as Parameter
from .sensitivity import Sensitivity as Sensitivity, sensitivity as sensitivity
from .sensors import (
    AbstractSensor as AbstractSensor,
    Accelerometer as Accelerometer,
    Attitude as Attitude,
    Gyroscope as Gyroscope,
    JointCoordinate as JointCoordinate,
    JointRate as JointRate,
    JointTorque as JointTorque,
    Position as Position,
    ReactionForce as ReactionForce,
    ReactionMoment as ReactionMoment,
)
from .start_state import start_state as start_state
from .transforms import (
    AbstractTransform as AbstractTransform,
    Bounded as Bounded,
    Free as Free,
    InertiaTensor as InertiaTensor,
    Orientation as Orientation,
    Positive as Positive,
    PrincipalInertia as PrincipalInertia,
)
