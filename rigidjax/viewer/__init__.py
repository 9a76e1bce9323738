"""Self-contained HTML pages of motions, with bodies, joints, arrows and graphs.

Start with `page.py`.
May import `identification`, `simulate` and lower layers.
"""

from .fits import view_fit as view_fit
from .page import View as View, view as view
from .shapes import (
    Shape as Shape,
    box as box,
    cone as cone,
    cylinder as cylinder,
    ellipsoid as ellipsoid,
    sphere as sphere,
)
