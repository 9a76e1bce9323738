"""Kernels on a GPU: loaded by the CUDA driver and launched on XLA's stream.

The handler that XLA calls is host code: it reads the buffers from the call frame, allocates scratch
memory by XLA and calls the driver. No Python code runs in a call.
"""

import ctypes
import functools
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import jax
from jax.extend.core import ClosedJaxpr
from llvmlite import ir

from ...primitives.registry import NoRule
from ...values.builder import I32, I64, Builder, Value, int32, int64
from ...values.lanes import POINTER
from .. import disk as disk
from ..codegen import GPUS, MachineCode, compile_module
from ..ffi_frame import CallFrame, global_variable
from ..kernel import REGISTRY_LOCK, Signature, get_kernel
from . import host_fallback as host, ptx as gpu

# Threads of a block; largest number of threads of a kernel with scratch memory; largest batch that
# the host computes (see `host_fallback`).
_BLOCK, _THREADS, _SMALL_BATCH = gpu.WARP, 1 << 17, gpu.WARP
_LIBRARY = "libcuda.so.1"
# JIT options of CUDA: the buffer for error messages and its size.
_LOG, _LOG_BYTES = 5, 6


class Driver(Protocol):
    """Functions that are needed of the CUDA driver."""

    def load(self, ptx: str) -> int:
        """Load PTX and return the driver's handle of the kernel."""
        ...

    def address(self, name: str) -> int:
        """Return the address of a function of the driver."""
        ...


class Cuda:
    """The CUDA driver of this machine, which JAX uses as well.

    **Errors:** `OSError` on a machine without a driver; `RuntimeError` for one older than CUDA 12.
    """

    def __init__(self):
        self._library = ctypes.CDLL(_LIBRARY)
        if not hasattr(self._library, "cuLibraryLoadData"):
            raise RuntimeError(f"{_LIBRARY} is older than CUDA 12.")
        self._call("cuInit", 0)

    def load(self, ptx: str) -> int:
        """Load PTX, compile it for the GPU, and return the driver's handle of the kernel.

        **Raises:** `RuntimeError` if the driver rejects it.
        """
        log = ctypes.create_string_buffer(4_096)
        options = (ctypes.c_int * 2)(_LOG, _LOG_BYTES)
        values = (ctypes.c_void_p * 2)(ctypes.addressof(log), ctypes.sizeof(log))
        library, kernel = ctypes.c_void_p(), ctypes.c_void_p()
        text = ptx.encode() + b"\0"
        self._call(
            "cuLibraryLoadData", ctypes.byref(library), text, options, values, 2, None, None, 0,
            log=log,
        )  # fmt: skip
        self._call("cuLibraryGetKernel", ctypes.byref(kernel), library, gpu.NAME.encode())
        return kernel.value or 0

    def address(self, name: str) -> int:
        """Return the address of a function of the driver."""
        return ctypes.cast(getattr(self._library, name), ctypes.c_void_p).value or 0

    def _call(self, name: str, *args: Any, log: Any = None) -> None:
        code = getattr(self._library, name)(*args)
        if code:
            text = ctypes.c_char_p()
            self._library.cuGetErrorName(code, ctypes.byref(text))
            log_text = log.value.decode(errors="replace") if log is not None else ""
            error_name = (text.value or b"").decode()
            raise RuntimeError(
                f"CUDA's {name} failed with {error_name} ({code}). {log_text} Use "
                '`backend="xla"`, or a driver for CUDA 12 or newer.'
            )


@functools.cache
def find_driver() -> Driver | None:
    """Return the CUDA driver; `None` on a machine without one."""
    try:
        return Cuda()
    except (OSError, RuntimeError):
        return None


@functools.cache
def find_architecture() -> str | None:
    """Return the newest of `GPUS` that all GPUs of JAX support; `None` if there is none."""
    try:
        devices = jax.devices("cuda")
    except RuntimeError:
        return None
    capabilities = [int(d.compute_capability.replace(".", "")) for d in devices]
    supported = [name for name in GPUS if int(name[3:]) <= min(capabilities)]
    return supported[-1] if supported else None


@functools.cache
def scratch_limit() -> int:
    """Return the largest scratch memory of a kernel, in bytes: an eighth of the smallest GPU's."""
    stats = [device.memory_stats() or {} for device in jax.devices("cuda")]
    return min(device_stats.get("bytes_limit", 8 << 30) for device_stats in stats) // 8


def why_not_on_default_device(closed: ClosedJaxpr) -> list[str]:
    """Return why a jaxpr cannot be a kernel on JAX's default device; empty if it can."""
    device = getattr(jax.config, "jax_default_device", None)
    platform = getattr(device, "platform", device) or jax.default_backend()
    if platform == "cpu":
        return []
    if platform in ("gpu", "cuda") and find_driver() and find_architecture():
        return _why_too_many_buffers(closed)
    return [
        f"native kernels run on processors and on NVIDIA's GPUs ({GPUS[0]} or newer, with a "
        f"driver for CUDA 12), and JAX's default device is {platform!r}"
    ]


class Handler:
    """Host function that XLA calls in computations for GPUs.

    **Arguments:** `text`, its LLVM module; `values`, the values of the module's variables, by name.

    **Attributes:** `address`.
    """

    def __init__(self, text: str, values: dict[str, int]):
        self._code = compile_module(text)
        for name, value in values.items():
            ctypes.c_void_p.from_address(self._code.variable(name)).value = value
        self.address = self._code.address("handler")


def make_gpu_handler(ptx: str, handler: str, cuda: Driver) -> Handler:
    """Load PTX and return a handler that launches its kernel; `handler` is an LLVM module."""
    return Handler(handler, {"kernel": cuda.load(ptx), "launch": cuda.address("cuLaunchKernel")})


