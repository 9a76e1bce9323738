"""Settings of every test: precision, seeds, the compilation cache. Warnings: see pyproject.toml.

`RIGIDJAX_TEST_X64=0` runs in single precision, and then only the tests marked `float32`.
`RIGIDJAX_TEST_ALL=1` also runs the tests marked `exhaustive`, as `make test-all` does.
`CI=true` makes a skipped test a failure, unless it needs a GPU.
"""

import collections
import ctypes
import gc
import os
import pathlib

import hypothesis
import jax
import numpy as np
import pytest
from external_programs import allowed_in_ci

X64 = os.environ.get("RIGIDJAX_TEST_X64", "1") != "0"
EXHAUSTIVE = os.environ.get("RIGIDJAX_TEST_ALL", "0") != "0"
CI = os.environ.get("CI", "") not in ("", "0", "false")
SEED = 20260101

# In the environment too, so that programs started by a test share the cache.
_CACHE = pathlib.Path(__file__).resolve().parent.parent / ".cache" / "jax"
os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(_CACHE))
os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.2")

# Nearly all the time of the tests goes into compilation: half of it with these flags. An XLA that
# does not know a flag stops: only releases that were seen to know them get them.
if jax.__version_info__ < (0, 11):
    _FLAGS = (
        "--xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false "
        "--xla_cpu_parallel_codegen_split_count=1"
    )
    os.environ["XLA_FLAGS"] = f"{_FLAGS} {os.environ.get('XLA_FLAGS', '')}".strip()

jax.config.update("jax_enable_x64", X64)
# Source lines of operations are not recorded: no test needs them.
jax.config.update("jax_traceback_in_locations_limit", 0)
jax.config.update("jax_compilation_cache_dir", os.environ["JAX_COMPILATION_CACHE_DIR"])
jax.config.update(
    "jax_persistent_cache_min_compile_time_secs",
    float(os.environ["JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS"]),
)

# Tests are of the processor; those of kernels on a GPU name its devices.
if jax.default_backend() == "gpu":
    jax.config.update("jax_default_device", jax.devices("cpu")[0])

# Searches for garbage, of which tracing makes little, took an eighth of the time: only what is
# young is searched, and everything where memory runs short (see below).
gc.set_threshold(1_000_000, 1_000, 1_000)

# Examples are deterministic, without a time limit, since some have to compile.
hypothesis.settings.register_profile("rigidjax", derandomize=True, deadline=None, database=None)
hypothesis.settings.load_profile("rigidjax")


def pytest_report_header(config):
    return f"jax: {jax.__version__}, {jax.default_backend()}, {'float64' if X64 else 'float32'}"


def _check_exhaustive_marks(items):
    """Raise if a mark names a case that its test does not have: it would leave a case out."""
    cases, marked = collections.defaultdict(set), collections.defaultdict(set)
    for item in items:
        test = item.nodeid.partition("[")[0]
        cases[test].add(item.callspec.id if hasattr(item, "callspec") else None)
        for mark in item.iter_markers("exhaustive"):
            marked[test].update(mark.args, mark.kwargs.get("but", ()))
    unknown = {test: ids - cases[test] for test, ids in marked.items() if ids - cases[test]}
    if unknown:
        lines = (f"{test}: {', '.join(map(repr, sorted(ids)))}" for test, ids in unknown.items())
        raise pytest.UsageError("unknown cases in `exhaustive` marks:\n" + "\n".join(lines))


def pytest_collection_modifyitems(config, items):
    if not any("::" in str(argument) for argument in config.args):
        _check_exhaustive_marks(items)

    def is_exhaustive(item):
        """Return whether the test, or this case of it, is marked as exhaustive."""
        case = item.callspec.id if hasattr(item, "callspec") else None

        def applies(mark):
            if "but" in mark.kwargs:
                return case not in mark.kwargs["but"]
            return not mark.args or case in mark.args

        return any(applies(mark) for mark in item.iter_markers("exhaustive"))

    def is_run(item):
        if is_exhaustive(item) and not EXHAUSTIVE:
            return False
        return X64 or item.get_closest_marker("float32") is not None

    left_out = [item for item in items if not is_run(item)]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if is_run(item)]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item, call):
    return _failed_if_skipped_in_ci((yield))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector):
    return _failed_if_skipped_in_ci((yield))


