"""Recordings in cases: formats, clocks, filters, rates and pieces."""

import numpy as np
import pytest
from cli.case_files import TEXT, case_of, replace_text

from rigidjax import identification as ident
from rigidjax.cli.case import read_case

DATA = '[data]\ntime = "t_ms"\ntime_unit = "ms"\n'


def with_data(tmp_path, lines, text=TEXT):
    return case_of(tmp_path, text.replace(DATA, DATA + lines))


def test_filter_rate_and_shift(tmp_path):
    """The samples of a case equal those of the functions, sensor by sensor."""
    before = read_case(case_of(tmp_path, TEXT)).measurements[0]
    lines = "cutoff = 8.0\nrate = 40.0\nshift = 0.5\n"
    (run,) = read_case(with_data(tmp_path, lines)).measurements
    for k, sensor in enumerate(before.sensors):
        used = np.asarray(before.mask[k])[:, 0]
        ts, values = np.asarray(before.ts)[used], np.asarray(before.values[k])[used]
        alone = ident.Measurements(ts, {sensor: values})
        new = np.asarray(run.ts)[np.asarray(run.mask[k])[:, 0]]
        expected = ident.resample_run(ident.filter_run(ident.shift_run(alone, 0.5), 8.0), new)
        np.testing.assert_allclose(new, np.round(new * 40) / 40, rtol=1e-12)
        found = np.asarray(run.values[k])[np.asarray(run.mask[k])[:, 0]]
        np.testing.assert_allclose(found, expected.values[0], rtol=1e-9, atol=1e-12)


def test_pieces_with_starts_of_their_own(tmp_path):
    """Pieces of half a second where a flag is set, each with a start from its own samples."""
    start = '[[parameter]]\nname = "start"\npath = "start_state"\n\n[method]'
    text = replace_text("[method]", start) if "[method]" in TEXT else TEXT + start
    case = with_data(tmp_path, 'cut = { length = 0.5, flag = "on" }\nfile = "flag.csv"\n', text)
    ts = np.arange(0.0, 10000.0, 10.0)
    flags = np.column_stack([ts, (ts % 2000 > 300).astype(int)])
    np.savetxt(tmp_path / "flag.csv", flags, delimiter=",", header="t_ms,on", comments="")
    loaded = read_case(case)
    whole = read_case(case_of(tmp_path, TEXT)).measurements[0]
    assert len(loaded.measurements) == len(loaded.state0) > 3
    for piece in loaded.measurements:
        ts = np.asarray(piece.ts)
        assert ts[-1] - ts[0] <= 0.5 and np.all(ts % 2 > 0.3)
        rows = np.searchsorted(whole.ts, ts)
        np.testing.assert_array_equal(piece.values[1], np.asarray(whole.values[1])[rows])
    rates = [float(state.angular_velocity[0, 2]) for state in loaded.state0]
    # The first readings of the gyroscope are 10 ms later, in which the rate changes by up to 0.2;
    # six samples of the encoder, 0.2 degrees of noise, give the rate to 0.2.
    measured = [p.sample_mask(1)[:, 2] for p in loaded.measurements]
    measured = [x[np.isfinite(x)][0] for x in measured]
    np.testing.assert_allclose(rates, measured, atol=0.8)
    assert np.corrcoef(rates, measured)[0, 1] > 0.98


def test_clock_of_one_file_from_the_motion_in_another(tmp_path):
    """The angles get a clock that is 0.734 s late; the rate of the encoder finds it."""
    case_of(tmp_path, TEXT)
    table = np.loadtxt(tmp_path / "angle.csv", delimiter=",", skiprows=1)
    ts, angle = table.T
    rate = ident.differentiate(ts / 1000, angle, window=0.12)
    np.savez(tmp_path / "angle.npz", t_ms=ts + 734.0, angle_deg=angle, rate=rate)
    align = (
        'align = { column = "rate", max_shift = 2.0, reference = { file = "rates.csv", '
        'column = "gz", time = "t_ms", time_unit = "ms" } }\n'
    )
    text = replace_text('file = "angle.csv"\n', 'file = "angle.npz"\n' + align)
    case = read_case(case_of(tmp_path, text))
    run = case.measurements[0]
    first = np.asarray(run.ts)[np.asarray(run.mask[0])[:, 0]][0]
    assert first == pytest.approx(0.0, abs=2e-3)
    assert any(name.endswith("rates.csv") for name in case.files)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ("cutoff = -1.0\n", r"\[data\]: `cutoff` must be positive, Hz; got -1.0"),
        ("cutoff = 500.0\n", r"\[data\]: The coordinate of hinge: .* below half of the sampling"),
        ("cut = { size = 1.0 }\n", r"\[data\], \[cut\]: there is no `size` here"),
        ("cut = { length = -1.0 }\n", r"\[cut\]: `cut_run\(length=...\)` must be positive"),
        ('align = { column = "a" }\n', r"\[align\]: `max_shift`, `reference` are missing"),
    ],
)
def test_wrong_preparation(tmp_path, lines, message):
    with pytest.raises(ValueError, match=message):
        read_case(with_data(tmp_path, lines))
