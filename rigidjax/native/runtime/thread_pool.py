"""Batches on all cores: threads of XLA's pool take parts of a batch until none is left.

A part is a chunk of batch elements; with lane compaction each lane takes single elements. The
calling thread works as well, and waits only for parts that other threads have begun. A thread that
is busy elsewhere or starts late finds nothing left, so that no thread waits for one that cannot
run.
"""

import os
from typing import Any

from llvmlite import ir

from ..values.builder import I64, Builder, Value, int64
from ..values.lanes import POINTER
from .ffi_frame import CallFrame

# Smallest number of batch elements of a chunk; number of chunks for each thread.
_MIN_CHUNK, _CHUNKS_PER_THREAD = 32, 8
_SETTING = "RIGIDJAX_KERNEL_THREADS"
# Slots of the state that the threads share: the next batch element, the number of finished ones,
# the number of threads that may still access the state, pointers to arguments and results, the
# number of batch elements, and the size of a chunk. Lane compaction uses the first two.
_NEXT, _DONE, _USERS, _INPUTS, _OUTPUTS, _COUNT, _CHUNK, _NUM_SLOTS = range(8)


def max_threads() -> int:
    """Return the number of threads that a call may use; 0 for all threads of XLA's pool.

    The environment variable RIGIDJAX_KERNEL_THREADS sets it.

    **Raises:** `ValueError` if the variable is not a non-negative integer.
    """
    asked = os.environ.get(_SETTING, "0")
    if not asked.isdecimal():
        raise ValueError(
            f"The environment variable {_SETTING} must be a number of threads (0: as many as XLA "
            f"has); got {asked!r}."
        )
    return int(asked)


def emit_parallel_batch(
    frame: CallFrame,
    count: Value,
    inputs: Value,
    outputs: Value,
    width: int,
    run: ir.Function,
    uses_lane_compaction: bool,
) -> None:
    """Emit code that computes a batch in parallel.

    The code is appended at the builder's position, which afterwards is behind it.

    **Arguments:** `count`, number of batch elements; `inputs` and `outputs`, arrays of pointers;
    `width`, number of lanes; `run`, the function `run(inputs, outputs, first, last)` that computes
    a range of batch elements, or, if it `uses_lane_compaction`, the function `run(inputs, outputs,
    state, count)`, which computes elements until none is left.
    """
    build, module = frame.builder, frame.builder.module
    smallest = int64(width if uses_lane_compaction else _MIN_CHUNK)
    several, alone, end = (build.append_basic_block(name) for name in ("several", "alone", "end"))
    build.cbranch(build.icmp_signed(">", count, smallest), several, alone)
    build.position_at_end(alone)
    first = int64(0)
    if uses_lane_compaction:
        own = build.alloca(I64, 2)
        for slot in (_NEXT, _DONE):
            build.store(int64(0), _slot_pointer(build, own, slot))
        first = build.ptrtoint(own, I64)
    build.call(run, [inputs, outputs, first, count])
    build.branch(end)
    build.position_at_end(several)
    threads = frame.num_threads()
    if most := max_threads():
        limit = int64(most)
        threads = build.select(build.icmp_signed("<", threads, limit), threads, limit)
    chunks = build.mul(threads, int64(_CHUNKS_PER_THREAD))
    chunk = build.sdiv(build.add(count, build.sub(chunks, int64(1))), chunks)
    # A chunk is a multiple of the number of lanes.
    chunk = build.mul(build.sdiv(build.add(chunk, int64(width - 1)), int64(width)), int64(width))
    chunk = build.select(build.icmp_signed("<", chunk, smallest), smallest, chunk)
    shared = build.call(module.globals["malloc"], [int64(8 * _NUM_SLOTS)])
    zero, one = (int64(k) for k in (0, 1))
    # The calling thread counts twice: it accesses the state again while it waits.
    users = build.add(threads, one)
    for slot, value in (
        (_NEXT, zero), (_DONE, zero), (_USERS, users), (_COUNT, count), (_CHUNK, chunk),
        (_INPUTS, build.ptrtoint(inputs, I64)), (_OUTPUTS, build.ptrtoint(outputs, I64)),
    ):  # fmt: skip
        build.store(value, _slot_pointer(build, shared, slot))
    worker = _emit_worker(module, run, uses_lane_compaction)
    call, waiting, ready = (build.append_basic_block(k) for k in ("call", "waiting", "ready"))
    loop, entry = build.append_basic_block("turn"), build.block
    build.branch(loop)
    build.position_at_end(loop)
    k = build.phi(I64)
    k.add_incoming(one, entry)
    asking = build.append_basic_block("asking")
    build.cbranch(build.icmp_signed("<", k, threads), asking, call)
    build.position_at_end(asking)
    refused = frame.schedule(worker, shared)
    # A task that XLA refused will not release the state.
    missing = build.select(refused, one, zero)
    build.atomic_rmw("sub", _slot_pointer(build, shared, _USERS), missing, "acq_rel")
    k.add_incoming(build.add(k, one), build.block)
    build.branch(loop)
    build.position_at_end(call)
    build.call(worker, [shared])
    build.branch(waiting)
    build.position_at_end(waiting)
    done = build.load_atomic(_slot_pointer(build, shared, _DONE), "acquire", 8, typ=I64)
    rest = build.append_basic_block("rest")
    build.cbranch(build.icmp_signed("<", done, count), rest, ready)
    build.position_at_end(rest)
    build.call(_declare(module, "sched_yield", ir.FunctionType(ir.IntType(32), [])), [])
    build.branch(waiting)
    build.position_at_end(ready)
    build.call(_emit_release(module), [shared])
    build.branch(end)
    build.position_at_end(end)


