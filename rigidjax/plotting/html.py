"""Parts of self-contained HTML pages."""

import base64
import html
import importlib.metadata
import io
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from .._version import __version__
from .style import style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; color: #222; max-width: 62rem; margin: 2rem auto;
  padding: 0 1rem; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2.2rem; }
table { border-collapse: collapse; margin: 0.8rem 0; }
th, td { padding: 0.2rem 0.9rem 0.2rem 0; text-align: right; border-bottom: 1px solid #e6e6e6; }
th:first-child, td:first-child { text-align: left; }
img { max-width: 100%; height: auto; }
pre { background: #f6f6f6; padding: 0.8rem; overflow-x: auto; font-size: 0.85rem; }
.failed { background: #b00020; color: white; padding: 0.8rem 1rem; font-weight: bold; }
.warning { background: #fff1d6; padding: 0.5rem 1rem; font-weight: bold; }
.verdict { background: #f2f6fa; padding: 0.4rem 1rem; }
.note { color: #666; font-size: 0.9rem; }
"""


def html_page(title: str, parts: Iterable[str]) -> str:
    """Return a page of the title, the parts and the versions."""
    versions = html_note(f"rigidjax {__version__}, jax {importlib.metadata.version('jax')}.")
    body = "\n".join([f"<h1>{html_text(title)}</h1>", *parts, versions])
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f"<title>{html_text(title)}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n{body}\n"
        "</body>\n</html>\n"
    )


def html_table(head: Sequence[Any], rows: Iterable[Sequence[Any]]) -> str:
    """Return a table of texts and numbers."""

    def row(cells, tag):
        return "<tr>" + "".join(f"<{tag}>{html_text(c)}</{tag}>" for c in cells) + "</tr>"

    return "<table>" + row(head, "th") + "".join(row(r, "td") for r in rows) + "</table>"


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
    return f'<p><img alt="{html_text(text)}" src="data:image/png;base64,{data}"></p>'


def html_text(text: Any) -> str:
    """Return a text with the special characters of HTML escaped."""
    return html.escape(str(text))
