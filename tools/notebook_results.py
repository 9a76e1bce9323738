"""Write the preview pictures of the notebooks from the results of `make notebooks`.

    python tools/notebook_pictures.py [NAME ...]

The picture of a notebook is the figure of its cell with the tag `preview`, with a palette of 64
colours: `notebooks/pictures/NAME.png`.
"""

import base64
import io
import json
import pathlib
import sys

from PIL import Image

NOTEBOOKS = pathlib.Path(__file__).resolve().parents[1] / "notebooks"
EXECUTED = NOTEBOOKS.parent / ".cache" / "notebooks"
WIDTH = 700  # pixels, at most


def preview_of(path: pathlib.Path) -> bytes | None:
    """Return the figure of the cell with the tag `preview`, `None` without one."""
    for cell in json.loads(path.read_text("utf-8"))["cells"]:
        if "preview" in cell["metadata"].get("tags", ()):
            for output in cell["outputs"]:
                if "image/png" in output.get("data", {}):
                    return base64.b64decode("".join(output["data"]["image/png"]))
    return None


def write_picture(path: pathlib.Path) -> None:
    """Write the picture of one executed notebook."""
    data = preview_of(path)
    if data is None:
        return
    picture = Image.open(io.BytesIO(data)).convert("RGB")
    if picture.width > WIDTH:
        height = round(picture.height * WIDTH / picture.width)
        picture = picture.resize((WIDTH, height), Image.Resampling.LANCZOS)
    target = NOTEBOOKS / "pictures" / f"{path.stem}.png"
    target.parent.mkdir(exist_ok=True)
    picture.quantize(64).save(target, optimize=True)
    print(f"{target.name}: {target.stat().st_size / 1024:.0f} kB")


if __name__ == "__main__":
    for executed in sorted(EXECUTED.glob("*.ipynb")):
        if not sys.argv[1:] or executed.stem in sys.argv[1:]:
            write_picture(executed)
