"""Figures: that they show what they should, and how they are written."""

import dataclasses
import sys

import numpy as np
import pytest

import rigidjax as rj
from rigidjax import plotting, problems
from rigidjax.identification import Fit
from rigidjax.problems import Comparison, Row


@pytest.fixture(scope="module")
def motion():
    body = problems.free_body()
    return rj.simulate(
        rj.NullSpace(body.system), body.state0, 1.0, ts=np.linspace(0, 1, 201), projection=False
    )


def titles(figure):
    return [ax.get_title(loc="left") or ax.get_title() for ax in figure.axes]


def test_minimal_coordinates_have_no_drift():
    body = problems.free_body()
    model = rj.NullSpace(body.system, rj.RotationVector())
    solution = rj.simulate(model, body.state0, 0.1, ts=np.linspace(0, 0.1, 11))
    drift = plotting.plot_motion(solution).axes[-1]
    assert drift.texts[0].get_text() == "none: minimal coordinates"


def test_body_at_rest_can_be_drawn(tmp_path):
    model = rj.NullSpace(rj.FixedPointBody((1.0, 2.0, 2.5)))
    solution = rj.simulate(model, rj.State(), 1.0, ts=[0.0, 0.5, 1.0])
    figure = plotting.plot_motion(solution)
    assert "Change of energy, in units of 1 J" in titles(figure)
    plotting.save_figure(figure, tmp_path / "rest.png")


def test_comparison_shows_every_row():
    evaluations = np.array([1000, 500, 250, 125])
    errors = np.array([1e-9, 1e-8, 1e-7, 1e-6])
    lost = np.full(4, np.nan)
    rows = [
        Row("null space, a", 7, 10, 1000, 1e-9, 1e-9, 0, 0, 0, 1.0, "", evaluations, errors),
        Row("absolute, b", 8, 10, 2000, 1e-9, 1e-9, 0, 0, 0, 2.0, "", 2 * evaluations, errors),
        Row("absolute, c", 8, 10, 2000, 1.0, 1.0, 0, 0, 0, np.nan, "", evaluations, errors + 1),
        Row("absolute, d", 8, 1, 9, np.nan, np.nan, 0, 0, 0, np.nan, "x", evaluations, lost),
    ]  # fmt: skip
    figure = plotting.plot_comparison(Comparison(rows, "the closed form", 4.0), "Racket")
    work, bars = figure.axes
    np.testing.assert_array_equal(work.lines[1].get_ydata(), 2 * evaluations)
    assert work.get_xlabel() == "error at 4 s, against the closed form"
    assert [label.get_text() for label in bars.get_yticklabels()] == [r.label for r in rows]
    shown = [text.get_text() for text in bars.texts]
    assert shown == ["1.00", "2.00", "too far off", "ended early"]
    assert [patch.get_width() for patch in bars.patches] == [1.0, 2.0]


@pytest.mark.parametrize("ending", ["png", "pdf", "svg"])
def test_figures_are_written_whole(tmp_path, motion, ending):
    path = plotting.save_figure(plotting.plot_motion(motion), tmp_path / f"a.{ending}")
    start = {"png": b"\x89PNG", "pdf": b"%PDF", "svg": b"<?xml"}[ending]
    assert path.read_bytes().startswith(start)
    assert list(tmp_path.iterdir()) == [path]
    with pytest.raises(FileExistsError, match=f"a.{ending} exists"):
        plotting.save_figure(plotting.plot_motion(motion), path)
    with pytest.raises(ValueError, match="cannot be written as .xyz; take one of"):
        plotting.save_figure(plotting.plot_motion(motion), tmp_path / "a.xyz")
    assert list(tmp_path.iterdir()) == [path]


def test_settings_of_matplotlib_are_restored(motion):
    import matplotlib

    before = dict(matplotlib.rcParams)
    plotting.plot_motion(motion)
    assert dict(matplotlib.rcParams) == before


