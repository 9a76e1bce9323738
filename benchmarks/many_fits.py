"""10,000 fits into a store, killed and resumed, against an undisturbed run.

The fits estimate the moments of inertia of N heavy tops from 30 gyroscope samples each, with
different moments and noise, from starts 3 % off. One process fits them with
`identify_batch(out=...)`. A second run is killed (SIGKILL) when half of the shards are done, and
another process resumes it.
"""

import json
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
from typing import Any

import _common as common
import equinox as eqx
import numpy as np

import rigidjax as rj
from rigidjax.ensembles import Store
from rigidjax.identification import Gyroscope, Measurements, Parameter, PrincipalInertia

TS = 0.02 * np.arange(30)
NOISE = 0.01
BATCH = 250


def inertia_of(experiment: Any) -> Any:
    return experiment.model.system.inertia


def fits(count: int, out: pathlib.Path | None) -> tuple[rj.identification.BatchFit, np.ndarray]:
    """Return the fits and the true moments."""
    problem = rj.problems.heavy_top()
    nominal = np.asarray(problem.system.inertia)
    rng = np.random.default_rng(0)
    truth = nominal * rng.uniform(0.99, 1.01, (count, 3))

    def run(p: dict[str, Any]) -> Any:
        system = eqx.tree_at(lambda s: s.inertia, problem.system, p["moments"])
        found = rj.simulate(rj.NullSpace(system), problem.state0, TS[-1], ts=TS)
        return {"rates": found.states.angular_velocity[:, 0]}

    rates = rj.ensemble(run, {"moments": truth}, progress=False, threads=1).outputs["rates"]
    rates = rates + NOISE * rng.normal(size=rates.shape)
    data = [Measurements(TS, {Gyroscope(): one}, {Gyroscope(): NOISE}) for one in rates]
    parameter = Parameter("inertia", inertia_of, PrincipalInertia())
    found = rj.identification.identify_batch(
        rj.NullSpace(problem.system), data, parameter, state0=problem.state0, out=out,
        starts={"inertia": 1.03 * truth}, batch_size=min(BATCH, count), horizons=(1.0,),
    )  # fmt: skip
    return found, truth


def worker(count: int, out: pathlib.Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, __file__, "--members", str(count), "--out", str(out)]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL)


def kill_and_resume(count: int, out: pathlib.Path) -> dict[str, Any]:
    """Kill the first process when half of the shards are done, and resume in a second one."""
    first = worker(count, out)
    while not out.exists() or 2 * len(Store(out).done()) < Store(out).num_shards:
        if first.poll() is not None:
            raise RuntimeError(f"The first process ended with code {first.returncode}.")
        time.sleep(0.05)
    first.send_signal(signal.SIGKILL)
    first.wait()
    done = len(Store(out).done())
    begin = time.perf_counter()
    if worker(count, out).wait() != 0:
        raise RuntimeError("The second process failed.")
    seconds = time.perf_counter() - begin
    return {"shards": Store(out).num_shards, "done_at_kill": done, "seconds_to_resume": seconds}


def main() -> None:
    args = common.arguments(str(__doc__), _arguments)
    common.double_precision()
    count = 20 if args.smoke else args.members
    if args.out is not None:
        fits(count, args.out)
        return
    with tempfile.TemporaryDirectory() as folder:
        begin, cpu = time.perf_counter(), time.process_time()
        whole, truth = fits(count, pathlib.Path(folder) / "whole.zarr")
        row: dict[str, Any] = {
            "case": "heavy top",
            "fits": count,
            "seconds": time.perf_counter() - begin,
            "processor_seconds": time.process_time() - cpu,
            "converged": int(np.count_nonzero(whole.converged)),
            "errors_over_std": np.sqrt(np.mean(((whole.values - truth) / whole.std) ** 2)),
        }
        if not args.smoke:
            out = pathlib.Path(folder) / "killed.zarr"
            row |= kill_and_resume(count, out)
            pairs = zip(Store(folder + "/whole.zarr").read()[0], Store(out).read()[0], strict=True)
            row["equal_bit_for_bit"] = all(np.array_equal(a, b) for a, b in pairs)
    common.write("many_fits", [json.loads(json.dumps(row, default=float))], args.smoke)


def _arguments(parser: Any) -> None:
    parser.add_argument("--members", type=int, default=10_000)
    parser.add_argument("--out", type=pathlib.Path, help="fit into this store and do no more")


if __name__ == "__main__":
    main()
