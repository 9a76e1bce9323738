"""A kernel: machine code of a jaxpr for a batch, as a function that XLA calls.

The function `block(inputs, outputs, workspace, first, count)` loads the arguments of W batch
elements into lanes, evaluates the jaxpr and stores the results. With lane compaction it does so for
batch elements until none is left, and `first` is the address of their shared counter. The handler
reads the buffers from XLA's call frame (see `ffi_frame`) and calls `block` for the whole batch.
"""

import dataclasses
import functools

import numpy as np
from jax.extend.core import ClosedJaxpr
from llvmlite import ir

from ..lowering import rules  # noqa: F401  (fills the registry)
from ..lowering.block_io import load_argument, store_result
from ..lowering.emitter import Emitter
from ..lowering.uniformity import all_lanes_if, broadcast_to_lanes, take_first_lane
from ..passes.analysis import cost, count_outside_registers
from ..passes.loop_fusion import fuse_loops
from ..passes.outlining import find_jaxprs_to_outline
from ..values.builder import I64, Builder, Value, int64
from ..values.lanes import POINTER, Lanes
from ..values.memory import KernelMemory
from . import disk
from .cache_key import compute_cache_key
from .codegen import (
    MachineCode,
    OptimisationLevel,
    choose_optimisation_level,
    compile_module,
    default_width,
    max_width,
)
from .ffi_frame import CallFrame
from .garbage import gc_paused
from .lane_compaction import ConstantTripCount, LaneCompaction, MainLoopSplit, split_at_main_loop
from .registered import KERNEL, REGISTRY_LOCK, is_in_executable, register
from .thread_pool import emit_parallel_batch

# Bytes of workspace, without tables, up to which a kernel has `max_width` lanes: the size of a
# first-level cache. Wide blocks make explicit solvers and their derivatives faster; those of
# `Radau5` exceed the cache and are slower. See `docs/benchmarks/`.
FIRST_CACHE = 48 * 1024
# Cost of a jaxpr, without arrays in memory, above which the wide block is not even emitted.
LONG_JAXPR = 50_000


@dataclasses.dataclass(frozen=True)
class Signature:
    """Options of a kernel beside its jaxpr.

    **Attributes:**

    - `batched`: for each argument whether it has a batch axis, which is the first axis.
    - `is_batch`: whether there is a batch at all.
    - `run_once`: compile fast rather than well.
    - `num_tangents`: length of the stacks of tangents in the jaxpr, 0 if there are none.
    - `num_uniform`: number of first results that depend on no batched argument. Only the result of
      the first batch element is used, the others need not be stored.
    - `is_small_batch`: whether there are at most `default_width` batch elements.
    """

    batched: tuple[bool, ...]
    is_batch: bool
    run_once: bool = False
    num_tangents: int = 0
    num_uniform: int = 0
    is_small_batch: bool = False


