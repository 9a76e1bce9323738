"""Ensembles in Zarr stores: shards written whole and marked as done, so that any kill is survived.

A store is a folder: a Zarr 3 group with one array for each parameter and output, the members in
front, whose chunks are the shards, and an empty group `progress` with files of our own:
`plan.json`, what is computed; `done/`, a file for each shard that is complete, moved there after
the shard was written; `leases/`, who works on what.
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
from .chunks import Done
from .leases import Lease, me
from .members import Members
from .program import Program, Status
from .result import labelled

_PROGRESS, _PLAN = "progress", "plan.json"
_STATUS = {"result": "int32", "num_steps": "int32", "reached": "float64"}


class StoreError(ValueError):
    """A store that cannot be taken: foreign, damaged, or made for something else."""


class Store:
    """The shards of one ensemble on disk.

    **Attributes:** `path`; `plan`, what is computed.
    """

    def __init__(self, path: str | os.PathLike[str]):
        self.path = pathlib.Path(path)
        self.plan = _read_plan(self.path)
        self._progress = self.path / _PROGRESS
        self._group: Any = None
        self._leases: dict[int, contextlib.ExitStack] = {}

    @classmethod
    def opened(
        cls, path: str | os.PathLike[str], plan: dict[str, Any], members: Members,
        program: Program, resume: bool,
    ) -> "Store":  # fmt: skip
        """A new store, or the one that is there if it has the same plan.

        **Raises:** `StoreError` for another plan or another folder; `FileExistsError` unless
        `resume`; `OSError` for a folder that cannot be written.
        """
        path = pathlib.Path(path)
        if path.suffix != ".zarr":
            raise StoreError(f"Ensembles are written to folders named *.zarr; got {path}.")
        if not path.parent.is_dir():
            raise FileNotFoundError(f"Cannot write {path}: there is no folder {path.parent}.")
        if path.exists():
            if not resume:
                raise FileExistsError(
                    f"{path} exists. Choose another name, delete it, or go on with `resume=True`."
                )
            store = cls(path)
            store._check(plan)
            return store
        try:
            _create(path, plan, members, program)
        except OSError as error:
            reason = error.strerror or str(error)
            raise OSError(error.errno, f"Cannot write {path}: {reason}") from error
        # Another process may have been first: then its store is there.
        store = cls(path)
        store._check(plan)
        return store

    def _check(self, plan: dict[str, Any]) -> None:
        differing = [key for key in plan if plan[key] != self.plan.get(key)]
        if differing:
            changes = "; ".join(f"{k} was {self.plan.get(k)}, is {plan[k]}" for k in differing)
            raise StoreError(
                f"{self.path} was made for another ensemble: {changes}. Choose another name, or "
                "run what it was made for."
            )

    @property
    def count(self) -> int:
        """The number of members."""
        return self.plan["members"]

    @property
    def size(self) -> int:
        """Members of a shard."""
        return self.plan["shard"]

    @property
    def num_shards(self) -> int:
        """The number of shards."""
        return -(-self.count // self.size)

    def done(self) -> set[int]:
        """Numbers of the shards that are complete."""
        return {int(name) for name in os.listdir(self._progress / "done") if name.isdigit()}

    def num_done(self) -> int:
        """How many members are in them."""
        return sum(min(self.size, self.count - k * self.size) for k in self.done())

    def missing(self) -> list[int]:
        """Numbers of the shards that are not complete, increasing."""
        return sorted(set(range(self.num_shards)) - self.done())

    def write(self, done: Done) -> None:
        """Write a shard, then mark it as done: a kill in between leaves it missing.

        **Raises:** `OSError` of the disk, with what to do.
        """
        try:
            self._write(done)
        except OSError as error:
            raise OSError(
                error.errno,
                f"{error.strerror or error}: shard {done.number} of {self.path} could not be "
                f"written. {len(self.done())} of {self.num_shards} shards are done and stay; make "
                "room, or leave to write, and make the same call again",
            ) from error

    def _write(self, done: Done) -> None:
        group = self._open("r+")
        begin = done.number * self.size
        where = slice(begin, begin + len(done.status.result))
        arrays = dict(zip(self.plan["outputs"], done.outputs, strict=True))
        for name, values in {**arrays, **done.status._asdict()}.items():
            group[name][where] = values
        self._mark(done.number, int(np.count_nonzero(done.status.result)))
        self.release(done.number)

    def _mark(self, number: int, failed: int) -> None:
        """Say that a shard is complete, by a file that is there whole or not at all."""
        temporary = self._progress / "done" / f".{number}.{uuid.uuid4().hex}"
        temporary.write_text(json.dumps({"failed": failed, "worker": me()}))
        os.replace(temporary, self._progress / "done" / str(number))

    def release(self, *numbers: int) -> None:
        """Give back the claims to these shards, or to all of them."""
        for number in numbers or list(self._leases):
            if number in self._leases:
                self._leases.pop(number).close()

    def close(self) -> None:
        """Give back all claims."""
        self.release()

    def read(self) -> tuple[list[np.ndarray], Status]:
        """All outputs and ends.

        **Raises:** `StoreError` while shards are missing: nothing half-written is read as done.
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
                "missing. Go on with the same call and `resume=True`."
            )

    def to_xarray(self) -> Any:
        """Parameters, outputs and ends as an `xarray.Dataset`, read when they are used.

        **Raises:** as `read`.
        """
        import xarray

        self._check_complete()
        return xarray.open_zarr(self.path, consolidated=False, chunks=None)

    def failed(self) -> int:
        """How many members failed in the shards that are done."""
        notes = [(self._progress / "done" / str(k)).read_text() for k in self.done()]
        return sum(json.loads(note)["failed"] for note in notes)

    def _open(self, mode: Any) -> Any:
        import zarr

        if self._group is None or mode != "r":
            self._group = zarr.open_group(str(self.path), mode=mode, zarr_format=3)
        return self._group

    def claimed(self, first: int) -> Iterator[int | None]:
        """Missing shards that nobody else works on, one after the other, until none is missing.

        Each is claimed until it is written or released. The search begins at shard `first`, so that
        workers do not meet at the same one. While others work on the last ones it gives `None`:
        theirs are taken over if they die.
        """
        order = [*range(first, self.num_shards), *range(first)]
        while True:
            done, waiting = self.done(), False
            for number in order:
                if number in done or number in self._leases:
                    continue
                lease = Lease.taken(self._progress / "leases" / str(number))
                if lease is None:
                    waiting = True
                    continue
                self._leases[number] = contextlib.ExitStack()
                self._leases[number].enter_context(lease)
                # It may have been done since the list was read.
                if (self._progress / "done" / str(number)).exists():
                    self.release(number)
                else:
                    yield number
            if not waiting:
                return
            yield None


