"""States that the joints allow, and coordinates around them.

Start with `consistent.py`.
May import `formulations` and lower layers.
"""

from .consistent import consistent_state as consistent_state
from .joint_start import JointStart as JointStart
from .jointed_state import jointed_state as jointed_state