class Kernel:
    """Machine code of a jaxpr for one signature.

    **Attributes:** `code`; `name`, under which it is registered with XLA.
    """

    @gc_paused()
    def __init__(self, closed: ClosedJaxpr, signature: Signature):
        # The jaxpr is kept alive, because its address is the key of the kernel.
        self.source, self.signature = closed, signature
        key = None if is_in_executable.get() else compute_cache_key(closed, signature)
        code = None if key is None else self._read_from_disk(key)
        if code is None:
            code = register(compile_module(self.text, self._optimisation))
            if key is not None:
                level, *passes = str(self._optimisation.level), *self._optimisation.passes
                disk.write(key, " ".join((code.name, level, *passes)).encode())
        self.code = code
        self.name = KERNEL + self.code.name

    def _read_from_disk(self, key: str) -> MachineCode | None:
        """Return the code that another process has compiled; `None` if it is not on disk."""
        record = disk.read(key)
        if record is None:
            return None
        name, level, *passes = record.decode().split()
        machine_code = disk.read(name)
        if machine_code is None:
            return None
        optimisation = OptimisationLevel(tuple(passes), int(level))
        return register(MachineCode(name, machine_code, lambda: self.text, optimisation))

    @functools.cached_property
    def _outlined_jaxprs(self) -> frozenset[int]:
        return frozenset() if self.signature.is_batch else find_jaxprs_to_outline(self.source)

    @functools.cached_property
    def emitted_jaxpr(self) -> ClosedJaxpr:
        """The jaxpr as it is emitted."""
        return fuse_loops(
            self.source, num_tangents=self.signature.num_tangents, shared=self._outlined_jaxprs
        )

    @functools.cached_property
    def _emission(self) -> tuple[str, int, bool]:
        parts = None
        if self.signature.is_batch and not self.signature.num_uniform:
            parts = split_at_main_loop(self.emitted_jaxpr, self.signature.batched)
        text, width = "", 0
        for width in self._widths():
            try:
                text, num_bytes = self._emit(width, parts)
            except ConstantTripCount:
                parts = None
                text, num_bytes = self._emit(width, None)
            if num_bytes <= FIRST_CACHE:
                break
        return text, width, parts is not None

    @property
    def text(self) -> str:
        """The module as it is emitted."""
        return self._emission[0]

    @property
    def width(self) -> int:
        """Number of lanes of a block."""
        return self._emission[1]

    @property
    def uses_lane_compaction(self) -> bool:
        """Whether a lane takes another batch element when its element has finished."""
        return self._emission[2]

    @property
    def _optimisation(self) -> OptimisationLevel:
        return choose_optimisation_level(
            self.text, self.signature.is_batch, self.signature.run_once
        )

    def _widths(self) -> list[int]:
        """Return numbers of lanes to try; the first one whose workspace fits the cache is used."""
        if not self.signature.is_batch:
            return [1]
        jaxpr, width = self.emitted_jaxpr.jaxpr, default_width()
        is_long = cost(jaxpr) - count_outside_registers(jaxpr) > LONG_JAXPR
        if self.signature.run_once or self.signature.is_small_batch or is_long:
            return [width]
        return [max_width(), width] if max_width() > width else [width]

    def _emit(self, width: int, parts: MainLoopSplit | None) -> tuple[str, int]:
        """Return the text of the module, and the bytes of its workspace without tables."""
        module = ir.Module("rigidjax")
        memory = emit_block(
            module, self.emitted_jaxpr, self.signature, width, parts, row=default_width(),
            has_divergence=self.signature.num_uniform > 0,
        )  # fmt: skip
        workspace_bytes = memory.bytes
        _emit_handler(
            module, self.emitted_jaxpr, self.signature, width, workspace_bytes, parts is not None
        )
        return str(module), workspace_bytes - memory.table_bytes


_kernels: dict[tuple, Kernel] = {}


def get_kernel(closed: ClosedJaxpr, signature: Signature) -> Kernel:
    """Return the kernel of a jaxpr, emitted and compiled at the first call."""
    key = id(closed), signature
    with REGISTRY_LOCK:
        if key not in _kernels:
            _kernels[key] = Kernel(closed, signature)
        return _kernels[key]


@np.errstate(all="ignore")  # infinities and NaN are valid compile-time constants
def emit_block(
    module: ir.Module, closed: ClosedJaxpr, signature: Signature, width: int,
    parts: MainLoopSplit | None = None, row: int = 1, warp: int = 1, has_divergence: bool = False,
) -> KernelMemory:  # fmt: skip
    """Emit the function `block`.

    **Arguments:**

    - `width`: number of lanes.
    - `parts`: parts of the jaxpr around its main loop for lane compaction, `None` without it.
    - `row`: vector width along rows of matrices, see `Emitter`.
    - `warp`: number of GPU threads that share the workspace. If there are several, the last
      argument of `block` is the index of the thread among them.
    - `has_divergence`: whether uniform values are computed once as scalars, see `uniformity`.

    **Returns:** the workspace that the function needs.
    """
    kind = ir.FunctionType(
        ir.VoidType(), [POINTER, POINTER, POINTER, I64, I64, *[I64] * (warp > 1)]
    )
    function = ir.Function(module, kind, "block")
    function.linkage = "internal"
    # If LLVM inlined the function, it would optimise the instructions again in each caller.
    function.attributes.add("noinline")
    # Without this alignment, spilled vectors cross cache lines on the stack.
    function.attributes.alignstack = 64 if width > 1 else 0
    inputs, outputs, workspace, first, count, *thread = function.args
    workspace.add_attribute("noalias")
    entry = function.append_basic_block("entry")
    builder = Builder(entry)
    start = function.append_basic_block("start")
    builder.branch(start)
    builder.position_at_end(start)
    lanes, row = (1, width) if has_divergence else (width, row)
    warp_thread = (warp, thread[0]) if thread else None
    em = Emitter(builder, lanes, workspace, row, warp=warp_thread, has_divergence=has_divergence)
    sources = [_load_pointer(builder, inputs, k) for k in range(len(closed.in_avals))]
    targets = [_load_pointer(builder, outputs, k) for k in range(len(closed.out_avals))]
    if parts is None:
        with all_lanes_if(em, has_divergence):
            elements = _batch_indices(em.lanes, first, count)
        limits, args = em.find_register_limits(closed.jaxpr, [None] * len(sources)), []
        for pointer, aval, batched, limit in zip(
            sources, closed.in_avals, signature.batched, limits, strict=True
        ):
            with all_lanes_if(em, has_divergence and batched):
                indices = elements if batched else None
                args.append(load_argument(em, pointer, aval, indices, limit))
        results = em.emit(closed, args)
        result_elements = elements if signature.is_batch else [int64(0)]
        for k, (pointer, aval) in enumerate(zip(targets, closed.out_avals, strict=True)):
            if k < signature.num_uniform:
                store_result(em, pointer, aval, take_first_lane(em, results[k]), [int64(0)])
                continue
            with all_lanes_if(em, has_divergence):
                result = broadcast_to_lanes(em, results[k]) if has_divergence else results[k]
                store_result(em, pointer, aval, result, result_elements)
    else:
        progress = builder.inttoptr(first, POINTER)
        LaneCompaction(em, closed, signature.batched, parts).emit(sources, targets, progress, count)
    builder.ret_void()
    return em.memory


