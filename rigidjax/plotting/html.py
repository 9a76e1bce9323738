"""Parts of self-contained HTML pages."""

import base64
import html
import io
import os
import pathlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ..identification.provenance import current_date, file_hash, software_versions
from .film import plot_filmstrip
from .style import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from ..viewer import View

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; background: white; max-width: 62rem;
  margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.6rem; margin-bottom: 0.2rem; } h2 { font-size: 1.2rem; margin-top: 2.2rem; }
.table { overflow-x: auto; }
table { border-collapse: collapse; margin: 0.8rem 0; }
th, td { padding: 0.2rem 0.9rem 0.2rem 0; text-align: right; border-bottom: 1px solid #e6e6e6; }
th:first-child, td:first-child, .texts th, .texts td { text-align: left; }
.texts td { overflow-wrap: anywhere; min-width: 8rem; vertical-align: top; }
.numbers td { white-space: nowrap; }
figure { margin: 0.8rem 0; } img { max-width: 100%; height: auto; }
pre { background: #f6f6f6; padding: 0.8rem; overflow-x: auto; font-size: 0.85rem; }
.failed { background: #b00020; color: white; padding: 0.8rem 1rem; font-weight: bold; }
.warning { background: #fff1d6; padding: 0.5rem 1rem; font-weight: bold; }
.verdict { background: #f2f6fa; padding: 0.4rem 1rem; }
.note { color: #666; font-size: 0.9rem; overflow-wrap: anywhere; }
.print { display: none; }
@media print {
  @page { size: A4; margin: 15mm; }
  body { font-size: 10pt; line-height: 1.35; max-width: none; margin: 0; padding: 0;
    print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  h1, h2 { break-after: avoid; } h2 { margin-top: 1.2rem; }
  figure, tr, li, .warning, .verdict, .failed { break-inside: avoid; }
  figure { break-before: avoid; } img { max-height: 235mm; }
  .table { overflow: visible; } th, td { padding-right: 0.5rem; }
  .numbers td { white-space: normal; }
  pre { white-space: pre-wrap; overflow-wrap: anywhere; overflow: visible; font-size: 8pt; }
  .details { break-before: page; }
  .screen { display: none; } .print { display: block; }
}
"""


def html_page(
    title: str,
    parts: Iterable[str],
    files: Iterable[str | os.PathLike[str]] = (),
    origin: Sequence[tuple[str, str]] = (),
) -> str:
    """Return a page: title, date and version, the parts, and the origin of the page.

    **Arguments:** `files` that the page was made from, whose SHA-256 is stated; `origin`, further
    names and values.
    """
    versions, date, files = software_versions(), current_date(), list(map(pathlib.Path, files))
    short = [date, f"rigidjax {versions['rigidjax']}", *(path.name for path in files)]
    rows = [("Date", date), *((str(path), _file_text(path)) for path in files), *origin]
    rows.append(("Versions", ", ".join(f"{name} {value}" for name, value in versions.items())))
    body = [f"<h1>{html_text(title)}</h1>", html_note(", ".join(short)), *parts]
    body += ["<h2>Origin</h2>", html_table(("item", "value"), rows, "texts")]
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{html_text(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        + "\n".join(body)
        + "\n</body>\n</html>\n"
    )


def _file_text(path: pathlib.Path) -> str:
    return f"SHA-256 {file_hash(path)}" if path.is_file() else "a folder"


def html_table(head: Sequence[Any], rows: Iterable[Sequence[Any]], kind: str = "numbers") -> str:
    """Return a table of values; its columns are on the left for `kind="texts"`."""

    def row(cells, tag):
        return "<tr>" + "".join(f"<{tag}>{html_text(c)}</{tag}>" for c in cells) + "</tr>"

    lines = row(head, "th") + "".join(row(r, "td") for r in rows)
    return f'<div class="table"><table class="{kind}">{lines}</table></div>'


def html_list(items: Sequence[str]) -> list[str]:
    """Return the lines of a bulleted list, none without items."""
    if not items:
        return []
    return ["<ul>", *(f"<li>{html_text(item)}</li>" for item in items), "</ul>"]


def html_note(text: str) -> str:
    """Return a paragraph in grey."""
    return f'<p class="note">{html_text(text)}</p>'


def html_figure(figure: "Figure", text: str) -> str:
    """Return an embedded figure with an alternative text."""
    buffer = io.BytesIO()
    with style():
        figure.savefig(buffer, format="png", dpi=110)
    data = base64.b64encode(buffer.getvalue()).decode("ascii")
    image = f'<img alt="{html_text(text)}" src="data:image/png;base64,{data}">'
    return f"<figure>{image}</figure>"


def html_motion(motion: "View", count: int = 5) -> str:
    """Return the viewer of a motion for the screen, and `count` pictures of it for paper."""
    pictures = html_figure(plot_filmstrip(motion, count), "Pictures of the motion")
    screen = f'<div class="screen">{motion._repr_html_()}</div>'
    return f'{screen}\n<div class="print">{pictures}</div>'


def html_text(text: Any) -> str:
    """Return a text with the special characters of HTML escaped."""
    return html.escape(str(text))