def plan_of(members: Members, program: Program, size: int, lengths: Any = None) -> dict[str, Any]:
    """What decides the numbers: program, parameters, their order, precision, versions."""
    return {
        "members": members.count,
        "shard": size,
        "parameters": members.names,
        "outputs": program.names,
        "shapes": [[*shape.shape] for shape in program.shapes],
        "types": [str(shape.dtype) for shape in program.shapes],
        "program": program.fingerprint(),
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
            raise ValueError("the plan is not whole")
    except (FileNotFoundError, NotADirectoryError, TypeError, ValueError) as error:
        raise StoreError(
            f"{path} is not a store of an ensemble: it has no readable {_PROGRESS}/{_PLAN}. Name "
            "another."
        ) from error
    return plan


def _create(path: pathlib.Path, plan: dict[str, Any], members: Members, program: Program) -> None:
    """A new store, made beside its place and moved there whole."""
    import shutil

    import zarr

    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        group: Any = zarr.create_group(str(temporary), zarr_format=3)
        group.create_group(_PROGRESS)
        for part in ("done", "leases"):
            (temporary / _PROGRESS / part).mkdir()
        shapes = {n: leaf.shape[1:] for n, leaf in zip(members.names, members.leaves, strict=True)}
        shapes |= {n: s.shape for n, s in zip(program.names, program.shapes, strict=True)}
        types = {n: leaf.dtype for n, leaf in zip(members.names, members.leaves, strict=True)}
        types |= {n: s.dtype for n, s in zip(program.names, program.shapes, strict=True)}
        taken = sorted({*members.names} & {*program.names} | {*_STATUS} & {*shapes})
        if taken:
            raise StoreError(
                f"{taken[0]!r} names two arrays of this store: name parameters and outputs "
                f"differently, and none of them {', '.join(_STATUS)}."
            )
        labels = labelled(shapes, None, None)
        for name, shape in shapes.items():
            _array(group, plan, name, shape, types[name], *labels[name])
        for name, dtype in _STATUS.items():
            _array(group, plan, name, (), dtype, (), {})
        for name, leaf in zip(members.names, members.leaves, strict=True):
            group[name][...] = leaf
        (temporary / _PROGRESS / _PLAN).write_text(json.dumps(plan, indent=1))
        try:
            os.rename(temporary, path)
        except OSError:
            # Another process made the store in the meantime; anything else is an error.
            if not (path / _PROGRESS / _PLAN).exists():
                raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _array(group, plan, name, shape, dtype, dims, attributes):
    # A bool or an integer has no NaN: what is missing is read from `done` alone.
    group.create_array(
        name,
        shape=(plan["members"], *shape),
        chunks=(plan["shard"], *(max(n, 1) for n in shape)),
        dtype=np.dtype(dtype),
        fill_value=np.nan if np.dtype(dtype).kind in "fc" else 0,
        dimension_names=("member", *dims),
        attributes=attributes,
    )
