"""What all figures share: colours, fonts, and how they are written."""

import contextlib
import os
import pathlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from ..io import replacing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

# Okabe and Ito's palette, distinct for colour-blind readers; body axes 1, 2, 3 are the first three.
AXES = ("#D55E00", "#009E73", "#0072B2")
PALETTE = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
GREY = "#6B6B6B"

_SETTINGS: dict[Any, Any] = {
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
    """Settings of matplotlib for the figures of this package, undone afterwards.

    **Raises:** `ModuleNotFoundError` without matplotlib.
    """
    try:
        import matplotlib
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            'Figures need matplotlib: pip install "rigidjax[plot]".', name="matplotlib"
        ) from error
    with matplotlib.rc_context(_SETTINGS):
        yield


def new_figure(width: float, height: float, title: str = "") -> "Figure":
    """A figure of a size in inches, empty but for its title, tied to no window."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    figure = Figure(figsize=(width, height), layout=ConstrainedLayoutEngine(wspace=0.05))
    if title:
        figure.suptitle(title, fontsize=12, x=0.01, ha="left")
    return figure


def run_panels(count: int, title: str = "") -> "tuple[Figure, Sequence[SubFigure]]":
    """A figure with a panel for each of some runs, three in a row."""
    columns = min(3, count)
    rows = -(-count // columns)
    figure = new_figure(1.0 + 3.6 * max(columns, 2), 0.6 + 3.0 * rows, title)
    parts = figure.subfigures(rows, columns, squeeze=False, wspace=0.02, hspace=0.04)
    return figure, list(parts.ravel())


def figure_legend(figure: "Figure", axes: "Sequence[Axes]", **options: Any) -> None:
    """One legend for all panels, of what is drawn in some, below them: titles are above."""
    found = [ax.get_legend_handles_labels() for ax in axes]
    lines: list[Any] = [line for pair in found for line in pair[0]]
    labels: list[Any] = [label for pair in found for label in pair[1]]
    figure.legend(lines, labels, loc="outside lower center", ncols=len(labels), **options)


def save_figure(
    figure: "Figure", path: str | os.PathLike[str], force: bool = False
) -> pathlib.Path:
    """Write a figure, whole or not at all; the ending of the name chooses the format.

    **Arguments:** `figure`; `path`, such as `motion.png` or `motion.pdf`; `force`, replace an
    existing file.
    **Raises:** `FileExistsError` unless `force`; `OSError` for a path that cannot be written;
    `ValueError` for a format that matplotlib does not write.
    """
    target = pathlib.Path(path)
    with style(), replacing(target, force) as temporary:
        # No date in vector formats, so that the same figure is the same file.
        metadata: Any = {"CreationDate": None} if target.suffix == ".pdf" else None
        figure.savefig(temporary, format=figure_format(target), metadata=metadata)
    return target


def figure_format(path: str | os.PathLike[str]) -> str:
    """The format of a figure by the ending of its name, `png` without one.

    **Raises:** `ValueError` for an ending that matplotlib does not write.
    """
    from matplotlib.backend_bases import FigureCanvasBase

    ending = pathlib.Path(path).suffix.lower().removeprefix(".") or "png"
    known = FigureCanvasBase.get_supported_filetypes()
    if ending not in known:
        raise ValueError(
            f"Figures cannot be written as .{ending}; take one of {', '.join(sorted(known))}."
        )
    return ending
