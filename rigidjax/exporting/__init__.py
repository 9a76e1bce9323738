"""Export of models as Functional Mock-up Units and C libraries."""

from .binaries import PLATFORMS as PLATFORMS
from .export import export as export
