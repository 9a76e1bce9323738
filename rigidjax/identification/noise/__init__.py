"""Models of dependent noise, and their estimation together with a fit.

Start with `models.py`.
May import no other folder of `identification`.
"""

from .models import (
    AbstractNoise as AbstractNoise,
    AutoRegressive as AutoRegressive,
    GaussianProcess as GaussianProcess,
    RandomWalk as RandomWalk,
)
