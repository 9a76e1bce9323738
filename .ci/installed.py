"""Try an installed wheel where nothing else is: `python -I installed.py WHEEL < FILES`.

FILES are the files of the package in the repository, one a line: the wheel has to hold all of them.
"""

import pathlib
import re
import subprocess
import sys
import tempfile
import zipfile

wheel = pathlib.Path(sys.argv[1]).resolve()
wanted = set(sys.stdin.read().split())
assert wanted, "no file names on standard input"
with zipfile.ZipFile(wheel) as archive:
    names = set(archive.namelist())
    metadata = next(name for name in names if name.endswith(".dist-info/METADATA"))
    licences = {pathlib.Path(name).name for name in names if ".dist-info/licenses/" in name}
    version = re.search(r"^Version: (.+)$", archive.read(metadata).decode(), re.MULTILINE)[1]
assert not wanted - names, f"not in the wheel: {sorted(wanted - names)}"
foreign = {name for name in names - wanted if ".dist-info/" not in name}
assert not foreign, f"in the wheel, but not in the repository: {sorted(foreign)}"
assert licences == {"LICENSE", "NOTICE", "three.LICENSE.txt"}, licences

import rigidjax as rj  # noqa: E402

assert pathlib.Path(rj.__file__).is_relative_to(sys.prefix), rj.__file__
assert rj.__version__ == version, (rj.__version__, version)
rod = rj.Body.rod("rod", 1.0, 0.02, mass=1.0, position=(0.5, 0, 0))
system = rj.System(rod, rj.Revolute("ground", "rod", (0, 0, 0), axis=(0, 1, 0)))
sol = rj.simulate(rj.NullSpace(system), system.reference_state(), 0.1, ts=[0.0, 0.1], rtol=1e-4)
with tempfile.TemporaryDirectory() as folder:
    page = rj.view(sol).save(pathlib.Path(folder) / "run.html")
    assert page.stat().st_size > 500_000, "the page of the viewer is without its program"
command = [pathlib.Path(sys.prefix) / "bin" / "rigidjax", "--version"]
absent = subprocess.run(command, capture_output=True, text=True, check=False).stderr
assert absent.endswith('Commands need typer: pip install "rigidjax[cli]".\n'), absent
install = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
subprocess.run([*install, "-c", "constraints.txt", f"{wheel}[cli]"], check=True)
said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
assert version in said, said
print(f"{wheel.name}: {len(names)} files; it imports, simulates, shows and has its command")