def test_missing_matplotlib_raises(motion, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ModuleNotFoundError, match=r'pip install "rigidjax\[plot\]"'):
        plotting.plot_motion(motion)


# --- fits


def fit_of(sensors, labels, residuals):
    """Return a fit with the data that figures need, without computing it."""
    fields = dict.fromkeys(field.name for field in dataclasses.fields(Fit))
    count = len(labels)
    correlations = np.where(np.eye(count), 1.0, -0.123)
    known = {"sensors": sensors, "labels": labels, "correlations": correlations}
    known |= {"residuals": (residuals,), "innovations": (residuals,), "run_names": ("1",)}
    known |= {"noise": 1.0}
    return Fit(**(fields | known))


def boxes(figure, artists):
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    FigureCanvasAgg(figure).draw()
    return [artist.get_window_extent() for artist in artists]


def test_orientations_have_four_curves_and_three_residuals():
    """Each panel names its curves, and no text is over another."""
    ts = np.linspace(0.0, 1.0, 5)
    quaternions = np.tile([0.5, 0.5, 0.5, 0.5], (5, 1))
    run = rj.Measurements(ts, {rj.Attitude(): quaternions})
    fit = fit_of((rj.Attitude(),), ("a",), {"attitude": np.zeros((5, 3))})
    figure = plotting.plot_predictions(fit, [run], [{"attitude": quaternions}], 0)
    axes = figure.subfigs[0].axes
    above, below = axes[::2], axes[1::2]
    names = [ax.get_ylabel().partition(" (")[0] for ax in above]
    assert names == ["q0, q1", "q2", "q3"] and len(below) == 3
    assert [sum(line.get_linestyle() == "-" for line in ax.lines) for ax in above] == [2, 1, 1]
    texts = [ax.yaxis.label for ax in axes] + [axes[0].title, axes[-1].xaxis.label]
    found = boxes(figure, texts)
    assert not any(a.overlaps(b) for k, a in enumerate(found) for b in found[:k])


@pytest.mark.parametrize("count", [1, 4, 10])
def test_numbers_of_correlations_do_not_overlap(count):
    labels = tuple(f"start of run {k}: change of angle of hinge" for k in range(count))
    figure = plotting.plot_correlations(fit_of((), labels, {}))
    ax = figure.axes[0]
    assert len(ax.texts) == count**2
    found = boxes(figure, ax.texts)
    cell = ax.get_window_extent().width / count
    assert all(box.width < 0.95 * cell and box.height < 0.95 * cell for box in found)
    title, names = boxes(figure, [figure._suptitle]), boxes(figure, ax.get_xticklabels())
    whole = figure.bbox
    assert all(whole.x0 <= b.x0 and b.x1 <= whole.x1 and whole.y0 <= b.y0 for b in title + names)


# --- topology


def test_every_body_and_joint_is_drawn():
    names = ("crank", "coupler", "rocker", "satellite")
    bodies = [rj.Body(name, 1.0, (1.0, 1.0, 1.0)) for name in names]
    pairs = [("ground", "crank"), ("crank", "coupler"), ("ground", "rocker"), ("coupler", "rocker")]
    joints = [rj.Revolute(a, b, (0, 0, 0), (0, 0, 1)) for a, b in pairs]
    figure = plotting.plot_topology(rj.System(bodies, joints))
    (ax,) = figure.axes
    drawn = [text.get_text() for text in ax.texts]
    assert sorted(drawn) == sorted([*names, "ground", *4 * ["Revolute"]])
    styles = [line.get_linestyle() for line in ax.lines]
    # Three joints of the trees, one that closes the loop, one free body.
    assert styles.count("-") == 3 and styles.count("--") == 1 and styles.count(":") == 1
    boxes = {text.get_text(): text.get_position() for text in ax.texts if text.get_text() in names}
    assert len(set(boxes.values())) == 4