def make_host_handler(handler: str, code: MachineCode, cuda: Driver) -> Handler:
    """Return a handler, given as an LLVM module, that calls the CPU kernel `code`."""
    values = {name: cuda.address(name) for name in host.FUNCTIONS}
    return Handler(handler, {"computed": code.address("handler"), **values})


def _why_too_many_buffers(closed: ClosedJaxpr) -> list[str]:
    buffers = len(closed.in_avals) + len(closed.out_avals)
    if buffers <= gpu.MAX_POINTERS:
        return []
    return [f"a CUDA kernel takes {gpu.MAX_POINTERS} arrays at most, this has {buffers}"]


class RegisteredKernel(NamedTuple):
    """A kernel that is registered with XLA.

    **Attributes:** `name`, its registered name; `source`, its jaxpr, kept alive because its address
    is a key.
    """

    name: str
    source: ClosedJaxpr


_kernels: dict[tuple, RegisteredKernel] = {}
_handlers: dict[str, Handler] = {}


def emit_texts(
    closed: ClosedJaxpr, signature: Signature, architecture: str, limit: int
) -> tuple[str, str]:
    """Return a jaxpr as PTX, and the LLVM module of its handler; `limit` as in `handler_text`."""
    kernel = gpu.ptx(closed, signature, architecture)
    return kernel.ptx, handler_text(closed, signature, kernel.scratch, limit)


def get_gpu_kernel(
    closed: ClosedJaxpr, signature: Signature, size: int | None
) -> RegisteredKernel | None:
    """Return the kernel of a jaxpr for a batch of this size; `None` without a supported GPU.

    Small batches are computed by the host (see `host_fallback`).

    **Raises:** `NoRule`; `RuntimeError` if the CUDA driver rejects the kernel.
    """
    cuda, architecture = find_driver(), find_architecture()
    if cuda is None or architecture is None:
        return None
    is_small = (1 if size is None else size) <= _SMALL_BATCH
    if not is_small and (reasons := _why_too_many_buffers(closed)):
        raise NoRule(*reasons)
    key = id(closed), signature, is_small
    with REGISTRY_LOCK:
        if key not in _kernels:
            if is_small:
                code, text = (
                    get_kernel(closed, signature).code,
                    host.handler_text(closed, signature),
                )
                name = _register_with_xla(
                    (code.name, text), lambda: make_host_handler(text, code, cuda)
                )
            else:
                texts = emit_texts(closed, signature, architecture, scratch_limit())
                name = _register_with_xla(texts, lambda: make_gpu_handler(*texts, cuda))
            _kernels[key] = RegisteredKernel(name, closed)
        return _kernels[key]


def _register_with_xla(texts: tuple[str, ...], make: Callable[[], Handler]) -> str:
    """Register a handler with XLA and return its name; equal texts share one handler."""
    name = f"rigidjax_{disk.digest(*texts)}"
    if name not in _handlers:
        _handlers[name] = make()
        kind = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
        capsule = jax.ffi.pycapsule(kind(_handlers[name].address))
        jax.ffi.register_ffi_target(name, capsule, platform="CUDA", api_version=1)
    return name


def handler_text(closed: ClosedJaxpr, signature: Signature, scratch: int, limit: int) -> str:
    """Return the LLVM module of the handler, whose variables are set before the first call.

    **Arguments:** `scratch`, bytes of scratch memory of one thread; `limit`, of all threads.
    """
    module = ir.Module("rigidjax")
    variables = [global_variable(module, name) for name in ("kernel", "launch")]
    frame = CallFrame(ir.Function(module, ir.FunctionType(POINTER, [POINTER]), "handler"))
    build, nothing = frame.builder, ir.Constant(POINTER, None)
    count = frame.first_extent(frame.results, 0) if signature.is_batch else int64(1)
    with build.if_then(build.icmp_signed("<", count, int64(1))):
        build.ret(nothing)
    threads = count
    if scratch:
        most = int64(min(_THREADS, max(limit // scratch, _BLOCK)))
        threads = build.select(build.icmp_signed("<", count, most), count, most)
    blocks = build.sdiv(build.add(threads, int64(_BLOCK - 1)), int64(_BLOCK))
    stream = frame.stream()
    size = build.mul(blocks, int64(_BLOCK * scratch))
    memory = frame.allocate(size) if scratch else int64(0)
    # The driver takes an array of pointers to the values of the kernel's arguments.
    first = gpu.pointer_array(build, [build.inttoptr(x, POINTER) for x in (count, memory)])
    values = [_pointer_at(build, first, k) for k in range(2)]
    for buffers, avals in (frame.arguments, closed.in_avals), (frame.results, closed.out_avals):
        pointers = frame.pointers(buffers, len(avals))
        values += [_pointer_at(build, pointers, k) for k in range(len(avals))]
    kind = ir.FunctionType(I32, [POINTER, *[I32] * 7, *[POINTER] * 3]).as_pointer()
    kernel, launch = (build.load(v, typ=I64) for v in variables)
    extents = build.trunc(blocks, I32), *(int32(n) for n in (1, 1, _BLOCK, 1, 1, 0))
    code = build.call(
        build.inttoptr(launch, kind),
        [
            build.inttoptr(kernel, POINTER),
            *extents,
            stream,
            gpu.pointer_array(build, values),
            nothing,
        ],
    )
    if scratch:
        frame.free(memory, size)
    with build.if_then(build.icmp_signed("!=", code, int32(0))):
        frame.refuse("CUDA could not launch a native kernel of rigidjax: its error %d", code)
    build.ret(nothing)
    return str(module)


def _pointer_at(build: Builder, pointers: Value, k: int) -> Value:
    return build.gep(pointers, [int64(k)], source_etype=POINTER)
