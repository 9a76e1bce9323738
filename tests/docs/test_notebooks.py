"""The notebooks have the parts that readers expect, and their pages show these parts."""

import importlib.util
import json
import pathlib
import re

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
COURSE = [path for path in NOTEBOOKS if path.name[:2].isdigit()]


def read_cells(path):
    cells = json.loads(path.read_text("utf-8"))["cells"]
    return [(cell, "".join(cell["source"])) for cell in cells]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_stores_figures_and_imports_public_modules(path):
    assert path.stat().st_size < 180_000, "store results by `make notebooks STORE=1`"
    cells = read_cells(path)
    outputs = [output for cell, _ in cells for output in cell.get("outputs", ())]
    assert any("image/png" in output.get("data", {}) for output in outputs)
    assert not any(re.search(r"rigidjax\.(cli|\w+\.\w+ import|_)", source) for _, source in cells)
    for cell, _ in cells:
        folded = {"install", "check", "solution"} & set(cell["metadata"].get("tags", ()))
        assert bool(folded) == cell["metadata"].get("jupyter", {}).get("source_hidden", False)


@pytest.mark.parametrize("path", COURSE, ids=lambda path: path.stem)
def test_notebook_of_the_course_has_all_parts(path):
    cells = read_cells(path)
    title = cells[0][1].splitlines()[0]
    assert title.startswith(f"# {int(path.name[:2])}. ")
    text = "\n".join(source for cell, source in cells if cell["cell_type"] == "markdown")
    for part in ("**Goal.**", "## Theory", "## Exercises", "**1.**", "**2.**", "**3.**"):
        assert part in text, part
    code = [source for cell, source in cells if cell["cell_type"] == "code"]
    assert "google.colab" in code[0] and "pip install" in code[0]
    assert any("rj.view(" in source for source in code)
    picture = path.parent / "pictures" / f"{path.stem}.png"
    assert f"(pictures/{picture.name})" in cells[0][1]
    assert picture.stat().st_size < 60_000
    for cell, source in cells:
        is_check = "check" in cell["metadata"].get("tags", ())
        assert is_check or "assert " not in source, "mark cells with assertions as `check`"


def test_page_hides_checks_and_folds_solutions():
    path = ROOT / "docs" / "_notebooks.py"
    spec = importlib.util.spec_from_file_location("notebook_pages", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)

    def code(source, outputs, *tags):
        metadata = {"tags": list(tags)}
        return dict(cell_type="code", source=source, outputs=outputs, metadata=metadata)

    def stream(name, text):
        return {"output_type": "stream", "name": name, "text": text}

    links = "[a](./03_null_space_method.ipynb), [b](./missing.ipynb)"
    cells = [
        dict(cell_type="markdown", source="# Title\n\n![A](pictures/a.png)", metadata={}),
        code("print(1)", [stream("stdout", "1\n"), stream("stderr", "w"), stream("stdout", "2")]),
        code("assert True", [], "check"),
        code("answer()", [stream("stdout", "42")], "solution"),
        dict(cell_type="markdown", source=links, metadata={}),
    ]
    text, _ = module.page("a", cells, is_executed=True)
    assert "```text\n1\n2\n```" in text  # one box, without the standard error stream
    assert "assert" not in text and "pictures/a.png" not in text
    folded = text.split("<details", 1)[1].split("</details>")[0]
    assert "answer()" in folded and "42" in folded
    assert "[a](03_null_space_method.md), b" in text
