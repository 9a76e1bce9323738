"""Trajectories as labelled arrays with units, in memory and on disk.

Start with `dataset.py`.
May import `simulate` and what is below it.
"""

from .dataset import states_of as states_of, to_dataset as to_dataset
from .files import check_target as check_target, replacing as replacing, together as together
from .fit_dataset import fit_to_dataset as fit_to_dataset
from .netcdf import load as load, save as save
