"""Runs the fuzzer: `python -m tests.fuzz --seconds 3600`, or `--kind jaxpr --seed 7` for one seed.

Workers are processes of their own: one that dies or hangs is a failure, and another one goes on.
"""

import argparse
import collections
import json
import os
import pathlib
import queue
import signal
import subprocess
import sys
import threading
import time

# Seconds after which a seed counts as hanging, and seeds of one worker. A worker of low priority
# stands still for long where others use all cores.
HANGING = 900.0
SEEDS_OF_A_WORKER = {"jaxpr": 40, "system": 6}
SHARES = {"jaxpr": 0.5, "system": 0.5}
SHRINKING = 120.0
# Seconds between reports of the counts.
REPORTS = 600.0
# Compilation is nearly all of the time: half of it with these flags.
FLAGS = (
    "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false "
    "--xla_cpu_parallel_codegen_split_count=1"
)


class Worker:
    """A process that runs seeds, and the lines that it writes."""

    def __init__(self, kind: str, first: int, out: pathlib.Path):
        command = [sys.executable, "-m", "tests.fuzz", "--worker", "--kind", kind]
        command += ["--seed", str(first), "--count", str(SEEDS_OF_A_WORKER[kind])]
        self.process = subprocess.Popen(
            [*command, "--out", str(out)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.lines: queue.Queue = queue.Queue()
        self.errors: collections.deque = collections.deque(maxlen=30)
        for target in (self._read, self._read_errors):
            threading.Thread(target=target, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        self.errors.extend(self.process.stderr)

    def records(self, until: float):
        """Yield records until the time is up, the process ends, or nothing comes for long."""
        last = time.monotonic()
        while True:
            now = time.monotonic()
            if now > until:
                return
            if now - last > HANGING:
                yield {"hangs": True}
                return
            try:
                line = self.lines.get(timeout=min(1.0, max(until - now, 0.01)))
            except queue.Empty:
                continue
            if line is None:
                return
            last = time.monotonic()
            if line.startswith("{"):
                yield json.loads(line)

    def end(self) -> int | None:
        """Return the exit code of a process that ended by itself; end it otherwise."""
        try:
            return self.process.wait(timeout=2.0)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return None


class Campaign:
    """Counts of all seeds, and which one each kind is at."""

    def __init__(self, kinds: list[str], first: int, out: pathlib.Path):
        self.counts: collections.Counter = collections.Counter()
        self.seeds = dict.fromkeys(kinds, first)
        self.spent = dict.fromkeys(kinds, 0.0)
        self.out = out
        self.begin = self.reported = time.monotonic()

    def run(self, seconds: float) -> None:
        until = self.begin + seconds
        while time.monotonic() < until:
            kind = min(self.spent, key=lambda k: self.spent[k] / SHARES[k])
            begin = time.monotonic()
            self._run_worker(kind, until)
            self.spent[kind] += time.monotonic() - begin

    def _run_worker(self, kind: str, until: float) -> None:
        worker, current = Worker(kind, self.seeds[kind], self.out), None
        try:
            for record in worker.records(until):
                if record.get("hangs"):
                    self._report_failure(kind, current, f"hangs: no result within {HANGING:.0f} s")
                elif record.get("begins"):
                    current = record["seed"]
                else:
                    current, self.seeds[kind] = None, record["seed"] + 1
                    self._count(record)
        finally:
            code = worker.end()
        if code not in (None, 0):
            said = "".join(worker.errors)[-2000:]
            self._report_failure(kind, current, f"the process ended with exit code {code}\n{said}")
        if current is not None:
            self.seeds[kind] = current + 1

    def _count(self, record: dict) -> None:
        self.counts.update(record["counts"])
        if time.monotonic() - self.reported > REPORTS:
            self.report()
        if "failure" in record:
            where = record.get("file") or record.get("trace", "")
            self._print_failure(record["kind"], record["seed"], record["failure"], where)

    def _report_failure(self, kind: str, seed: int | None, message: str) -> None:
        where = ""
        if kind == "jaxpr" and seed is not None:
            from .run import write_unchecked

            where = write_unchecked(seed, self.out, message.splitlines()[0])
        self._print_failure(kind, seed, message, where)

    def _print_failure(self, kind, seed, message, where) -> None:
        self.counts["failures"] += 1
        print(f"FAILURE {kind} {seed}: {message}\n    {where}", flush=True)

    def report(self) -> None:
        self.reported = time.monotonic()
        seconds = self.reported - self.begin
        print(f"\n{seconds:.0f} s; next seeds {self.seeds}")
        for name in sorted({*self.counts, "failures"}):
            print(f"{name:>28}: {self.counts[name]:,}")
        sys.stdout.flush()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long to go on")
    parser.add_argument("--kind", choices=["jaxpr", "system", "all"], default="all")
    parser.add_argument("--seed", type=int, help="run this seed alone")
    parser.add_argument("--first", type=int, help="first seed; by default from the clock")
    parser.add_argument("--out", type=pathlib.Path, default=pathlib.Path("out/fuzz"))
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--count", type=int, default=1, help=argparse.SUPPRESS)
    options = parser.parse_args()
    os.environ["JAX_ENABLE_COMPILATION_CACHE"] = "false"
    os.environ.setdefault("XLA_FLAGS", FLAGS)
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    if options.seed is not None:
        return _run_seeds(options)
    first = options.first if options.first is not None else int(time.time()) * 100
    kinds = ["jaxpr", "system"] if options.kind == "all" else [options.kind]
    campaign = Campaign(kinds, first, options.out)
    print(f"first seed {first}, {options.seconds:.0f} s", flush=True)
    # In the background, too, where shells leave interrupts out.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    try:
        campaign.run(options.seconds)
    except KeyboardInterrupt:
        pass
    campaign.report()
    return int(campaign.counts["failures"] > 0)


def _run_seeds(options: argparse.Namespace) -> int:
    import jax

    jax.config.update("jax_enable_x64", True)
    from .run import run_seed, work

    if options.worker:
        seeds = range(options.seed, options.seed + options.count)
        work(options.kind, seeds, options.out, SHRINKING)
        return 0
    if options.kind == "all":
        raise SystemExit("`--seed` needs `--kind jaxpr` or `--kind system`.")
    record = run_seed(options.kind, options.seed, options.out, SHRINKING)
    print(json.dumps(record, indent=2))
    return int("failure" in record)


if __name__ == "__main__":
    sys.exit(main())
