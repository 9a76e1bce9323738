"""Models from files and back: URDF, SDF and MJCF.

Start with `load.py`.
May import `simulate` and lower layers.
"""

from .load import load as load
from .model import Actuator as Actuator, JointLimits as JointLimits, Model as Model, Names as Names
from .report import Report as Report
from .save import save as save
from .update import update as update