def _slot_pointer(build: Builder, shared: Value, k: int) -> Value:
    return build.gep(shared, [int64(k)], source_etype=I64)


def _declare(module: ir.Module, name: str, kind: ir.FunctionType) -> Any:
    return module.globals.get(name) or ir.Function(module, kind, name)


def _emit_release(module: ir.Module) -> Any:
    """Return the function by which a thread releases the shared state; the last one frees it."""
    if "leave" in module.globals:
        return module.globals["leave"]
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [POINTER]), "leave")
    function.linkage = "internal"
    (shared,) = function.args
    build = Builder(function.append_basic_block("entry"))
    one = int64(1)
    users = build.atomic_rmw("sub", _slot_pointer(build, shared, _USERS), one, "acq_rel")
    with build.if_then(build.icmp_signed("==", users, one)):
        build.call(module.globals["free"], [shared])
    build.ret_void()
    return function


def _emit_worker(module: ir.Module, run: ir.Function, uses_lane_compaction: bool) -> ir.Function:
    """Return the function of a thread, which computes parts of the batch until none is left."""
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [POINTER]), "work")
    function.linkage = "internal"
    (shared,) = function.args
    entry, chunk, end = (function.append_basic_block(name) for name in ("entry", "piece", "end"))
    build = Builder(entry)
    size, count = (build.load(_slot_pointer(build, shared, k), typ=I64) for k in (_CHUNK, _COUNT))
    take = function.append_basic_block("take")
    build.branch(take)
    build.position_at_end(take)
    waiting = _slot_pointer(build, shared, _NEXT)
    if uses_lane_compaction:
        first = build.load_atomic(waiting, "acquire", 8, typ=I64)
    else:
        first = build.atomic_rmw("add", waiting, size, "acq_rel")
    build.cbranch(build.icmp_signed("<", first, count), chunk, end)
    build.position_at_end(chunk)
    arrays = [
        build.inttoptr(build.load(_slot_pointer(build, shared, k), typ=I64), POINTER)
        for k in (_INPUTS, _OUTPUTS)
    ]
    if uses_lane_compaction:
        build.call(run, [*arrays, build.ptrtoint(shared, I64), count])
        build.branch(end)
    else:
        last = build.add(first, size)
        last = build.select(build.icmp_signed("<", last, count), last, count)
        build.call(run, [*arrays, first, last])
        done = _slot_pointer(build, shared, _DONE)
        build.atomic_rmw("add", done, build.sub(last, first), "acq_rel")
        build.branch(take)
    build.position_at_end(end)
    build.call(_emit_release(module), [shared])
    build.ret_void()
    return function
