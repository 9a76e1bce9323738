"""Executables of XLA on disk, with the kernels that they call (see `rigidjax.persistent_jit`)."""

import os
import re
import sys
from collections.abc import Callable
from typing import Any

import jax
import numpy as np
from jaxlib.lapack import prepare_lapack_call

from . import disk
from .codegen import host_processor
from .disk import digest as digest, read as read, write as write
from .identity import ArrayType as ArrayType, identify, package_digest, package_versions
from .platforms import why_no_kernels
from .registered import KERNEL, is_in_executable as is_in_executable, register_from_disk
from .thread_pool import max_threads

_LAPACK = "lapack_"
# Prefixes of the names of functions that exist in every process.
_CALLABLE = (KERNEL, _LAPACK, "AllocateBuffer", "TopK", "mhlo.", "stablehlo.", "chlo.", "Sharding")


def compute_key(function: Callable[..., Any], args: Any, started: float) -> str | None:
    """Return the key of a call, whose arrays are `ArrayType`s; `None` if it has none.

    **Arguments:** `started`, as of `package_digest`.
    """
    code = None if disk.folder() is None else package_digest(started)
    if code is None:
        return None
    text = identify((function, args))
    if text is None:
        return None
    settings: Any = jax.config
    flags = (
        settings.jax_enable_x64, settings.jax_default_matmul_precision,
        settings.jax_numpy_dtype_promotion, settings.jax_default_device, jax.device_count(),
    )  # fmt: skip
    versions = sys.version, *package_versions(), code, why_no_kernels(), os.environ.get("XLA_FLAGS")
    return digest(text, *map(repr, (*flags, max_threads(), *host_processor(), *versions)))


def find_targets(text: str) -> list[str] | None:
    """Return the functions that a module of StableHLO calls; `None` if another process lacks one,
    such as a callback to the host."""
    names = set(re.findall(r"custom_call @([\w.$]+)", text))
    names |= set(re.findall(r'call_target_name = "([^"]+)"', text))
    return None if any(not name.startswith(_CALLABLE) for name in names) else sorted(names)


def register(targets: list[str]) -> None:
    """Register functions that an executable calls with XLA.

    **Raises:** `LookupError` if the code of a kernel is not on disk.
    """
    for name in targets:
        if name.startswith(KERNEL) and not register_from_disk(name.removeprefix(KERNEL)):
            raise LookupError(f"the kernel {name}")
        if name.startswith(_LAPACK):
            prepare_lapack_call("potrf_ffi", np.dtype(float))