def _batch_indices(lanes: Lanes, first: Value, count: Value) -> list[Value]:
    """Return the index of the batch element of each lane; surplus lanes repeat the last one."""
    build, out = lanes.builder, []
    last = build.sub(count, int64(1))
    for k in range(lanes.width):
        element = build.add(first, int64(k))
        out.append(build.select(build.icmp_signed("<", element, last), element, last))
    return out


def _load_pointer(builder: Builder, pointers: Value, k: int) -> Value:
    """Load the pointer with index `k` from an array of pointers."""
    return builder.load(builder.gep(pointers, [int64(k)], source_etype=POINTER), typ=POINTER)


def _emit_handler(
    module: ir.Module, closed: ClosedJaxpr, signature: Signature, width: int,
    workspace_bytes: int, uses_lane_compaction: bool,
) -> None:  # fmt: skip
    """Emit the function that XLA calls."""
    function = ir.Function(module, ir.FunctionType(POINTER, [POINTER]), "handler")
    frame = CallFrame(function)
    builder = frame.builder
    inputs = frame.pointers(frame.arguments, len(closed.in_avals))
    outputs = frame.pointers(frame.results, len(closed.out_avals))
    malloc = ir.Function(module, ir.FunctionType(POINTER, [I64]), "malloc")
    free = ir.Function(module, ir.FunctionType(ir.VoidType(), [POINTER]), "free")
    run = _emit_range(module, width, workspace_bytes, uses_lane_compaction, malloc, free)
    if signature.is_batch:
        count = frame.first_extent(frame.results, 0)
        emit_parallel_batch(frame, count, inputs, outputs, width, run, uses_lane_compaction)
    else:
        builder.call(run, [inputs, outputs, int64(0), int64(1)])
    builder.ret(ir.Constant(POINTER, None))


def _emit_range(
    module: ir.Module, width: int, workspace_bytes: int, uses_lane_compaction: bool,
    malloc: ir.Function, free: ir.Function,
) -> ir.Function:  # fmt: skip
    """Emit a function that calls `block` for a range of batch elements, or once, with its arguments
    `first` and `count`, if lane compaction distributes the elements.
    """
    kind = ir.FunctionType(ir.VoidType(), [POINTER, POINTER, I64, I64])
    function = ir.Function(module, kind, "members")
    function.linkage = "internal"
    function.attributes.add("noinline")
    inputs, outputs, begin, last = function.args
    before = function.append_basic_block("entry")
    builder = Builder(before)
    allocated = builder.call(malloc, [int64(workspace_bytes + 64)])
    # The workspace begins at a cache line.
    aligned = builder.and_(builder.add(builder.ptrtoint(allocated, I64), int64(63)), int64(-64))
    workspace = builder.inttoptr(aligned, POINTER)
    block = module.globals["block"]
    if uses_lane_compaction:
        with builder.if_then(builder.icmp_signed(">", last, int64(0))):
            builder.call(block, [inputs, outputs, workspace, begin, last])
    else:
        test, body, end = (function.append_basic_block(name) for name in ("test", "turn", "end"))
        builder.branch(test)
        builder.position_at_end(test)
        first = builder.phi(I64)
        first.add_incoming(begin, before)
        builder.cbranch(builder.icmp_signed("<", first, last), body, end)
        builder.position_at_end(body)
        builder.call(block, [inputs, outputs, workspace, first, last])
        first.add_incoming(builder.add(first, int64(width)), body)
        builder.branch(test)
        builder.position_at_end(end)
    builder.call(free, [allocated])
    builder.ret_void()
    return function
