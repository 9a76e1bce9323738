"""An HTML page of an ensemble: distributions, failures, and the longest runs."""

import os
import pathlib
from typing import TYPE_CHECKING, Any

import numpy as np

from ..io.files import write_text
from .html import html_figure, html_list, html_note, html_page, html_table
from .style import new_figure, style

if TYPE_CHECKING:
    import xarray
    from matplotlib.figure import Figure

# Maximum number of histograms per output, number of bins, and rows of the table of longest runs.
_COMPONENTS, _BINS, _LONGEST = 6, 60, 10
_QUANTILES = (0.05, 0.5, 0.95)


def write_ensemble_page(
    dataset: "xarray.Dataset",
    path: str | os.PathLike[str],
    *,
    title: str = "Ensemble",
    force: bool = False,
) -> pathlib.Path:
    """Write an ensemble as a self-contained HTML page.

    **Arguments:** `dataset`, from `Ensemble.to_xarray`, or a store opened with `xarray.open_zarr`;
    `path`; `title`; `force`, replace an existing file.
    **Returns:** the path.
    **Errors:** `FileExistsError` for an existing file without `force`; `OSError` for a path that
    cannot be written; `ModuleNotFoundError` without matplotlib.
    """
    with style():
        return write_text(path, html_page(title, _parts(dataset)), force)


def _parts(dataset: Any) -> list[str]:
    result = _names(dataset)
    succeeded = result == "successful"
    names, counts = np.unique(result[~succeeded], return_counts=True)
    causes = [f"{count} {name}" for name, count in zip(names, counts, strict=True)]
    parts = [f"<p>{len(result)} members, {len(result) - succeeded.sum()} of them failed.</p>"]
    parts += html_list(causes)
    steps = dataset["num_steps"].to_numpy()
    for name, variable in dataset.variables.items():
        numeric = variable.dtype.kind in "fiu" and variable.dims[:1] == ("member",)
        if numeric and name not in ("result", "num_steps", "reached"):
            parts += _distribution(str(name), variable, succeeded)
    longest = np.argsort(-steps, kind="stable")[:_LONGEST]
    parts += ["<h2>Steps</h2>", html_figure(_histogram(steps[:, None], ""), "Steps of members")]
    reached = dataset["reached"].to_numpy()
    rows = [(k, steps[k], f"{reached[k]:.6g}", result[k]) for k in longest]
    head = ("member", "steps", "time reached in s", "result")
    return [*parts, "<h2>The longest runs</h2>", html_table(head, rows)]


def _names(dataset: Any) -> np.ndarray:
    from ..ensembles.traced_run import result_names

    result = dataset["result"].to_numpy()
    return result_names(result) if result.dtype.kind in "iu" else result.astype(str)


def _distribution(name: str, variable: Any, succeeded: np.ndarray) -> list[str]:
    values = np.asarray(variable.values, float)[succeeded].reshape(int(succeeded.sum()), -1)
    values = values[np.isfinite(values).all(axis=1)]
    unit = variable.attrs.get("units", "")
    parts = [f"<h2>{name}{f' in {unit}' if unit not in ('', '1') else ''}</h2>"]
    if len(values) == 0:
        return [*parts, html_note("No member has finite values.")]
    first = values[:, :_COMPONENTS]
    rows = [
        (k, f"{v.mean():.6g}", f"{v.std():.3g}", *(f"{q:.6g}" for q in np.quantile(v, _QUANTILES)))
        for k, v in enumerate(first.T)
    ]
    head = ("component", "mean", "standard deviation", *(f"{q:g} quantile" for q in _QUANTILES))
    parts += [html_table(head, rows), html_figure(_histogram(first, unit), f"Histogram of {name}")]
    if values.shape[1] > _COMPONENTS:
        parts.append(html_note(f"The first {_COMPONENTS} of {values.shape[1]} components."))
    return parts


def _histogram(columns: np.ndarray, unit: str) -> "Figure":
    count = columns.shape[1]
    figure = new_figure(min(3.0 * count, 9.0), 2.3 * -(-count // 3))
    grid = figure.subplots(-(-count // 3), min(count, 3), squeeze=False).reshape(-1)
    for k, ax in enumerate(grid):
        ax.set_visible(k < count)
        if k < count:
            ax.hist(columns[:, k], bins=_BINS, color="C0")
            ax.set_xlabel(f"{k}{f' in {unit}' if unit else ''}" if count > 1 else unit)
    grid[0].set_ylabel("members")
    return figure