def _failed_if_skipped_in_ci(report):
    """Return the report of a test or of a collected file, as a failure if CI allows no skip."""
    if CI and report.skipped and not hasattr(report, "wasxfail"):
        reason = _skip_reason(report)
        if not allowed_in_ci(reason):
            report.outcome, report.longrepr = "failed", f"skipped in CI: {reason}"
    return report


def _skip_reason(report):
    """Return why a test was skipped: `longrepr` is file, line and reason, or text."""
    longrepr = report.longrepr
    reason = longrepr[2] if isinstance(longrepr, tuple) else str(longrepr)
    return reason.removeprefix("Skipped: ")


def pytest_terminal_summary(terminalreporter):
    """Print what was left out, and how to have it."""
    skipped = terminalreporter.stats.get("skipped", [])
    counts = collections.Counter(map(_skip_reason, skipped))
    if counts:
        terminalreporter.section("left out")
    for reason, count in counts.most_common():
        terminalreporter.write_line(f"{count} skipped: {reason}")


# Each compiled program is a few memory maps, of which Linux gives a process 65,530: without
# clearing, a worker that has run half of the suite holds nearly all of them and crashes.
# They also take memory, with what was traced for them: two workers would fill 16 GB. Freed memory
# goes back to the system only when asked, and what cannot be freed is no reason to clear again:
# else every module would, at three seconds each. A worker may fill half of its share of memory,
# of which a container may have less than the machine: not above 7 GB.
_MANY_MAPS = 40_000
_WORKERS = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
_MEMORY = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
_MANY_BYTES = np.clip(0.55 * _MEMORY / _WORKERS, 5e9, 7e9)
_MOST_BYTES, _MORE_BYTES = 1.4 * _MANY_BYTES, 1.5e9
_MAPS = pathlib.Path("/proc/self/maps")
_PAGES = pathlib.Path("/proc/self/statm")
_LIBC = ctypes.CDLL(None)
_left = [0]


def _resident() -> int:
    return int(_PAGES.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.fixture
def exhaustive():
    """Whether these are the tests of `make test-all`."""
    return EXHAUSTIVE


@pytest.fixture(autouse=True, scope="module")
def _bounded_memory():
    yield
    if _MAPS.exists():
        full = _resident() > max(_MANY_BYTES, _left[0] + _MORE_BYTES)
        if full or _MAPS.read_bytes().count(b"\n") > _MANY_MAPS:
            _clear_memory()


@pytest.fixture(autouse=True)
def _bounded_memory_within_a_module():
    yield
    if _MAPS.exists() and _resident() > max(_MOST_BYTES, _left[0] + _MORE_BYTES):
        _clear_memory()


def _clear_memory():
    jax.clear_caches()
    gc.collect()
    if hasattr(_LIBC, "malloc_trim"):
        _LIBC.malloc_trim(0)
    _left[0] = _resident()


def pytest_sessionfinish():
    """One search for what was never closed; pytest makes five, at seconds each."""
    gc.collect()
    gc.freeze()


# Folders whose tests run under strict promotion of types and ranks; the others are to follow.
STRICT = {"bodies", "forces", "joints", "kinematics", "linalg", "rotations", "solvers"}


@pytest.fixture(autouse=True, scope="module")
def _strict_promotion(request):
    if request.path.parent.name not in STRICT:
        yield
        return
    with jax.numpy_dtype_promotion("strict"), jax.numpy_rank_promotion("raise"):
        yield


@pytest.fixture(autouse=True, scope="module")
def _compile_time(request):
    """Compile native kernels with few optimisations, except in `tests/native`."""
    from rigidjax.native.runtime import codegen as machine

    with pytest.MonkeyPatch.context() as patch:
        if request.path.parent.name != "native":
            patch.setattr(machine, "LONG", 0)
            patch.setattr(machine, "LONG_BATCH", 0)
        yield


@pytest.fixture
def rng() -> np.random.Generator:
    """A NumPy generator with a fixed seed, fresh for every test."""
    return np.random.default_rng(SEED)


@pytest.fixture
def key() -> jax.Array:
    """A JAX random key with a fixed seed."""
    return jax.random.key(SEED)
