"""`rigidjax identify`: what is printed and written, also where there is no optimum."""

import hashlib
import json
import re
import shutil

import numpy as np
import pytest
from cli.case_files import PENDULUM, TEXT, case_of
from cli.program import assert_refused, call

import rigidjax as rj

# A program less to compile.
ONE_HORIZON = TEXT.replace("horizons = [0.3, 1.0]", "horizons = [1.0]")


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """The example of the repository, run with everything that it can write."""
    folder = tmp_path_factory.mktemp("pendulum")
    shutil.copytree(PENDULUM, folder / "given")
    case = folder / "given" / "pendulum.toml"
    assert ONE_HORIZON != TEXT
    case.write_text(ONE_HORIZON)
    paths = [folder / name for name in ("fit.nc", "fit.html", "fit.json")]
    options = [x for pair in zip(("--out", "--html", "--report"), paths, strict=True) for x in pair]
    result = call("identify", case, *options)
    assert result.exit_code == 0, result.output + repr(result.exception)
    return result, *paths


def test_runs_that_cannot_be_held_out(tmp_path):
    case = case_of(tmp_path, ONE_HORIZON)
    options = ("identify", case, "--hold-out")
    assert_refused("`--hold-out 7`: there is no such run. There are: ", *options, "7")
    assert_refused("`--hold-out` leaves no run to fit", *options, "")
    assert_refused("There is no file .*none.json", "identify", case, "--previous", "none.json")


def test_table_is_printed(fitted):
    text = fitted[0].stdout
    assert "Arm on a damped hinge, 1 run: 330 sampled values, 2 parameters; converged" in text
    estimates = {k: float(v) for k, v in re.findall(r"^ (I3|damping) +(\S+) ", text, re.M)}
    # Simulated with 0.06 and 0.12; the tolerance is four standard deviations.
    assert estimates["I3"] == pytest.approx(0.06, abs=1.3e-4)
    assert estimates["damping"] == pytest.approx(0.12, abs=5e-4)
    assert "95 % interval" in text and "Both fitted parameters are identifiable" in text
    assert "no evidence against white noise" in " ".join(text.split())
    assert text.startswith("The intervals may be used: residuals are white;")


def test_netcdf_file_is_complete(fitted):
    _, path, _, report = fitted
    data, record = rj.io.load(path), json.loads(report.read_text())
    assert data.attrs["converged"] == 1 and data.attrs["warning"] == ""
    assert list(data.parameter.values) == ["I3", "damping"]
    assert list(data.unit.values) == ["kg m^2", "N m s/rad"]
    parameters = record["parameters"]
    np.testing.assert_allclose(data.estimate, [p["estimate"] for p in parameters], rtol=1e-12)
    np.testing.assert_allclose(data.interval, [p["interval"] for p in parameters], rtol=1e-12)
    np.testing.assert_allclose(data.covariance, record["covariance"], rtol=1e-12)
    assert data.attrs["case"] == ONE_HORIZON and "angle.csv" in data.attrs["data_files"]
    assert "Dopri5" in data.attrs["settings"] and data.attrs["rigidjax_version"] == rj.__version__
    assert data.attrs["jax_version"] and data.attrs["diffrax_version"]


def test_predictions_agree_with_the_residuals(fitted):
    """Residuals are from the fit, predictions from a simulation with its estimates."""
    _, path, *_ = fitted
    data = rj.io.load(path)
    assert data.sizes["sample"] == 180  # 150 + 60, of which 30 coincide
    for name in ("coordinate_of_hinge", "gyroscope_of_arm"):
        measured, predicted = (
            data[f"{name}_{kind}"].values.reshape(180, -1) for kind in ("measured", "predicted")
        )
        residual = data[f"{name}_residual"].values.reshape(180, -1)
        assert np.isfinite(predicted).all()
        np.testing.assert_array_equal(np.isfinite(residual), np.isfinite(measured))
        there = np.isfinite(measured)
        np.testing.assert_allclose((predicted - measured)[there], residual[there], atol=1e-7)
    raw = np.loadtxt(PENDULUM / "angle.csv", delimiter=",", skiprows=1)
    angle = data["coordinate_of_hinge_measured"].values.ravel()
    np.testing.assert_allclose(angle[np.isfinite(angle)], np.radians(raw[:, 1]), rtol=1e-12)
    np.testing.assert_allclose(data["gyroscope_of_arm_noise"][0, 1], np.radians([1.0] * 3))


def test_page_is_self_contained(fitted):
    page = fitted[2].read_text()
    # The viewer is an embedded page with separate tests.
    page, motions = re.subn(r' srcdoc="[^"]*"', "", page)
    assert motions == 1 and "in motion</h2>" in page
    given = fitted[2].parent / "given"
    for name in ("pendulum.toml", "angle.csv", "rates.csv"):
        digest = hashlib.sha256((given / name).read_bytes()).hexdigest()
        assert re.search(f"{name}</td><td>SHA-256 {digest}", page)
    assert "@media print" in page and "Intervals by method" in page
    assert page.count("<img ") == page.count('src="data:image/png;base64,') == 7
    assert not re.search(r'(src|href)="(?!data:)|https?://|<script|@import|url\(', page)
    assert "did not converge" not in page
    for text in ("Arm on a damped hinge", "95 % interval", "Both fitted parameters are ident"):
        assert text in page
    assert "type = &#34;TorsionSpring&#34;" in page


def test_inputs_are_not_overwritten(tmp_path):
    """The case itself and its data, with --force too, also if the case names them as outputs."""
    path = case_of(tmp_path, TEXT)
    kept = {p.name: p.read_bytes() for p in tmp_path.iterdir()}
    (tmp_path / "angle.nc").symlink_to(tmp_path / "angle.csv")
    for option, name, message in (
        ("--out", "angle.csv", "`--out .*angle.csv` is an input. Choose another file"),
        ("--out", "angle.nc", "`--out .*angle.nc` is an input. Choose another file"),
        ("--report", "case.toml", "`--report .*case.toml` is an input. Choose another file"),
    ):
        assert_refused(message, "identify", path, option, tmp_path / name, "--force")
    (tmp_path / "angle.nc").unlink()
    assert {p.name: p.read_bytes() for p in tmp_path.iterdir()} == kept
    path.write_text(TEXT + '\n[output]\nnetcdf = "rates.csv"\n')
    assert_refused("rates.csv` is an input", "identify", path, "--force")
