"""An HTML page of an ensemble: failures, outputs against parameters, and distributions."""

import os
import pathlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..io.document import Bullets, Heading, Paragraph, Table
from .html import embed_figure, write_page
from .style import PALETTE, new_figure, panel_grid, style

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

# Maximum numbers of components of an array, of rows and columns of the scatter plots, of points in
# each, of bins, and of rows of the table of longest runs.
_COMPONENTS, _PANELS, _POINTS, _BINS, _LONGEST = 6, 6, 3000, 60, 10
_QUANTILES = (0.05, 0.5, 0.95)
_STATUS = ("result", "num_steps", "reached")


class Component(NamedTuple):
    """A component of a parameter or an output: its name, its unit, and its values by member."""

    name: str
    unit: str
    values: np.ndarray

    @property
    def label(self) -> str:
        """Name and unit."""
        return f"{self.name} ({self.unit})" if self.unit else self.name


def write_ensemble_page(
    dataset: "xarray.Dataset",
    path: str | os.PathLike[str],
    *,
    title: str = "Ensemble",
    files: Iterable[str | os.PathLike[str]] = (),
    force: bool = False,
) -> pathlib.Path:
    """Write an ensemble as a self-contained HTML page.

    The page shows the outputs against the parameters, the distributions of both, and the longest
    runs; it can be printed, and states its date, its files with their hashes, and versions.

    **Arguments:** `dataset`, from `Ensemble.to_xarray`, or a store opened with
    `rigidjax.ensembles.Store`; `path`, of the page; `title`, its heading; `files`, of which path
    and SHA-256 are stated; `force`, replace an existing file.
    **Returns:** the path.
    **Errors:** `FileExistsError` for an existing file without `force`; `OSError` for a path that
    cannot be written; `ModuleNotFoundError` without matplotlib.
    """
    with style():
        return write_page(path, title, _parts(dataset), files, force=force)


def _parts(dataset: Any) -> list[Any]:
    from ..ensembles.traced_run import result_names

    result = dataset["result"].to_numpy()
    result = result_names(result) if result.dtype.kind in "iu" else result.astype(str)
    succeeded = result == "successful"
    names, counts = np.unique(result[~succeeded], return_counts=True)
    causes = [f"{count} {name}" for name, count in zip(names, counts, strict=True)]
    count = f"{len(result)} members, {len(result) - succeeded.sum()} of them failed."
    parts: list[Any] = [Paragraph(count), Bullets(causes)]
    parameters = _components(dataset.coords, succeeded)
    outputs = _components(dataset.data_vars, succeeded)
    if parameters and outputs:
        figure = _scatter(parameters[:_PANELS], outputs[:_PANELS])
        picture = embed_figure(figure, "Scatter plots of outputs against parameters")
        note = Paragraph("Above each panel: the rank correlation (Spearman).", "note")
        parts += [Heading("Outputs against parameters"), picture, note]
    for heading, components in (("Outputs", outputs), ("Parameters", parameters)):
        if components:
            figure = embed_figure(_histograms(components), f"Histograms: {heading.lower()}")
            parts += [Heading(heading), _table(components), figure]
    steps = Component("steps", "", dataset["num_steps"].to_numpy())
    parts += [Heading("Steps"), embed_figure(_histograms([steps]), "Steps of members")]
    reached, longest = dataset["reached"].to_numpy(), np.argsort(-steps.values, kind="stable")
    rows = [(k, steps.values[k], f"{reached[k]:.6g}", result[k]) for k in longest[:_LONGEST]]
    head = ("member", "steps", "time reached (s)", "result")
    return [*parts, Heading("The longest runs"), Table(head, rows)]


def _components(variables: Any, succeeded: np.ndarray) -> list[Component]:
    """Return the first components of numeric variables, NaN for failed members."""
    components = []
    for name, variable in variables.items():
        if variable.dtype.kind not in "fiu" or variable.dims[:1] != ("member",) or name in _STATUS:
            continue
        unit = variable.attrs.get("units", "")
        values = np.where(succeeded.reshape(-1, *[1] * (variable.ndim - 1)), variable, np.nan)
        indices = list(np.ndindex(values.shape[1:]))[:_COMPONENTS]
        for index in indices:
            # Dimensions without a name of their own are `name_0`, `name_1`, ...
            at = ", ".join(
                str(k) if d.startswith(f"{name}_") else f"{d} {k}"
                for d, k in zip(variable.dims[1:], index, strict=True)
            )
            label = f"{name}[{at}]" if at else str(name)
            components.append(Component(label, "" if unit == "1" else unit, values[:, *index]))
    return components


def _table(components: Sequence[Component]) -> Table:
    rows = []
    for component in components:
        v = component.values[np.isfinite(component.values)]
        cells = ["-"] * (2 + len(_QUANTILES))
        if v.size:
            cells = [f"{x:.5g}" for x in (v.mean(), v.std(), *np.quantile(v, _QUANTILES))]
        rows.append((component.name, component.unit, *cells))
    head = ("name", "unit", "mean", "std", *(f"{100 * q:g} %" for q in _QUANTILES))
    return Table(head, rows)


def _histograms(components: Sequence[Component]) -> "Figure":
    figure, grid = panel_grid(len(components), 3, 3.2, 2.1)
    for ax, component in zip(grid, components, strict=True):
        ax.hist(component.values[np.isfinite(component.values)], bins=_BINS, color=PALETTE[0])
        ax.set_xlabel(component.label)
    grid[0].set_ylabel("members")
    return figure


def _scatter(parameters: Sequence[Component], outputs: Sequence[Component]) -> "Figure":
    """Plot every output against every parameter, with their rank correlations."""
    rows, columns = len(outputs), len(parameters)
    figure = new_figure(1.0 + 2.0 * max(columns, 2), 0.4 + 1.7 * rows)
    grid = figure.subplots(rows, columns, squeeze=False, sharex="col", sharey="row")
    for i, output in enumerate(outputs):
        for j, parameter in enumerate(parameters):
            finite = np.isfinite(output.values) & np.isfinite(parameter.values)
            x, y = parameter.values[finite], output.values[finite]
            every, ax = max(1, -(-len(x) // _POINTS)), grid[i, j]
            ax.plot(x[::every], y[::every], ".", ms=2.5, mew=0, alpha=0.6, color=PALETTE[0])
            ax.set_title(_rank_correlation(x, y), fontsize=8, fontweight="normal")
            if i == rows - 1:
                ax.set_xlabel(parameter.label)
            if j == 0:
                ax.set_ylabel(output.label)
    return figure


def _rank_correlation(x: np.ndarray, y: np.ndarray) -> str:
    """Return the rank correlation of Spearman as text; empty where it is not defined."""
    # Imported here because it takes long.
    from scipy import stats

    if len(x) < 3 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return ""
    return f"{stats.spearmanr(x, y)[0]:+.2f}"
