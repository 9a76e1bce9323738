"""Ensembles in Zarr stores, written shard by shard, so that a killed process loses no shard.

A store is a folder: a Zarr 3 group with one array for each parameter and output. The leading axis
numbers the members, and the chunks of an array are the shards. The empty group `progress` contains
further files: `plan.json`, the description of the ensemble; `done/`, a file for each complete
shard, moved there after the shard was written; `leases/`, the claims of workers.
"""

import contextlib
import hashlib
import json
import os
import pathlib
import uuid
from collections.abc import Iterator
from typing import Any

import jax
import numpy as np

from .._version import __version__
from ..extras import import_optional
from .chunks import ChunkResult
from .leases import Lease, process_name
from .members import Members
from .result import label_dimensions, with_joint_names
from .traced_run import Status, TracedRun

_PROGRESS, _PLAN = "progress", "plan.json"
_STATUS = {"result": "int32", "num_steps": "int32", "reached": "float64"}


class StoreError(ValueError):
    """Error of a store that is incomplete, damaged, or made for another ensemble."""


class Store:
    """Shards of one ensemble on disk.

    **Attributes:** `path`; `plan`, the description of the ensemble.
    """

    def __init__(self, path: str | os.PathLike[str]):
        self.path = pathlib.Path(path)
        self.plan = _read_plan(self.path)
        self._progress = self.path / _PROGRESS
        self._group: Any = None
        self._leases: dict[int, contextlib.ExitStack] = {}

    @classmethod
    def open_or_create(
        cls, path: str | os.PathLike[str], plan: dict[str, Any], members: Members,
        traced_run: TracedRun, resume: bool,
    ) -> "Store":  # fmt: skip
        """Create a store, or open an existing one with the same plan.

        **Raises:** `StoreError` for a different plan, or a folder that is not a store;
        `FileExistsError` for an existing store unless `resume`; `OSError` for a folder that cannot
        be written.
        """
        path = pathlib.Path(path)
        if path.suffix != ".zarr":
            raise StoreError(f"Ensembles are written to folders named *.zarr; got {path}.")
        if not path.parent.is_dir():
            raise FileNotFoundError(f"Cannot write {path}: there is no folder {path.parent}.")
        if path.exists():
            if not resume:
                raise FileExistsError(
                    f"{path} exists. Choose another name, delete it, or continue with "
                    "`resume=True`."
                )
            store = cls(path)
            store._check(plan)
            return store
        try:
            _create(path, plan, members, traced_run)
        except OSError as error:
            reason = error.strerror or str(error)
            raise OSError(error.errno, f"Cannot write {path}: {reason}") from error
        # Another process may have created the store first, so that its plan is checked.
        store = cls(path)
        store._check(plan)
        return store

    def _check(self, plan: dict[str, Any]) -> None:
        differing = [key for key in plan if plan[key] != self.plan.get(key)]
        if differing:
            changes = "; ".join(f"{k} was {self.plan.get(k)}, is {plan[k]}" for k in differing)
            raise StoreError(
                f"{self.path} was made for another ensemble: {changes}. Choose another name, or "
                "restore the arguments."
            )

    @property
    def count(self) -> int:
        """Number of members."""
        return self.plan["members"]

    @property
    def size(self) -> int:
        """Number of members in a shard."""
        return self.plan["shard"]

    @property
    def num_shards(self) -> int:
        """Number of shards."""
        return -(-self.count // self.size)

    def done(self) -> set[int]:
        """Return the numbers of the complete shards."""
        return {int(name) for name in os.listdir(self._progress / "done") if name.isdigit()}

    def num_done(self) -> int:
        """Return the number of members in complete shards."""
        return sum(min(self.size, self.count - k * self.size) for k in self.done())

    def missing(self) -> list[int]:
        """Return the numbers of the incomplete shards, increasing."""
        return sorted(set(range(self.num_shards)) - self.done())

    def write(self, chunk: ChunkResult) -> None:
        """Write a shard, then mark it as complete, so that a killed process leaves it missing.

        **Raises:** `OSError` with the remedy if the disk cannot be written.
        """
        try:
            self._write(chunk)
        except OSError as error:
            raise OSError(
                error.errno,
                f"{error.strerror or error}: shard {chunk.number} of {self.path} could not be "
                f"written. {len(self.done())} of {self.num_shards} shards are complete and kept; "
                "free disk space or change permissions, and repeat the call",
            ) from error

    def _write(self, chunk: ChunkResult) -> None:
        group = self._open("r+")
        begin = chunk.number * self.size
        where = slice(begin, begin + len(chunk.status.result))
        arrays = dict(zip(self.plan["outputs"], chunk.outputs, strict=True))
        for name, values in {**arrays, **chunk.status._asdict()}.items():
            group[name][where] = values
        self._mark_complete(chunk.number, int(np.count_nonzero(chunk.status.result)))
        self.release(chunk.number)

    def _mark_complete(self, number: int, failed: int) -> None:
        """Mark a shard as complete by a file that is created atomically."""
        temporary = self._progress / "done" / f".{number}.{uuid.uuid4().hex}"
        temporary.write_text(json.dumps({"failed": failed, "worker": process_name()}))
        os.replace(temporary, self._progress / "done" / str(number))

    def release(self, *numbers: int) -> None:
        """Release the claims to these shards, without numbers all claims."""
        for number in numbers or list(self._leases):
            if number in self._leases:
                self._leases.pop(number).close()

    def close(self) -> None:
        """Release all claims."""
        self.release()

    def read(self) -> tuple[list[np.ndarray], Status]:
        """Return outputs and status of all members.

        **Raises:** `StoreError` while shards are missing.
        """
        self._check_complete()
        group = self._open("r")
        outputs = [np.asarray(group[name][...]) for name in self.plan["outputs"]]
        return outputs, Status(*(np.asarray(group[name][...]) for name in Status._fields))

    def _check_complete(self) -> None:
        missing = self.missing()
        if missing:
            raise StoreError(
                f"{self.path} is not complete: {len(missing)} of {self.num_shards} shards are "
                "missing. Repeat the call with `resume=True`."
            )

    def to_xarray(self) -> Any:
        """Return parameters, outputs and outcomes as an `xarray.Dataset` that is read lazily.

        Parameters are coordinates, as in `Ensemble.to_xarray`.

        **Raises:** `StoreError` while shards are missing.
        """
        xarray = import_optional("xarray", "Datasets of ensembles")

        self._check_complete()
        data = xarray.open_zarr(self.path, consolidated=False, chunks=None)
        data = data.set_coords(self.plan["parameters"])
        return with_joint_names(data, self.plan.get("joints", ()))

    def failed(self) -> int:
        """Return the number of failed members in complete shards."""
        notes = [(self._progress / "done" / str(k)).read_text() for k in self.done()]
        return sum(json.loads(note)["failed"] for note in notes)

    def _open(self, mode: Any) -> Any:
        zarr = import_optional("zarr", "Stores of ensembles")

        if self._group is None or mode != "r":
            self._group = zarr.open_group(str(self.path), mode=mode, zarr_format=3)
        return self._group

    def claim_shards(self, first: int) -> Iterator[int | None]:
        """Claim missing shards one after the other, and yield their numbers until none is missing.

        A claim lasts until the shard is written or released. The search starts at shard `first`,
        which differs between workers. Yields `None` while other workers hold all remaining claims;
        expired claims are taken over.
        """
        order = [*range(first, self.num_shards), *range(first)]
        while True:
            done, waiting = self.done(), False
            for number in order:
                if number in done or number in self._leases:
                    continue
                lease = Lease.acquire(self._progress / "leases" / str(number))
                if lease is None:
                    waiting = True
                    continue
                self._leases[number] = contextlib.ExitStack()
                self._leases[number].enter_context(lease)
                # Another worker may have completed the shard since the list was read.
                if (self._progress / "done" / str(number)).exists():
                    self.release(number)
                else:
                    yield number
            if not waiting:
                return
            yield None


def make_plan(
    members: Members, traced_run: TracedRun, size: int, lengths: Any = None
) -> dict[str, Any]:
    """Return the description that determines all results.

    It contains hashes of the run and of the parameters, their order, the precision and versions.
    """
    return {
        "members": members.count,
        "shard": size,
        "parameters": members.names,
        "outputs": traced_run.names,
        "joints": [*traced_run.joints],
        "shapes": [[*shape.shape] for shape in traced_run.shapes],
        "types": [str(shape.dtype) for shape in traced_run.shapes],
        "program": traced_run.fingerprint(),
        "values": members.fingerprint(),
        "lengths": lengths if lengths is None or isinstance(lengths, str) else _hash(lengths),
        "precision": "double" if jax.config.read("jax_enable_x64") else "single",
        "platform": jax.default_backend(),
        "versions": {"rigidjax": __version__, "jax": jax.__version__},
    }


def _hash(values: Any) -> str:
    return hashlib.sha256(np.asarray(values, float).tobytes()).hexdigest()[:16]


def _read_plan(path: pathlib.Path) -> dict[str, Any]:
    if not path.exists():
        raise FileNotFoundError(f"There is no store {path}.")
    try:
        plan = json.loads((path / _PROGRESS / _PLAN).read_text())
        if not {"members", "shard", "outputs"} <= set(plan):
            raise ValueError("the plan is incomplete")
    except (FileNotFoundError, NotADirectoryError, TypeError, ValueError) as error:
        raise StoreError(
            f"{path} is not a store of an ensemble: it has no readable {_PROGRESS}/{_PLAN}. "
            "Choose another folder."
        ) from error
    return plan


def _create(
    path: pathlib.Path, plan: dict[str, Any], members: Members, traced_run: TracedRun
) -> None:
    """Create a store in a temporary folder, and move it to `path` atomically."""
    import shutil

    zarr = import_optional("zarr", "Stores of ensembles")

    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        group: Any = zarr.create_group(str(temporary), zarr_format=3)
        group.create_group(_PROGRESS)
        for part in ("done", "leases"):
            (temporary / _PROGRESS / part).mkdir()
        shapes = {n: leaf.shape[1:] for n, leaf in zip(members.names, members.leaves, strict=True)}
        shapes |= {n: s.shape for n, s in zip(traced_run.names, traced_run.shapes, strict=True)}
        types = {n: leaf.dtype for n, leaf in zip(members.names, members.leaves, strict=True)}
        types |= {n: s.dtype for n, s in zip(traced_run.names, traced_run.shapes, strict=True)}
        ambiguous = sorted({*members.names} & {*traced_run.names} | {*_STATUS} & {*shapes})
        if ambiguous:
            raise StoreError(
                f"{ambiguous[0]!r} names two arrays of this store. Give parameters and outputs "
                f"different names, other than {', '.join(_STATUS)}."
            )
        labels = label_dimensions(shapes, None, None)
        for name, shape in shapes.items():
            _create_array(group, plan, name, shape, types[name], *labels[name])
        for name, dtype in _STATUS.items():
            _create_array(group, plan, name, (), dtype, (), {})
        for name, leaf in zip(members.names, members.leaves, strict=True):
            group[name][...] = leaf
        (temporary / _PROGRESS / _PLAN).write_text(json.dumps(plan, indent=1))
        try:
            os.rename(temporary, path)
        except OSError:
            # If another process created the store in the meantime, its store is used.
            if not (path / _PROGRESS / _PLAN).exists():
                raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _create_array(
    group: Any,
    plan: dict[str, Any],
    name: str,
    shape: tuple[int, ...],
    dtype: Any,
    dims: tuple[str, ...],
    attributes: dict[str, str],
) -> None:
    # Integers have no NaN, so that missing shards are recognised by `done` alone.
    group.create_array(
        name,
        shape=(plan["members"], *shape),
        chunks=(plan["shard"], *(max(n, 1) for n in shape)),
        dtype=np.dtype(dtype),
        fill_value=np.nan if np.dtype(dtype).kind in "fc" else 0,
        dimension_names=("member", *dims),
        attributes=attributes,
    )
