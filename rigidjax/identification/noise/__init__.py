"""Models of dependent noise, and their estimation together with a fit.

Start with `models.py`.
May import `identification/experiment`.
"""

from .models import (
    AbstractNoise as AbstractNoise,
    AutoRegressive as AutoRegressive,
    GaussianProcess as GaussianProcess,
    RandomWalk as RandomWalk,
)
