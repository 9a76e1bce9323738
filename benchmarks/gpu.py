"""Kernels on a GPU, in at most eight minutes: checks first, then tables in order of importance.

Each part runs in a process of its own with a time limit, and its rows are written as soon as they
are measured, so that a failure or a limit costs no other rows. A part that would begin after the
budget of `--seconds` is skipped. Results are written to `results/`, and also to the folder of
`--out` or of the environment variable OUT_DIR. Without a GPU only the report of `ptxas` is made.
"""

import argparse
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from typing import Any, NamedTuple

import _common as common


class Part(NamedTuple):
    """A part of the benchmark.

    **Attributes:** `function` of `_gpu_parts`, which yields rows; `file` of the results that they
    belong to; `limit` of its time, s; `needs_gpu`.
    """

    function: str
    file: str
    limit: float
    needs_gpu: bool = True


# In order of importance. Kernels of the first parts are on disk when later ones use them.
PARTS = (
    Part("checks", "gpu_runs", 150),
    Part("throughput", "gpu_runs", 60),
    Part("fits", "gpu_fits", 300),
    Part("gradients", "gpu_runs", 60),
    Part("compilation", "gpu_compilation", 120),
    Part("other_runs", "gpu_runs", 90),
    Part("assembly", "gpu", 400, needs_gpu=False),
)
BUDGET = 480.0


def run_part(part: Part, folder: pathlib.Path, limit: float, smoke: bool) -> dict[str, Any]:
    """Run a part in a process of its own; return how it ended, with the end of its error text."""
    command = [sys.executable, __file__, "--part", part.function, "--out", str(folder)]
    begin = time.perf_counter()
    log = folder / f"{part.function}.log"
    with log.open("w") as output:
        process = subprocess.Popen(
            [*command, *["--smoke"] * smoke],
            stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
        try:
            code = process.wait(limit)
            ended = "finished" if code == 0 else f"failed with exit code {code}"
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            ended = f"stopped after its limit of {limit:.0f} s"
    found = {"part": part.function, "ended": ended, "seconds": time.perf_counter() - begin}
    return found if ended == "finished" else found | {"error": log.read_text()[-2_000:]}


def measure_part(name: str, folder: pathlib.Path, smoke: bool) -> None:
    """Measure one part in this process; write its rows after each of them.

    A row replaces an earlier one with the same values of `case`, `batch` and `architecture`.
    """
    import _gpu_parts

    common.double_precision()
    shared, rows = common.environment(), {}
    part = next(part for part in PARTS if part.function == name)
    for row in getattr(_gpu_parts, name)(smoke):
        key = tuple(row.get(k) for k in ("case", "batch", "fits", "architecture"))
        rows[key] = {"benchmark": part.file, "part": name, **row, **shared}
        (folder / f"{name}.json").write_text(json.dumps(list(rows.values())))
        print(row, flush=True)


def collect(folder: pathlib.Path) -> dict[str, list[dict[str, Any]]]:
    """Return the rows that all parts have written so far, by the file of the results."""
    found: dict[str, list[dict[str, Any]]] = {}
    for part in PARTS:
        path = folder / f"{part.function}.json"
        if path.exists():
            found.setdefault(part.file, []).extend(json.loads(path.read_text()))
    return found


def publish(folder: pathlib.Path, out: pathlib.Path | None, ended: list[dict[str, Any]]) -> None:
    """Write the rows so far to `results/` and to the folder `out`, with the log of all parts."""
    for name, rows in collect(folder).items():
        common.write_rows(name, rows)
        if out is not None:
            shutil.copy(common.RESULTS / f"{name}.json", out)
    if out is not None:
        (out / "gpu_parts.json").write_text(json.dumps(ended, indent=1))
        texts = (path.read_text() for path in sorted(folder.glob("*.log")))
        (out / "gpu_log.txt").write_text("\n".join(texts))


def has_gpu() -> bool:
    """Return whether kernels can run on a GPU; asked in a process of its own, which frees it."""
    code = (
        "from rigidjax.native.runtime.cuda import launch;"
        "raise SystemExit(launch.find_architecture() is None or launch.find_driver() is None)"
    )
    return subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def run_all(options: argparse.Namespace) -> None:
    """Run all parts within the budget."""
    begin, ended = time.perf_counter(), []
    out = options.out
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
    runs_on_gpu = has_gpu()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        for part in PARTS:
            left = options.seconds - (time.perf_counter() - begin)
            if left <= 0:
                ended.append({"part": part.function, "ended": "skipped: the budget is spent"})
            elif part.needs_gpu and not (runs_on_gpu or options.smoke):
                ended.append({"part": part.function, "ended": "skipped: no GPU"})
            else:
                limit = left if options.smoke else min(part.limit, left)
                ended.append(run_part(part, folder, limit, options.smoke))
                if not options.smoke:
                    publish(folder, out, ended)
            print(json.dumps(ended[-1]), flush=True)
        if options.smoke:
            for rows in collect(folder).values():
                print("\n".join(map(json.dumps, rows)))
        elif out is not None:
            publish(folder, out, ended)
    if any("error" in found for found in ended):
        sys.exit(1)


def _arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--seconds", type=float, default=BUDGET, help="budget of all parts")
    parser.add_argument("--part", choices=[p.function for p in PARTS], help="one part alone")
    folder = os.environ.get("OUT_DIR")
    parser.add_argument(
        "--out", type=pathlib.Path, default=folder and pathlib.Path(folder),
        help="folder for a copy of the results, default OUT_DIR",
    )  # fmt: skip


if __name__ == "__main__":
    options = common.arguments(__doc__, _arguments)
    if options.part is None:
        run_all(options)
    else:
        measure_part(options.part, options.out or pathlib.Path(), options.smoke)
