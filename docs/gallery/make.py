"""Run the examples of the gallery and keep what they show: `python docs/gallery/make.py [NAME ...]`.

Of each, `shown` is kept: the data of the page, and a filmstrip as a picture. The documentation is built from these
files; nothing is simulated then.
"""

import gzip
import json
import os
import pathlib
import runpy
import sys

import jax

from rigidjax import plotting

HERE = pathlib.Path(__file__).parent


def make(name: str) -> None:
    """Run one example and write its files."""
    shown = runpy.run_path(str(HERE / f"{name}.py"))["shown"]
    data = json.dumps(shown.scene, allow_nan=False, separators=(",", ":")).encode()
    # Without a time in its head, so that the same data are the same file.
    (HERE / f"{name}.json.gz").write_bytes(gzip.compress(data, mtime=0))
    plotting.save_figure(plotting.plot_filmstrip(shown, 5), HERE / f"{name}.png", force=True)


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    os.chdir(HERE.parent.parent)
    for example in sys.argv[1:] or sorted(p.stem for p in HERE.glob("*.py") if p.stem != "make"):
        make(example)
        print(example, flush=True)
