"""Ensembles in Zarr stores, written shard by shard, so that a killed process loses no shard.

A store is a folder: a Zarr 3 group with one array for each parameter and output. The leading axis
numbers the members, and the chunks of an array are the shards. The empty group `progress` contains
further files: `plan.json`, the description of the ensemble, and `done/`, a file for each complete
shard, moved there after the shard was written.
"""

import functools
import hashlib
import json
import math
import os
import pathlib
import shutil
import uuid
from typing import Any

import jax
import numpy as np

from .._version import __version__
from ..checks import find_duplicates
from ..extras import import_optional
from .members import STATUS_TYPES, Members, Status
from .result import label_dimensions, with_joint_names
from .traced_run import TracedRun

_PROGRESS, _PLAN = "progress", "plan.json"


class StoreError(ValueError):
    """Error of a store that is incomplete, damaged, or made for another ensemble."""


class Store:
    """Shards of one ensemble on disk.

    **Attributes:** `path`, of the folder; `plan`, the description of the ensemble; `count`, the
    number of members; `size`, the number of members in a shard; `num_shards`, the number of shards.
    """

    def __init__(self, path: str | os.PathLike[str]):
        self.path = pathlib.Path(path)
        self.plan = _read_plan(self.path)
        self.count: int = self.plan["members"]
        self.size: int = self.plan["shard"]
        self.num_shards = math.ceil(self.count / self.size)
        self._done = self.path / _PROGRESS / "done"

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
        if not path.exists():
            try:
                _create(path, plan, members, traced_run)
            except OSError as error:
                reason = error.strerror or str(error)
                raise OSError(error.errno, f"Cannot write {path}: {reason}") from error
        elif not resume:
            raise FileExistsError(
                f"{path} exists. Choose another name, delete it, or continue with `resume=True`."
            )
        store = cls(path)
        differing = [key for key in plan if plan[key] != store.plan.get(key)]
        if differing:
            changes = "; ".join(f"{k} was {store.plan.get(k)}, is {plan[k]}" for k in differing)
            raise StoreError(
                f"{path} was made for another ensemble: {changes}. Choose another name, or restore "
                "the arguments."
            )
        return store

    def done(self) -> set[int]:
        """Return the numbers of the complete shards."""
        return {int(name) for name in os.listdir(self._done) if name.isdigit()}

    def num_done(self) -> int:
        """Return the number of members in complete shards."""
        return sum(min(self.size, self.count - k * self.size) for k in self.done())

    def missing(self) -> list[int]:
        """Return the numbers of the incomplete shards, increasing."""
        return sorted(set(range(self.num_shards)) - self.done())

    def write(self, part: np.ndarray, outputs: list[np.ndarray], status: Status) -> None:
        """Write a shard, then mark it as complete, so that a killed process leaves it missing.

        **Arguments:** `part`, the indices of its members in the order of the results.
        **Raises:** `OSError` with the remedy if the disk cannot be written.
        """
        order = np.argsort(part)
        number = int(part[order[0]]) // self.size
        arrays = dict(zip(self.plan["outputs"], outputs, strict=True)) | status._asdict()
        try:
            self._write(number, {name: values[order] for name, values in arrays.items()})
        except OSError as error:
            raise OSError(
                error.errno,
                f"{error.strerror or error}: shard {number} of {self.path} could not be written. "
                f"{len(self.done())} of {self.num_shards} shards are complete and kept; free disk "
                "space or change permissions, and repeat the call",
            ) from error

    def _write(self, number: int, arrays: dict[str, np.ndarray]) -> None:
        begin = number * self.size
        for name, values in arrays.items():
            self._group[name][begin : begin + len(values)] = values
        self._mark_complete(number, int(np.count_nonzero(arrays["result"])))

    def _mark_complete(self, number: int, failed: int) -> None:
        """Mark a shard as complete by a file that is created atomically."""
        temporary = self._done / f".{number}.{uuid.uuid4().hex}"
        temporary.write_text(json.dumps({"failed": failed}))
        os.replace(temporary, self._done / str(number))

    def read(self) -> tuple[list[np.ndarray], Status]:
        """Return outputs and status of all members.

        **Raises:** `StoreError` while shards are missing.
        """
        self._check_complete()
        outputs, status = (
            [np.asarray(self._group[name][...]) for name in names]
            for names in (self.plan["outputs"], Status._fields)
        )
        return outputs, Status(*status)

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
        return sum(json.loads((self._done / str(k)).read_text())["failed"] for k in self.done())

    @functools.cached_property
    def _group(self) -> Any:
        zarr = import_optional("zarr", "Stores of ensembles")
        return zarr.open_group(str(self.path), mode="r+", zarr_format=3)


def make_plan(
    members: Members, traced_run: TracedRun, size: int, lengths: Any = None
) -> dict[str, Any]:
    """Return the description that determines all results.

    It contains hashes of the run and of the parameters, their order, the precision and versions.
    """
    if lengths is not None and not isinstance(lengths, str):
        lengths = hashlib.sha256(np.asarray(lengths, float).tobytes()).hexdigest()[:16]
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
        "lengths": lengths,
        "precision": "double" if jax.config.read("jax_enable_x64") else "single",
        "platform": jax.default_backend(),
        "versions": {"rigidjax": __version__, "jax": jax.__version__},
    }


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
    zarr = import_optional("zarr", "Stores of ensembles")

    ambiguous = find_duplicates([*members.names, *traced_run.names, *Status._fields])
    if ambiguous:
        raise StoreError(
            f"{ambiguous[0]!r} names two arrays of this store. Give parameters and outputs "
            f"different names, other than {', '.join(Status._fields)}."
        )
    parameters = dict(zip(members.names, members.leaves, strict=True))
    arrays = {name: (leaf.shape[1:], leaf.dtype) for name, leaf in parameters.items()}
    for name, output in zip(traced_run.names, traced_run.shapes, strict=True):
        arrays[name] = output.shape, output.dtype
    labels = label_dimensions({name: shape for name, (shape, _) in arrays.items()}, None, None)
    for name, dtype in STATUS_TYPES._asdict().items():
        arrays[name], labels[name] = ((), np.dtype(dtype)), ((), {})
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    try:
        group: Any = zarr.create_group(str(temporary), zarr_format=3)
        group.create_group(_PROGRESS)
        for name, (shape, dtype) in arrays.items():
            # Integers have no NaN, so that missing shards are recognised by `done` alone.
            group.create_array(
                name,
                shape=(members.count, *shape),
                chunks=(plan["shard"], *(max(n, 1) for n in shape)),
                dtype=dtype,
                fill_value=np.nan if dtype.kind in "fc" else 0,
                dimension_names=("member", *labels[name][0]),
                attributes=labels[name][1],
            )
        for name, leaf in parameters.items():
            group[name][...] = leaf
        (temporary / _PROGRESS / "done").mkdir()
        (temporary / _PROGRESS / _PLAN).write_text(json.dumps(plan, indent=1))
        os.rename(temporary, path)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
