"""Trajectories and fits as labelled arrays with units, on disk and in reports.

Start with `names.py`; `document.py` writes reports, `files.py` files.
May import `formulations` and lower layers.
"""

import typing as _typing

from ..deferred import deferred_names as _deferred_names
from .files import check_target as check_target, replacing as replacing, together as together

if _typing.TYPE_CHECKING:
    from ..identification.result.dataset import fit_to_dataset as fit_to_dataset
    from ..simulate.dataset import (
        load as load,
        save as save,
        states_of as states_of,
        to_dataset as to_dataset,
    )

__getattr__, __dir__ = _deferred_names(
    __name__,
    {
        "fit_to_dataset": ".identification.result.dataset",
        "load": ".simulate.dataset",
        "save": ".simulate.dataset",
        "states_of": ".simulate.dataset",
        "to_dataset": ".simulate.dataset",
    },
)
