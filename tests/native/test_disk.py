"""Machine code on disk: shared by processes, replaced where damaged, bounded in size."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from rigidjax import native
from rigidjax.cli.app import cache_folder
from rigidjax.native.runtime import codegen as machine, disk as disk

# Function that the test and the second process compile.
SOURCE = """
import jax.numpy as jnp
from rigidjax import native
cosine = native.jit(lambda x: jnp.cos(x) * {factor})
"""
SECOND = """
import jax
jax.config.update("jax_enable_x64", {x64})
from rigidjax.native.runtime import codegen, kernel
def refused(*args, **kwargs):
    raise SystemExit("emitted or compiled again")
codegen._run_passes = kernel.emit_block = refused
{source}
print(float(cosine(jnp.asarray(0.5))))
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("RIGIDJAX_KERNEL_CACHE", str(tmp_path))
    return tmp_path


def cosine(factor):
    names = {}
    exec(SOURCE.format(factor=factor), names)
    return float(names["cosine"](jnp.asarray(0.5)))


def test_a_second_process_does_not_emit_or_compile(folder):
    expected = cosine(3.0)
    assert expected == pytest.approx(3.0 * np.cos(0.5))
    source = SOURCE.format(factor=3.0)
    program = SECOND.format(source=source, x64=bool(jnp.asarray(0.5).dtype == jnp.float64))
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) == expected


def test_damaged_files_are_replaced(folder):
    text = 'define i64 @"handler"() {\n ret i64 5\n}\n'
    name = machine.compile_module(text).name
    (path,) = folder.iterdir()
    whole = path.read_bytes()
    for damaged in (b"", whole[:-1], whole[:40] + b"x" + whole[41:]):
        path.write_bytes(damaged)
        assert disk.read(name) is None
        assert machine.compile_module(text).address("handler")
        assert path.read_bytes() == whole


def test_a_file_under_the_name_of_another_is_rejected(folder):
    disk.write("one", b"code of one")
    (folder / "one.kernel").rename(folder / "two.kernel")
    assert disk.read("two") is None
    disk.write("two", b"code of two")
    assert disk.read("two") == b"code of two"


def test_a_read_only_folder_is_read(folder, monkeypatch):
    """File times cannot be changed there."""
    disk.write("name", b"code")

    def refuse(*args, **kwargs):
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr(os, "utime", refuse)
    assert disk.read("name") == b"code"


def test_a_failed_write_leaves_no_file(folder, monkeypatch):
    class Full:
        def __init__(self, handle, mode):
            self.file = open(handle, mode)

        def __enter__(self):
            return self

        def __exit__(self, *error):
            self.file.close()

        def write(self, content):
            self.file.write(content[:10])
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fdopen", Full)
    with pytest.warns(UserWarning, match="cannot be kept in .*No space left"):
        disk.write("name", b"code")
    assert list(folder.iterdir()) == []
    disk.write("name", b"code")  # One warning is enough.


def test_partial_files_of_killed_processes_are_removed(folder, monkeypatch):
    monkeypatch.setattr(disk, "_unchecked", float("inf"))  # as in a new process
    old, new = folder / "a.partial", folder / "b.partial"
    for path in (old, new):
        path.write_bytes(b"half")
    os.utime(old, (1, 1))
    disk.write("name", b"code")
    assert {path.name for path in folder.iterdir()} == {"b.partial", "name.kernel"}


@pytest.mark.parametrize("fault", ["writable by others", "writable by the group", "of another"])
def test_writable_folders_of_others_are_rejected(folder, monkeypatch, fault):
    disk.write("name", b"code")
    if fault == "of another":
        monkeypatch.setattr(disk, "_belongs_to_user", lambda status: False)
    else:
        folder.chmod(0o707 if fault == "writable by others" else 0o770)
    with pytest.warns(UserWarning, match=r"neither read from nor kept in .*chmod go-w.*`off`"):
        assert disk.read("name") is None
    disk.write("other", b"code")  # One warning is enough.
    assert not (folder / "other.kernel").exists()


def test_writable_files_of_others_are_not_read(folder):
    """This includes files in a sticky folder, where everybody can create files."""
    folder.chmod(0o1777)
    disk.write("name", b"code")
    assert disk.read("name") == b"code"
    (folder / "name.kernel").chmod(0o666)
    assert disk.read("name") is None


def test_folders_are_private(tmp_path, monkeypatch):
    place = tmp_path / "some" / "folder"
    monkeypatch.setenv("RIGIDJAX_KERNEL_CACHE", str(place))
    disk.write("name", b"code")
    assert disk.read("name") == b"code"
    assert place.stat().st_mode & 0o777 == 0o700


def test_least_recently_used_files_are_removed(folder, monkeypatch):
    monkeypatch.setattr(disk, "LARGEST", 0.002)
    for k in range(3):
        disk.write(f"file{k}", bytes(800))
        os.utime(folder / f"file{k}.kernel", (k, k))
    assert disk.read("file1") == bytes(800)
    disk.write("file3", bytes(800))
    assert {path.name for path in folder.iterdir()} == {"file1.kernel", "file3.kernel"}


def test_location_of_the_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("RIGIDJAX_KERNEL_CACHE", "off")
    assert disk.folder() is None
    disk.write("nothing", b"code")
    assert disk.read("nothing") is None
    monkeypatch.delenv("RIGIDJAX_KERNEL_CACHE")
    # The folder of JAX's cache, which in the tests is their own.
    assert str(disk.folder()).startswith(os.environ["JAX_COMPILATION_CACHE_DIR"])
    assert native.jit(lambda x: x + 1.0)(jnp.asarray(1.0)) == 2.0
    # The command line has a folder of JAX beside that of the kernels, which scripts use too.
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    before = jax.config.jax_compilation_cache_dir
    for ours in (None, cache_folder(None)):
        jax.config.update("jax_compilation_cache_dir", ours)
        assert disk.folder() == tmp_path / "rigidjax" / "kernels"
    jax.config.update("jax_compilation_cache_dir", before)


def test_unwritable_folders_warn(tmp_path, monkeypatch):
    file = tmp_path / "file"
    file.write_text("")
    monkeypatch.setenv("RIGIDJAX_KERNEL_CACHE", str(file))
    with pytest.warns(UserWarning, match="cannot be kept in .*Name another folder"):
        disk.write("name", b"code")
