"""Machine code that XLA can call, by names that are the same in every process."""

import ctypes
import threading
from contextvars import ContextVar

import jax

from . import disk
from .codegen import MachineCode, OptimisationLevel

# Without the lock two threads could register the same kernel with XLA twice.
REGISTRY_LOCK = threading.RLock()
# Prefix of the names under which machine code is registered with XLA.
KERNEL = "rigidjax_"
_codes: dict[str, MachineCode] = {}
# Whether an executable is being compiled that is stored on disk together with its kernels. Keys of
# single kernels, which take a third of the emission time, are then not needed.
is_in_executable: ContextVar[bool] = ContextVar("is_in_executable", default=False)


def register(code: MachineCode) -> MachineCode:
    """Register machine code with XLA under a name that is the same in every process.

    JAX's persistent compilation cache therefore finds the computations that call it.
    """
    with REGISTRY_LOCK:
        if code.name not in _codes:
            function = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(code.address("handler"))
            name, capsule = KERNEL + code.name, jax.ffi.pycapsule(function)
            jax.ffi.register_ffi_target(name, capsule, platform="cpu", api_version=1)
            _codes[code.name] = code
        return _codes[code.name]


def register_from_disk(name: str) -> bool:
    """Register the machine code of this name; return whether it is there or was on disk."""
    with REGISTRY_LOCK:
        code = None if name in _codes else disk.read(name)
        if code is not None:
            register(MachineCode(name, code, lambda: "", OptimisationLevel()))
        return name in _codes
