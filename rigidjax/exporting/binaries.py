"""Compilation of kernels and C sources, and linking, for any platform."""

import pathlib
import subprocess
import sys
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from ..extras import import_optional
from ..native import Processor

SOURCES = pathlib.Path(__file__).with_name("c")


class Platform(NamedTuple):
    """An operating system and a processor.

    **Attributes:** `processor`; `zig`, the target of Zig's C compiler; `fmi2`, the folder of
    binaries in FMI 2.0, which names x86-64 alone; `suffix` of shared libraries.
    """

    processor: Processor
    zig: str
    fmi2: str
    suffix: str


# Named as in FMI 3.0. On x86-64 the kernels need AVX2, FMA and BMI. glibc 2.17 is from 2012.
PLATFORMS = {
    "x86_64-linux": Platform(
        Processor("x86_64-unknown-linux-gnu", "x86-64-v3", 4),
        "x86_64-linux-gnu.2.17", "linux64", ".so",
    ),
    "aarch64-linux": Platform(
        Processor("aarch64-unknown-linux-gnu", "generic", 2),
        "aarch64-linux-gnu.2.17", "aarch64-linux", ".so",
    ),
    "x86_64-windows": Platform(
        Processor("x86_64-w64-windows-gnu", "x86-64-v3", 4),
        "x86_64-windows-gnu", "win64", ".dll",
    ),
    "aarch64-windows": Platform(
        Processor("aarch64-w64-windows-gnu", "generic", 2),
        "aarch64-windows-gnu", "aarch64-windows", ".dll",
    ),
    "x86_64-darwin": Platform(
        Processor("x86_64-apple-macosx11.0.0", "x86-64-v3", 4),
        "x86_64-macos.11.0", "darwin64", ".dylib",
    ),
    "aarch64-darwin": Platform(
        Processor("arm64-apple-macosx11.0.0", "apple-m1", 2),
        "aarch64-macos.11.0", "aarch64-darwin", ".dylib",
    ),
}  # fmt: skip


def compile_sources(
    platform: Platform, sources: Sequence[str], include: pathlib.Path
) -> list[pathlib.Path]:
    """Compile C sources of this package; return the object files.

    **Arguments:** `include`, the folder of generated headers and of the object files.
    **Errors:** `ModuleNotFoundError` without the extra `rigidjax[export]`; `RuntimeError` with the
    messages of the compiler.
    """
    objects = []
    for source in sources:
        objects.append(include / f"{source}.o")
        _run_zig(
            "cc", "-target", platform.zig, "-std=c11", "-O2", "-g0", "-fPIC", "-fvisibility=hidden",
            "-fno-sanitize=undefined", f"-I{include}", f"-I{SOURCES}", "-c", str(SOURCES / source),
            "-o", str(objects[-1]),
        )  # fmt: skip
    return objects


def link(platform: Platform, objects: Iterable[pathlib.Path], out: pathlib.Path) -> None:
    """Link object files to a shared library; errors of `compile_sources`."""
    windows = platform.suffix == ".dll"
    imports = [f"-Wl,--out-implib,{out.with_suffix('.lib')}"] if windows else []
    files = *map(str, objects), "-o", str(out)
    _run_zig("cc", "-target", platform.zig, "-shared", "-s", *imports, *files)


def archive(objects: Iterable[pathlib.Path], out: pathlib.Path) -> None:
    """Collect object files in a static library; errors of `compile_sources`."""
    _run_zig("ar", "rcs", str(out), *map(str, objects))


def _run_zig(*arguments: str) -> None:
    import_optional("ziglang", "Exported models")
    command = [sys.executable, "-m", "ziglang", *arguments]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"Zig failed: {' '.join(arguments)}\n{done.stderr}")
