"""Notebooks as pages, with the results of `make notebooks` in `.cache/notebooks` where they
exist, else with those that the notebooks store, which have no views.

Cells with the tags `install` and `check` are left out; `solution` cells are folded.
"""

import base64
import html
import json
import logging
import pathlib
import re

ROOT = pathlib.Path(__file__).resolve().parent.parent
EXECUTED = ROOT / ".cache" / "notebooks"
PICTURES = ROOT / "notebooks" / "pictures"
LOG = logging.getLogger("mkdocs.hooks.notebooks")
PREVIEW = re.compile(r"!\[[^\]]*\]\(pictures/[^)]*\)")
COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def on_config(config):
    """Add all notebooks to the menu, those with a number first."""
    tutorials = next(entry["Tutorials"] for entry in config["nav"] if "Tutorials" in entry)
    course = [path for path in sources() if path.name[0].isdigit()]
    further = [path for path in sources() if not path.name[0].isdigit()]
    tutorials += [f"notebooks/{path.stem}.md" for path in course]
    tutorials.append({"Further notebooks": [f"notebooks/{path.stem}.md" for path in further]})
    return config


def on_files(files, config):
    """Add a page for each notebook, and files for its figures."""
    # `page` is tested without mkdocs.
    from mkdocs.structure.files import File  # pyright: ignore[reportMissingImports]

    for path in sources():
        cells, is_executed = cells_of(path)
        if not is_executed:
            LOG.info("%s has no results: run `make notebooks` first", path.name)
        text, pictures = page(path.stem, cells, is_executed)
        files.append(File.generated(config, f"notebooks/{path.stem}.md", content=text))
        for name, content in pictures.items():
            files.append(File.generated(config, f"notebooks/{name}", content=content))
        preview = PICTURES / f"{path.stem}.png"
        if not is_executed and preview.exists():
            picture = preview.read_bytes()
            files.append(
                File.generated(config, f"notebooks/pictures/{preview.name}", content=picture)
            )
    return files


def sources():
    return sorted((ROOT / "notebooks").glob("*.ipynb"))


def cells_of(path):
    """Return the cells and whether they have results, the latest ones of equal cells."""
    cells = json.loads(path.read_text("utf-8"))["cells"]
    done = EXECUTED / path.name
    if done.exists():
        executed = json.loads(done.read_text("utf-8"))["cells"]
        if [join(cell["source"]) for cell in executed] == [join(cell["source"]) for cell in cells]:
            return executed, True
    return cells, any(cell.get("outputs") for cell in cells)


def page(name, cells, is_executed):
    """Return the page in Markdown, and its figures by file name."""
    parts, pictures = [], {}
    for cell in cells:
        source, tags = join(cell["source"]).strip(), cell["metadata"].get("tags", ())
        if cell["cell_type"] == "markdown":
            parts.append(relink(PREVIEW.sub("", source) if is_executed else source))
        elif not {"install", "check"} & set(tags):
            shown = [f"```python\n{source}\n```", *results(cell["outputs"], name, pictures)]
            parts += fold(shown) if "solution" in tags else shown
    where = f"This is `notebooks/{name}.ipynb` of the repository"
    parts.insert(
        1,
        f"{where}."
        if is_executed
        else f"{where}, here without its results: `make notebooks` makes them.",
    )
    return "\n\n".join(parts) + "\n", pictures


def fold(parts):
    return ['<details markdown="1"><summary>Solution</summary>', *parts, "</details>"]


def results(outputs, name, pictures):
    """Return the printed, returned and drawn output of a cell, what it prints in one box.

    The standard error stream has warnings of tools and is left out.
    """
    streams = [output for output in outputs if output["output_type"] == "stream"]
    text = "".join(join(s["text"]) for s in streams if s["name"] == "stdout")
    parts = [fence_text(text)] if text.strip() else []
    for output in outputs:
        if output["output_type"] == "error":
            raise ValueError(
                f"notebooks/{name}.ipynb ends with {output['ename']}: {output['evalue']}"
            )
        if output["output_type"] != "stream":
            parts += render(output["data"], name, pictures)
    return parts


def render(data, name, pictures):
    """Return a figure, a view in three dimensions or a value."""
    if "image/png" in data:
        file = f"{name}-{len(pictures) + 1}.png"
        pictures[file] = base64.b64decode(join(data["image/png"]))
        return [f"![Figure {len(pictures)}]({file})"]
    frame = re.search(r'srcdoc="([^"]*)"', join(data.get("text/html", "")))
    if frame:
        file = f"{name}-{len(pictures) + 1}-view.html"
        pictures[file] = html.unescape(frame[1])
        return [
            f'<iframe src="{file}" title="A motion" style="width: 100%; height: 30rem; border: 0"></iframe>'
        ]
    return [fence_text(join(data["text/plain"]))] if "text/plain" in data else []


def fence_text(text):
    """Return printed text in a fence that is longer than fences within it."""
    text = COLOURS.sub("", text).rstrip()
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}text\n{text}\n{fence}"


def relink(text):
    """Redirect links to pages of the site; links to other files become text."""
    text = re.sub(r"\[([^\]]+)\]\(\./(\w+)\.ipynb\)", notebook_link, text)
    text = re.sub(r"\]\(\.\./docs/([\w/]+\.md)", r"](../\1", text)
    return re.sub(r"\[([^\]]+)\]\(\.\./(?![\w/]+\.md)[^)]*\)", r"\1", text)


def notebook_link(link):
    """Return a link to another notebook's page, or its text if the notebook does not exist."""
    exists = (ROOT / "notebooks" / f"{link[2]}.ipynb").exists()
    return f"[{link[1]}]({link[2]}.md)" if exists else link[1]


def join(lines):
    return lines if isinstance(lines, str) else "".join(lines)
