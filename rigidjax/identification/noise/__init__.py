"""Models of dependent noise, and their estimation together with a fit."""

from .models import (
    AbstractNoise as AbstractNoise,
    AutoRegressive as AutoRegressive,
    GaussianProcess as GaussianProcess,
    RandomWalk as RandomWalk,
)
