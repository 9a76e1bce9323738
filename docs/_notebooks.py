"""Notebooks as pages, with the results of `make notebooks` in `.cache/notebooks` where they
exist.
"""

import base64
import html
import json
import logging
import pathlib
import re

from mkdocs.structure.files import File

ROOT = pathlib.Path(__file__).resolve().parent.parent
EXECUTED = ROOT / ".cache" / "notebooks"
LOG = logging.getLogger("mkdocs.hooks.notebooks")
COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def on_config(config):
    """Add all notebooks to the menu."""
    tutorials = next(entry["Tutorials"] for entry in config["nav"] if "Tutorials" in entry)
    tutorials += [f"notebooks/{path.stem}.md" for path in sources()]
    return config


def on_files(files, config):
    """Add a page for each notebook, and files for its figures."""
    for path in sources():
        cells, is_executed = cells_of(path)
        if not is_executed:
            LOG.info("%s has no results: run `make notebooks` first", path.name)
        text, pictures = page(path.stem, cells, is_executed)
        files.append(File.generated(config, f"notebooks/{path.stem}.md", content=text))
        for name, content in pictures.items():
            files.append(File.generated(config, f"notebooks/{name}", content=content))
    return files


def sources():
    return sorted((ROOT / "notebooks").glob("*.ipynb"))


def cells_of(path):
    """Return the cells, executed if the results belong to equal cells."""
    cells = json.loads(path.read_text("utf-8"))["cells"]
    done = EXECUTED / path.name
    if done.exists():
        executed = json.loads(done.read_text("utf-8"))["cells"]
        if [joined(cell["source"]) for cell in executed] == [
            joined(cell["source"]) for cell in cells
        ]:
            return executed, True
    return cells, False


def page(name, cells, is_executed):
    """Return the page in Markdown, and its figures by file name."""
    parts, pictures = [], {}
    for cell in cells:
        source = joined(cell["source"]).strip()
        if cell["cell_type"] == "markdown":
            parts.append(relinked(source))
            continue
        parts.append(f"```python\n{source}\n```")
        for output in cell["outputs"]:
            parts += shown(output, name, pictures)
    where = f"This is `notebooks/{name}.ipynb` of the repository"
    parts.insert(
        1,
        f"{where}."
        if is_executed
        else f"{where}, here without its results: `make notebooks` makes them.",
    )
    return "\n\n".join(parts) + "\n", pictures


def shown(output, name, pictures):
    """Return the printed, returned and drawn output of a cell."""
    if output["output_type"] == "stream":
        return [printed(joined(output["text"]))]
    if output["output_type"] == "error":
        raise ValueError(f"notebooks/{name}.ipynb ends with {output['ename']}: {output['evalue']}")
    data = output["data"]
    if "image/png" in data:
        file = f"{name}-{len(pictures) + 1}.png"
        pictures[file] = base64.b64decode(joined(data["image/png"]))
        return [f"![Figure {len(pictures)}]({file})"]
    frame = re.search(r'srcdoc="([^"]*)"', joined(data.get("text/html", "")))
    if frame:
        file = f"{name}-{len(pictures) + 1}-view.html"
        pictures[file] = html.unescape(frame[1])
        return [
            f'<iframe src="{file}" title="A motion" style="width: 100%; height: 30rem; border: 0"></iframe>'
        ]
    return [printed(joined(data["text/plain"]))] if "text/plain" in data else []


def printed(text):
    """Return printed text in a fence that is longer than fences within it."""
    text = COLOURS.sub("", text).rstrip()
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}text\n{text}\n{fence}"


def relinked(text):
    """Redirect links to pages of the site; links to other files become text."""
    text = re.sub(r"\]\(\.\./docs/([\w/]+\.md)", r"](../\1", text)
    return re.sub(r"\[([^\]]+)\]\(\.\./(?![\w/]+\.md)[^)]*\)", r"\1", text)


def joined(lines):
    return lines if isinstance(lines, str) else "".join(lines)
