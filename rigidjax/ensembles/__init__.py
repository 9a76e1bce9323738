"""Ensembles: one function evaluated for many members, on all cores and devices, resumable.

Start with `ensemble.py`.
May import `simulate`, `io` and lower layers.
"""

from .designs import (
    grid as grid,
    latin_hypercube as latin_hypercube,
    normal as normal,
    sobol as sobol,
    uniform as uniform,
)
from .ensemble import ensemble as ensemble
from .executors import WorkerError as WorkerError
from .result import Ensemble as Ensemble
from .statistics import (
    AbstractStatistic as AbstractStatistic,
    Histogram as Histogram,
    Moments as Moments,
    Quantiles as Quantiles,
    mean as mean,
)
from .store import Store as Store, StoreError as StoreError
