"""Closed-form motions.

Start with `free_body.py`.
May import `rotations`, `bodies` and lower layers.
"""

from .free_body import free_body as free_body
from .symmetric_top import TopMotion as TopMotion, symmetric_top as symmetric_top
