"""The core works without optional packages; their users name the extra that installs them."""

import subprocess
import sys

import pytest

from rigidjax.extras import _EXTRAS, import_optional

CORE = """
import sys
for name in {blocked}:
    sys.modules[name] = None
import jax
jax.config.update("jax_enable_x64", True)
import rigidjax as rj
rod = rj.Body.rod("rod", 1.0, 0.02, mass=1.0, position=(0.5, 0, 0))
hinge = rj.Revolute("ground", "rod", (0, 0, 0), axis=(0, 1, 0), damping=0.1, name="hinge")
system = rj.System(rod, hinge, [rj.Gravity((0, 0, -9.81))])
model, state0 = rj.NullSpace(system), system.reference_state()
sol = rj.simulate(model, state0, 1.0, ts=[0.0, 0.5, 1.0])
sensor = rj.JointCoordinate("hinge")
data = rj.Measurements(sol.ts, {{sensor: sol.coordinates["hinge"][:, 0]}}, {{sensor: 1e-3}})
damping = rj.Parameter("damping", lambda e: e.model.system.joints[0].damping)
start = rj.NullSpace(rj.System(rod, hinge, [rj.Gravity((0, 0, -9.81))]))
print(rj.identify(start, data, damping, state0=state0).estimates["damping"])
rj.ensemble(lambda x: x["a"], {{"a": jax.numpy.arange(2.0)}}, progress=True)
page = rj.view(sol).save({page!r})
print(page.stat().st_size > 500_000)
try:
    sol.to_xarray()
except ModuleNotFoundError as error:
    print(error)
from rigidjax.cli import main
"""


def test_core_needs_no_optional_package(tmp_path):
    code = CORE.format(blocked=sorted(_EXTRAS), page=str(tmp_path / "run.html"))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    print(done.stdout, done.stderr)
    damping, has_page, message = done.stdout.splitlines()
    assert float(damping) == pytest.approx(0.1, abs=1e-6)
    assert has_page == "True"
    assert message == 'Datasets need xarray: pip install "rigidjax[data]".'
    assert done.returncode == 1
    assert 'Commands need typer: pip install "rigidjax[cli]".' in done.stderr.splitlines()[-1]


@pytest.mark.parametrize("name", _EXTRAS)
def test_missing_package_names_its_extra(monkeypatch, name):
    monkeypatch.setitem(sys.modules, name, None)
    message = rf'^Files need {name}: pip install "rigidjax\[{_EXTRAS[name]}\]".$'
    with pytest.raises(ModuleNotFoundError, match=message):
        import_optional(name, "Files")
