"""Functions shared by the benchmarks: arguments, timing, errors, rows, figures."""

import argparse
import datetime
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import diffrax
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np

import rigidjax as rj

HERE = pathlib.Path(__file__).resolve().parent
RESULTS = HERE / "results"
FIGURES = HERE / "figures"
# `tools` is no part of the installed package.
sys.path.append(str(HERE.parent))

# Lang's names of the five formulations of one body, in the order of his Table 1.
FORMULATIONS: dict[str, Callable[[Any], Any]] = {
    "null space, quaternion": lambda body: rj.NullSpace(body, rj.Quaternion()),
    "null space, directors": lambda body: rj.NullSpace(body, rj.Directors()),
    "absolute, quaternion": lambda body: rj.Absolute(body, rj.Quaternion()),
    "absolute, directors": lambda body: rj.Absolute(body, rj.Directors()),
    # As in the paper, both examples avoid the singularity, so that no re-charting is needed.
    "Euler angles": lambda body: rj.NullSpace(body, rj.EulerAngles("ZXZ"), recharting=False),
}
COLORS = dict(zip(FORMULATIONS, ("C0", "C1", "C2", "C3", "C4"), strict=True))


def arguments(description: str | None, add: Callable[[argparse.ArgumentParser], Any] | None = None):
    """Parse the command line; every benchmark accepts `--smoke`."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument(
        "--smoke", action="store_true", help="smallest case; rows to standard output, no file"
    )
    if add is not None:
        add(parser)
    return parser.parse_args()


def double_precision() -> None:
    """Enable float64, and do not read compiled code from disk, since compile times are measured."""
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_enable_compilation_cache", False)


def environment() -> dict[str, Any]:
    """Return the machine, versions and commit of a measurement."""
    device = jax.devices()[0]
    return {
        "device": f"{device.platform}: {device.device_kind}",
        "processor": _processor(),
        "cores": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "python": platform.python_version(),
        "rigidjax": rj.__version__,
        "jax": jax.__version__,
        "diffrax": diffrax.__version__,
        "equinox": eqx.__version__,
        "commit": _commit(),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
    }


def _processor() -> str:
    try:
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor()


def _commit() -> str:
    """Return the short hash of the commit, marked if the package differs from it; empty outside
    git.
    """
    try:
        run = lambda *args: subprocess.run(  # noqa: E731
            ["git", *args], cwd=HERE, capture_output=True, text=True, check=True
        ).stdout.strip()
        return run("rev-parse", "--short", "HEAD") + (
            "+changes" if run("status", "--porcelain", "--", "../rigidjax") else ""
        )
    except (OSError, subprocess.CalledProcessError):
        return ""


def write(name: str, rows: Sequence[dict[str, Any]], smoke: bool) -> None:
    """Write rows to `results/NAME.json`, or to standard output for a smoke run."""
    shared = environment()
    rows = [{"benchmark": name, **row, **shared} for row in rows]
    if smoke:
        for row in rows:
            print(json.dumps(row))
        return
    write_rows(name, rows)


def write_rows(name: str, rows: Sequence[dict[str, Any]]) -> None:
    """Write complete rows to `results/NAME.json`."""
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    text = ",\n".join(json.dumps(row) for row in rows)
    path.write_text(f"[\n{text}\n]\n")
    print(f"wrote {path.relative_to(HERE.parent)} ({len(rows)} rows)")


def read(name: str) -> list[dict[str, Any]]:
    """Return the rows of `results/NAME.json`."""
    return json.loads((RESULTS / f"{name}.json").read_text())


def space_ticks(axis: Any) -> None:
    """Label an axis at powers of ten; below two decades also between them."""
    from matplotlib.ticker import (
        EngFormatter,
        LogFormatterSciNotation,
        LogLocator,
        NullFormatter,
        StrMethodFormatter,
    )

    low, high = axis.get_view_interval()
    if high < 100 * low:
        axis.set_major_locator(LogLocator(subs=(1.0, 3.0) if high > 15 * low else (1.0, 2.0, 5.0)))
        if low >= 100:
            axis.set_major_formatter(EngFormatter(sep=""))
        elif low >= 1e-3:
            axis.set_major_formatter(StrMethodFormatter("{x:g}"))
        else:
            axis.set_major_formatter(LogFormatterSciNotation(minor_thresholds=(9, 9)))
    axis.set_minor_formatter(NullFormatter())


def save(figure: Any, name: str) -> None:
    """Write a figure to `figures/NAME.png`."""
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            if axis.get_scale() == "log":
                space_ticks(axis)
    FIGURES.mkdir(exist_ok=True)
    figure.savefig(FIGURES / f"{name}.png", dpi=110, bbox_inches="tight")
    print(f"wrote {(FIGURES / name).relative_to(HERE.parent)}.png")


def seconds(run: Callable[[], Any]) -> float:
    """Return the wall time of one call, until its result is available."""
    start = time.perf_counter()
    jax.block_until_ready(run())
    return time.perf_counter() - start


def time_in_turn(
    runs: dict[str, Callable[[], Any]], repeats: int
) -> dict[str, list[tuple[float, float]]]:
    """Return wall and processor times of several runs that take turns.

    Other load on the machine then affects all of them alike. On a busy machine the processor time
    of this process is the steadier of the two.
    """
    for run in runs.values():
        seconds(run)
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in runs}
    for _ in range(repeats):
        for name, run in runs.items():
            used = time.process_time()
            wall = seconds(run)
            times[name].append((wall, time.process_time() - used))
    return times


def summary(times: Sequence[tuple[float, float]]) -> dict[str, float]:
    """Return median and minimum of the wall time, the median of the processor time, and the number
    of runs.
    """
    wall, used = zip(*times, strict=True)
    return {
        "run_seconds": statistics.median(wall),
        "run_seconds_min": min(wall),
        "cpu_seconds": statistics.median(used),
        "repeats": len(times),
    }


def ratios(found: dict[str, float], base: dict[str, float]) -> dict[str, float]:
    """Return ratios of the shortest wall times, which should be quoted, and of the medians of both
    clocks.
    """
    return {
        "ratio": found["run_seconds_min"] / base["run_seconds_min"],
        "ratio_of_medians": found["run_seconds"] / base["run_seconds"],
        "ratio_of_cpu_medians": found["cpu_seconds"] / max(base["cpu_seconds"], 1e-12),
    }


def compile_times(function: Callable[..., Any], *args: Any, repeats: int = 3) -> dict[str, float]:
    """Return the time of a first call less a second call, the least of several.

    Tracing and compilation are included. The processor time covers all threads; on an idle machine
    the wall time is smaller.
    """
    wall, used = [], []
    for _ in range(repeats):
        jax.clear_caches()
        times = []
        for _ in range(2):
            start = time.process_time()
            times.append((seconds(lambda: function(*args)), time.process_time() - start))
        (first, first_used), (second, second_used) = times
        wall.append(first - second)
        used.append(first_used - second_used)
    return {"compile_seconds": min(wall), "compile_cpu_seconds": min(used)}


def errors(state: rj.State, reference: rj.State) -> tuple[float, float]:
    """Return the largest absolute errors of the rotation matrix and of the body rates (rad/s)."""
    matrix = rj.Quaternion().to_matrix
    p, p_ref = (np.atleast_2d(np.asarray(s.orientation).reshape(-1, 4)) for s in (state, reference))
    R, R_ref = jax.vmap(matrix)(jnp.asarray(p)), jax.vmap(matrix)(jnp.asarray(p_ref))
    omega, omega_ref = (np.asarray(s.angular_velocity).reshape(-1, 3) for s in (state, reference))
    return float(np.max(np.abs(R - R_ref))), float(np.max(np.abs(omega - omega_ref)))
