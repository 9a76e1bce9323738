"""Figures of motions, comparisons and fits.

Figures need matplotlib: `pip install "rigidjax[plot]"`.

Start with `trajectory.py`.
May import `identification`, `ensembles` and lower layers.
"""

from .attitude import draw_attitude as draw_attitude
from .comparison import plot_comparison as plot_comparison
from .ensemble_page import write_ensemble_page as write_ensemble_page
from .film import plot_filmstrip as plot_filmstrip, save_animation as save_animation
from .fit_figure import (
    plot_correlations as plot_correlations,
    plot_fit as plot_fit,
    plot_intervals as plot_intervals,
)
from .fit_page import write_fit_page as write_fit_page
from .model_page import plot_topology as plot_topology, write_model_page as write_model_page
from .residuals import (
    plot_autocorrelation as plot_autocorrelation,
    plot_predictions as plot_predictions,
)
from .style import (
    PALETTE as PALETTE,
    SETTINGS as SETTINGS,
    save_figure as save_figure,
    style as style,
)
from .trajectory import (
    draw_drift as draw_drift,
    draw_energy as draw_energy,
    draw_rates as draw_rates,
    plot_motion as plot_motion,
)
