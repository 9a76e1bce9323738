"""Store the results of `make notebooks` in the notebooks, and write their preview pictures.

    python tools/notebook_results.py [NAME ...]

`make notebooks STORE=1` runs this. A notebook receives the printed text and the figures, with a
palette of 64 colours, so that GitHub shows them. Views in three dimensions are left out: their
pages have almost a megabyte each, and the site shows them. `notebooks/pictures/NAME.png` is the
figure of the cell with the tag `preview`.
"""

import base64
import io
import json
import pathlib
import sys
from typing import Any

from PIL import Image

NOTEBOOKS = pathlib.Path(__file__).resolve().parents[1] / "notebooks"
EXECUTED = NOTEBOOKS.parent / ".cache" / "notebooks"
WIDTH = 700  # pixels, at most
LONGEST = 50_000  # characters of a result that is no figure


def reduced_picture(data: str, width: int | None = None) -> bytes:
    """Return a figure with 64 colours and at most a width, as a file in PNG format."""
    picture = Image.open(io.BytesIO(base64.b64decode(data))).convert("RGB")
    if width is not None and picture.width > width:
        height = round(picture.height * width / picture.width)
        picture = picture.resize((width, height), Image.Resampling.LANCZOS)
    file = io.BytesIO()
    picture.quantize(64).save(file, "PNG", optimize=True)
    return file.getvalue()


def stored_output(output: dict[str, Any]) -> dict[str, Any]:
    """Return a result as it is stored, without its number and without long texts."""
    if output["output_type"] == "stream":
        return output
    data = {}
    for kind, value in output["data"].items():
        if kind == "image/png":
            data[kind] = base64.b64encode(reduced_picture("".join(value))).decode()
        elif len("".join(value)) <= LONGEST:
            data[kind] = value
    number = {"execution_count": None} if "execution_count" in output else {}
    return {"output_type": output["output_type"], **number, "data": data, "metadata": {}}


def store(executed: pathlib.Path) -> None:
    """Store the results of one executed notebook, and write its preview picture."""
    path = NOTEBOOKS / executed.name
    notebook = json.loads(path.read_text("utf-8"))
    cells = json.loads(executed.read_text("utf-8"))["cells"]
    if ["".join(c["source"]) for c in cells] != ["".join(c["source"]) for c in notebook["cells"]]:
        print(f"{path.name}: changed since it was run; run `make notebooks STORE=1`")
        return
    for cell, done in zip(notebook["cells"], cells, strict=True):
        outputs = [o for o in done.get("outputs", ()) if o.get("name") != "stderr"]
        if cell["cell_type"] == "code":
            cell["outputs"] = [stored_output(output) for output in outputs]
        figures = [o["data"]["image/png"] for o in outputs if "image/png" in o.get("data", {})]
        if figures and "preview" in cell["metadata"].get("tags", ()):
            picture = reduced_picture("".join(figures[0]), WIDTH)
            (NOTEBOOKS / "pictures" / f"{path.stem}.png").write_bytes(picture)
    path.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n", "utf-8")
    print(f"{path.name}: {path.stat().st_size / 1024:.0f} kB")


if __name__ == "__main__":
    for executed in sorted(EXECUTED.glob("*.ipynb")):
        if not sys.argv[1:] or executed.stem in sys.argv[1:]:
            store(executed)
