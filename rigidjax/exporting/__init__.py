"""Export of models as Functional Mock-up Units and C libraries.

Start with `export.py`; the C sources are in `c/`.
May import `models`, `simulate` and lower layers.
"""

from .binaries import PLATFORMS as PLATFORMS
from .export import export as export
