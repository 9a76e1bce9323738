"""Run the examples of the gallery and of the reference, and store their views: `python
docs/gallery/make.py [NAME ...]`.

For each example `shown` is stored: the data of the page, from which the documentation is built
without simulating. `clips.py` then records the clips of the gallery.
"""

import gzip
import json
import os
import pathlib
import runpy
import sys

import jax

HERE = pathlib.Path(__file__).resolve().parent
REFERENCE = HERE.parent / "reference_runs"


def make(path: pathlib.Path) -> None:
    """Run one example and write its files."""
    shown = runpy.run_path(str(path))["shown"]
    data = json.dumps(shown.scene, allow_nan=False, separators=(",", ":")).encode()
    # Without a time stamp, so that equal data give equal files.
    path.with_suffix(".json.gz").write_bytes(gzip.compress(data, mtime=0))


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    os.chdir(HERE.parent.parent)
    for example in sorted([*HERE.glob("*.py"), *REFERENCE.glob("*.py")]):
        if example.stem not in ("make", "clips") and example.stem in (
            sys.argv[1:] or [example.stem]
        ):
            make(example)
            print(example.stem, flush=True)
