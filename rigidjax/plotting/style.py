"""Colours, fonts and files of all figures."""

import contextlib
import os
import pathlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ..extras import import_optional
from ..io import replacing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

# Okabe and Ito's palette, which colour-blind readers can distinguish; AXES are body axes 1 to 3.
AXES = ("#D55E00", "#009E73", "#0072B2")
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
GREY = "#6B6B6B"

SETTINGS: dict[Any, Any] = {
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelcolor": "#333333",
    "axes.edgecolor": "#999999",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#E6E6E6",
    "grid.linewidth": 0.7,
    "axes.axisbelow": True,
    "xtick.color": "#555555",
    "ytick.color": "#555555",
    "lines.linewidth": 1.3,
    "legend.frameon": False,
    "legend.fontsize": 8.5,
    "savefig.dpi": 160,
    "axes.formatter.useoffset": False,
}


@contextlib.contextmanager
def style() -> Iterator[None]:
    """Open a context with matplotlib's settings for the figures of this package.

    `rj.plotting.SETTINGS` are these settings, `rj.plotting.PALETTE` the colours of lines.

    **Errors:** `ModuleNotFoundError` without matplotlib.
    """
    matplotlib = import_optional("matplotlib", "Figures")
    with matplotlib.rc_context(SETTINGS):
        yield


def new_figure(width: float, height: float, title: str = "") -> "Figure":
    """Return an empty figure of a size in inches with a title, not attached to a window."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    figure = Figure(figsize=(width, height), layout=ConstrainedLayoutEngine(wspace=0.05))
    if title:
        figure.suptitle(title, fontsize=12, x=0.01, ha="left")
    return figure


def panel_grid(
    count: int, columns: int, width: float, height: float
) -> "tuple[Figure, Sequence[Axes]]":
    """Return a figure and the axes of its panels, of a size in inches, in rows of `columns`."""
    columns = min(count, columns)
    rows = -(-count // columns)
    figure = new_figure(width * max(columns, 2), height * rows)
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for ax in axes[count:]:
        ax.set_visible(False)
    return figure, list(axes[:count])


def run_panels(
    count: int, title: str = "", height: float = 3.0
) -> "tuple[Figure, Sequence[SubFigure]]":
    """Return a figure and its panels of a height in inches, one for each run, three in a row."""
    columns = min(3, count)
    rows = -(-count // columns)
    figure = new_figure(1.0 + 3.6 * max(columns, 2), 0.6 + height * rows, title)
    parts = figure.subfigures(rows, columns, squeeze=False, wspace=0.02, hspace=0.04)
    return figure, list(parts.ravel())


def figure_legend(figure: "Figure", axes: "Sequence[Axes]", **options: Any) -> None:
    """Draw one legend of all lines in some of the axes, below the panels."""
    entries = [ax.get_legend_handles_labels() for ax in axes]
    lines: list[Any] = [line for pair in entries for line in pair[0]]
    labels: list[Any] = [label for pair in entries for label in pair[1]]
    figure.legend(lines, labels, loc="outside lower center", ncols=len(labels), **options)


def save_figure(
    figure: "Figure", path: str | os.PathLike[str], force: bool = False
) -> pathlib.Path:
    """Write a figure, completely or not at all, in the format of the suffix.

    **Arguments:** `figure`, to write; `path`, such as `motion.png` or `motion.pdf`; `force`,
    replace an existing file.
    **Returns:** the path.
    **Errors:** `FileExistsError` for an existing file without `force`; `OSError` for a path that
    cannot be written; `ValueError` for a format that matplotlib does not write.
    """
    target = pathlib.Path(path)
    with style(), replacing(target, force) as temporary:
        # No date in vector formats, so that equal figures give equal files.
        metadata: Any = {"CreationDate": None} if target.suffix == ".pdf" else None
        figure.savefig(temporary, format=figure_format(target), metadata=metadata)
    return target


def figure_format(path: str | os.PathLike[str]) -> str:
    """Return the format of a figure from the suffix of its path, `png` without a suffix.

    **Errors:** `ValueError` for a format that matplotlib does not write.
    """
    from matplotlib.backend_bases import FigureCanvasBase

    suffix = pathlib.Path(path).suffix.lower().removeprefix(".") or "png"
    formats = FigureCanvasBase.get_supported_filetypes()
    if suffix not in formats:
        raise ValueError(
            f"Figures cannot be written as .{suffix}; take one of {', '.join(sorted(formats))}."
        )
    return suffix
