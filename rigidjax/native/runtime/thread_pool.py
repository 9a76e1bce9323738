"""A batch on all cores: threads of XLA take pieces of it until none is left.

The thread that was called works too, and waits only for pieces that another one has begun: threads
that are busy elsewhere, or that come too late, find nothing to do. So nobody waits for a thread
that cannot run.
"""

import os

from llvmlite import ir

from ..lowering.builder import I64, Builder, Value, int64
from ..lowering.lanes import POINTER
from .ffi_frame import CallFrame

# Members of a piece at least; pieces for each thread.
_MEMBERS, _PIECES = 32, 8
_SETTING = "RIGIDJAX_KERNEL_THREADS"
# What the threads share: the next member, members that are done, threads that may still look
# here, the arguments and results, the number of members, the size of a piece.
_NEXT, _DONE, _USERS, _INPUTS, _OUTPUTS, _COUNT, _PIECE, _SLOTS = range(8)


def max_threads() -> int:
    """Threads that a call may take, all of XLA's if 0: the environment's RIGIDJAX_KERNEL_THREADS.

    **Raises:** `ValueError` if that is no number of threads.
    """
    asked = os.environ.get(_SETTING, "0")
    if not asked.isdecimal():
        raise ValueError(
            f"The variable {_SETTING} of the environment must be a number of threads (0: as many "
            f"as XLA has); got {asked!r}."
        )
    return int(asked)


def emit_parallel_batch(
    frame: CallFrame, count: Value, inputs: Value, outputs: Value, width: int, run: ir.Function
) -> None:
    """Emit what does all members of a batch; `run(inputs, outputs, first, last)` does some.

    At the end of the handler's block, and leaves it there.
    """
    build, module = frame.builder, frame.builder.module
    smallest = int64(_MEMBERS)
    several, alone, end = (build.append_basic_block(name) for name in ("several", "alone", "end"))
    build.cbranch(build.icmp_signed(">", count, smallest), several, alone)
    build.position_at_end(alone)
    build.call(run, [inputs, outputs, int64(0), count])
    build.branch(end)
    build.position_at_end(several)
    threads = frame.num_threads()
    if most := max_threads():
        limit = int64(most)
        threads = build.select(build.icmp_signed("<", threads, limit), threads, limit)
    pieces = build.mul(threads, int64(_PIECES))
    piece = build.sdiv(build.add(count, build.sub(pieces, int64(1))), pieces)
    # Whole blocks of lanes.
    piece = build.mul(
        build.sdiv(build.add(piece, int64(width - 1)), int64(width)),
        int64(width),
    )
    piece = build.select(build.icmp_signed("<", piece, smallest), smallest, piece)
    shared = build.call(module.globals["malloc"], [int64(8 * _SLOTS)])
    zero, one = (int64(k) for k in (0, 1))
    # One more than threads: this one looks again at the end.
    users = build.add(threads, one)
    for slot, value in (
        (_NEXT, zero), (_DONE, zero), (_USERS, users), (_COUNT, count), (_PIECE, piece),
        (_INPUTS, build.ptrtoint(inputs, I64)), (_OUTPUTS, build.ptrtoint(outputs, I64)),
    ):  # fmt: skip
        build.store(value, _slot(build, shared, slot))
    work = _emit_worker(module, run)
    call, waiting, ready = (build.append_basic_block(k) for k in ("call", "waiting", "ready"))
    turn, first_turn = build.append_basic_block("turn"), build.block
    build.branch(turn)
    build.position_at_end(turn)
    k = build.phi(I64)
    k.add_incoming(one, first_turn)
    asking = build.append_basic_block("asking")
    build.cbranch(build.icmp_signed("<", k, threads), asking, call)
    build.position_at_end(asking)
    refused = frame.schedule(work, shared)
    # Nobody comes for what was refused.
    lost = build.select(refused, one, zero)
    build.atomic_rmw("sub", _slot(build, shared, _USERS), lost, "acq_rel")
    k.add_incoming(build.add(k, one), build.block)
    build.branch(turn)
    build.position_at_end(call)
    build.call(work, [shared])
    build.branch(waiting)
    build.position_at_end(waiting)
    done = build.load_atomic(_slot(build, shared, _DONE), "acquire", 8, typ=I64)
    rest = build.append_basic_block("rest")
    build.cbranch(build.icmp_signed("<", done, count), rest, ready)
    build.position_at_end(rest)
    build.call(_declare(module, "sched_yield", ir.FunctionType(ir.IntType(32), [])), [])
    build.branch(waiting)
    build.position_at_end(ready)
    build.call(_emit_release(module), [shared])
    build.branch(end)
    build.position_at_end(end)


def _slot(build, shared, k):
    return build.gep(shared, [int64(k)], source_etype=I64)


def _declare(module, name, kind):
    return module.globals.get(name) or ir.Function(module, kind, name)


def _emit_release(module):
    """The function by which a thread says that it looks at what is shared no more."""
    if "leave" in module.globals:
        return module.globals["leave"]
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [POINTER]), "leave")
    function.linkage = "internal"
    (shared,) = function.args
    build = Builder(function.append_basic_block("entry"))
    one = int64(1)
    users = build.atomic_rmw("sub", _slot(build, shared, _USERS), one, "acq_rel")
    with build.if_then(build.icmp_signed("==", users, one)):
        build.call(module.globals["free"], [shared])
    build.ret_void()
    return function


def _emit_worker(module, run):
    """The function of a thread: pieces until there are none."""
    function = ir.Function(module, ir.FunctionType(ir.VoidType(), [POINTER]), "work")
    function.linkage = "internal"
    (shared,) = function.args
    entry, piece, end = (function.append_basic_block(name) for name in ("entry", "piece", "end"))
    build = Builder(entry)
    size, count = (build.load(_slot(build, shared, k), typ=I64) for k in (_PIECE, _COUNT))
    take = function.append_basic_block("take")
    build.branch(take)
    build.position_at_end(take)
    first = build.atomic_rmw("add", _slot(build, shared, _NEXT), size, "acq_rel")
    build.cbranch(build.icmp_signed("<", first, count), piece, end)
    build.position_at_end(piece)
    last = build.add(first, size)
    last = build.select(build.icmp_signed("<", last, count), last, count)
    arrays = [
        build.inttoptr(build.load(_slot(build, shared, k), typ=I64), POINTER)
        for k in (_INPUTS, _OUTPUTS)
    ]
    build.call(run, [*arrays, first, last])
    build.atomic_rmw("add", _slot(build, shared, _DONE), build.sub(last, first), "acq_rel")
    build.branch(take)
    build.position_at_end(end)
    build.call(_emit_release(module), [shared])
    build.ret_void()
    return function
