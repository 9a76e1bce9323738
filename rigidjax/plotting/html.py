"""Self-contained HTML pages of documents with figures."""

import base64
import io
import os
import pathlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from ..extras import import_optional
from ..identification.result.report import origin_rows
from ..io.document import Block, Heading, Table
from ..io.files import write_text
from .film import plot_filmstrip
from .style import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..viewer import View


class Image(NamedTuple):
    """An embedded figure: its alternative text, and its PNG in base64."""

    text: str
    data: str


class EmbeddedView(NamedTuple):
    """The viewer of a motion, in HTML, for the screen, and pictures of it for paper."""

    viewer: str
    pictures: Image


class Listing(NamedTuple):
    """Text with its line ends, such as a file."""

    text: str


def write_page(
    path: str | os.PathLike[str],
    title: str,
    blocks: Iterable[Block | Image | EmbeddedView | Listing],
    files: Iterable[str | os.PathLike[str]] = (),
    origin: Sequence[tuple[str, str]] = (),
    force: bool = False,
) -> pathlib.Path:
    """Write a page: title, date and version, the blocks, and the origin of the page.

    **Arguments:** `files` that the page was made from, whose SHA-256 is stated; `origin`, further
    names and values; `force`, replace an existing file.
    """
    jinja2 = import_optional("jinja2", "HTML pages")
    loader = jinja2.FileSystemLoader(pathlib.Path(__file__).parent)
    options = {"autoescape": True, "trim_blocks": True, "lstrip_blocks": True}
    template = jinja2.Environment(loader=loader, **options).get_template("page.html")
    paths = list(map(pathlib.Path, files))
    rows = origin_rows(origin, paths)
    date, version = rows[0][1], rows[-1][1].partition(",")[0]
    summary = ", ".join([date, version, *(file.name for file in paths)])
    parts = [*blocks, Heading("Origin"), Table(("item", "value"), rows, "texts")]
    named = [(type(part).__name__.lower(), part) for part in parts]
    page = template.render(title=title, summary=summary, blocks=named)
    return write_text(path, page, force)


def embed_figure(figure: "Figure", text: str) -> Image:
    """Return a figure with an alternative text for a page."""
    buffer = io.BytesIO()
    with style():
        figure.savefig(buffer, format="png", dpi=110)
    return Image(text, base64.b64encode(buffer.getvalue()).decode("ascii"))


def embed_motion(motion: "View", count: int = 5) -> EmbeddedView:
    """Return the viewer of a motion for the screen, and `count` pictures of it for paper."""
    pictures = embed_figure(plot_filmstrip(motion, count), "Pictures of the motion")
    return EmbeddedView(motion._repr_html_(), pictures)
