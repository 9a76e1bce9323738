"""Data of pages (poses, joints, arrays, sizes), and errors of invalid input."""

import json

import jax.numpy as jnp
import numpy as np
import pytest
from viewer.motions import TS, mechanism, turned_states

import rigidjax as rj
from rigidjax import viewer
from rigidjax.viewer.runs import frame_indices
from rigidjax.viewer.scene import decode_array, encode_array, quaternion_of


@pytest.fixture(scope="module")
def system():
    return mechanism()


@pytest.fixture(scope="module")
def pendulum():
    """Return a run with a joint, including its reactions."""
    rod = rj.Body.rod("rod", 1.0, 0.02, mass=2.0, position=(0, 0, -0.5))
    hinge = rj.Revolute("ground", "rod", (0, 0, 0), axis=(0, 1, 0), name="hinge")
    ball = rj.Body.sphere("ball", 0.1, mass=1.0, position=(1, 0, 0))
    system = rj.System([rod, ball], [rj.Free("ball"), hinge], rj.Gravity((0, 0, -9.81)))
    model = rj.NullSpace(system)
    return rj.simulate(model, system.reference_state(), 0.1, ts=np.linspace(0, 0.1, 5), dt=0.01)


def test_arrays_round_trip(rng):
    values = rng.normal(size=(7, 3, 2))
    single = encode_array(values)
    assert single["shape"] == [7, 3, 2]
    np.testing.assert_array_equal(decode_array(single), values.astype(np.float32))
    half = decode_array(encode_array(values, "int16"))
    assert np.max(np.abs(half - values)) <= np.max(np.abs(values)) / 65000
    np.testing.assert_array_equal(decode_array(encode_array([0.0, np.nan], "int16")), [0.0, 0.0])


def test_quaternions_of_frames(rng):
    for _ in range(20):
        p = rng.normal(size=4)
        p = rng.permutation(p * [1, 1e-3, 1e-8, 1])
        p /= np.linalg.norm(p)
        q = np.array(quaternion_of(rj.Quaternion().to_matrix(jnp.asarray(p))))
        assert abs(abs(p @ q) - 1) < 1e-12


def test_poses_rates_and_joints_of_a_mechanism(system):
    states = turned_states(9)
    scene = rj.view(system, state=states, ts=TS).scene
    (run,) = scene["runs"]
    poses = decode_array(run["poses"])
    np.testing.assert_array_equal(poses[..., :3], np.float32(states.position))
    np.testing.assert_array_equal(poses[..., 3:], np.float32(states.orientation))
    # The axis of rotation is the same in space.
    np.testing.assert_allclose(decode_array(run["rates"]), states.angular_velocity, atol=1e-4)
    assert [joint["kind"] for joint in run["joints"]][:3] == ["Revolute", "Universal", "Spherical"]
    assert [spring["is_cord"] for spring in run["springs"]] == [True, True, False]
    ends = [(spring["parent"], spring["child"]) for spring in run["springs"]]
    ball = [body["name"] for body in run["bodies"]].index("ball")
    assert ends == [(-1, ball), (ball, -1), (-1, ball)]
    np.testing.assert_allclose(run["springs"][1]["child_point"], (1.6, 0, 1))
    hinge, universal = run["joints"][:2]
    assert (hinge["parent"], hinge["child"], universal["parent"]) == (-1, 0, 0)
    np.testing.assert_allclose(hinge["parent_point"], (-0.2, 0, 0))
    np.testing.assert_allclose(universal["child_point"], (-0.3, 0, 0))
    np.testing.assert_allclose(scene["gravity"], (0, 0, -9.81))
    np.testing.assert_allclose(scene["camera"]["up"], (0, 0, 1))
    slider = next(joint for joint in run["joints"] if joint["kind"] == "Prismatic")
    assert slider["range"] == pytest.approx([0.2 * np.min(np.sin(1.4 * TS)), 0.2], abs=1e-3)


def test_ten_seconds_of_thirty_bodies_are_below_two_megabytes():
    bodies = [rj.Body.box(f"b{k}", (0.3, 0.2, 0.1), mass=1.0) for k in range(30)]
    ts = np.linspace(0.0, 10.0, 601)
    page = rj.view(rj.System(bodies), state=turned_states(30, ts), ts=ts)
    (run,) = page.scene["runs"]
    run["forces"] = run["reactions"] = encode_array(np.ones((601, 30, 3)), "int16")
    assert run["poses"]["shape"] == [601, 30, 7]
    assert len(page.page.encode()) < 2_000_000


def test_a_solution_has_graphs_forces_and_reactions(pendulum):
    (run,) = rj.view(pendulum, reactions=True, quantities={"twice": 2 * pendulum.ts}).scene["runs"]
    np.testing.assert_array_equal(
        decode_array(run["poses"])[..., :3], np.float32(pendulum.states.position)
    )
    graphs = {graph["name"]: decode_array(graph["values"]) for graph in run["graphs"]}
    np.testing.assert_allclose(graphs["energy"], pendulum.energy, rtol=1e-6)
    np.testing.assert_allclose(graphs["twice"], 2 * pendulum.ts, rtol=1e-6)
    np.testing.assert_allclose(decode_array(run["forces"])[0, 0], (0, 0, -2 * 9.81), rtol=1e-4)
    # It hangs at rest.
    np.testing.assert_allclose(decode_array(run["reactions"])[0, 0], (0, 0, 2 * 9.81), rtol=1e-4)


def test_drift_has_a_graph_only_above_round_off(pendulum):
    names = {graph["name"] for graph in rj.view(pendulum).scene["runs"][0]["graphs"]}
    assert names == {"kinetic energy", "potential energy", "energy", "change of energy"}
    data = pendulum.to_xarray()
    data["position_drift"] = data.position_drift + 1e-9
    names = {graph["name"] for graph in rj.view(data).scene["runs"][0]["graphs"]}
    assert "position drift" in names and "velocity drift" not in names


def test_the_camera_region_is_that_of_the_bodies(system):
    """A box turned by 45 degrees reaches half its diagonal to each side."""
    body = rj.Body.box("b", (0.3, 0.2, 0.1), mass=1.0)
    half = np.pi / 8
    state = rj.State(orientation=(np.cos(half), 0, 0, np.sin(half)))
    size = rj.view(rj.System(body), state=state).scene["camera"]["size"]
    np.testing.assert_allclose(size, [0.5 / np.sqrt(2), 0.5 / np.sqrt(2), 0.1], rtol=1e-6)


def test_a_file_is_viewed_like_its_solution(pendulum, tmp_path):
    path = rj.io.save(pendulum, tmp_path / "run.nc")
    from_file, direct = rj.view(path).scene, rj.view(pendulum).scene
    (one,), (other,) = from_file["runs"], direct["runs"]
    for name in ("times", "poses", "bodies", "joints", "coordinates"):
        assert one[name] == other[name]
    assert [graph["name"] for graph in one["graphs"]] == [g["name"] for g in other["graphs"]]
    for graph, wanted in zip(one["graphs"], other["graphs"], strict=True):
        np.testing.assert_allclose(
            decode_array(graph["values"]), decode_array(wanted["values"]), rtol=1e-6, atol=1e-12
        )
    assert from_file["camera"] == direct["camera"]


def test_file_without_shapes_shows_equivalent_bodies(pendulum):
    dataset = pendulum.to_xarray().drop_vars("mechanism")
    (run,) = rj.view(dataset).scene["runs"]
    assert run["joints"] == []
    assert run["bodies"][0]["shapes"][0]["kind"] == "cylinder"


def test_batch_elements_are_faint(pendulum):
    data = pendulum.to_xarray()
    batch = data.expand_dims(sample=3).copy(deep=True)
    batch["position"] = batch.position.astype(float)
    batch.position.values[2, 2:] = np.nan
    batch = batch.drop_vars("mechanism")
    runs = rj.view(batch, members=3).scene["runs"]
    assert [run["ghost"] for run in runs] == [False, True, True]
    assert [run["times"]["shape"] for run in runs] == [[5], [5], [2]]


def test_ensemble_members_are_faint():
    model = rj.NullSpace(rj.System(rj.Body.box("b", (0.3, 0.2, 0.1), mass=1.0)))

    def run(p):
        state = rj.State(angular_velocity=(0.0, 0.0, p["spin"]))
        return rj.simulate(model, state, 0.1, ts=jnp.linspace(0, 0.1, 3), dt=0.05)

    found = rj.ensemble(run, {"spin": np.array([1.0, np.nan, 3.0])}, progress=False)
    runs = rj.view((model, found)).scene["runs"]
    # The second one failed at its start.
    assert [(run["label"], run["ghost"]) for run in runs] == [
        ("member 0", False),
        ("member 2", True),
    ]
    for run, k in zip(runs, (0, 2), strict=True):
        wanted = np.concatenate([found.outputs[x][k] for x in ("position", "orientation")], axis=-1)
        np.testing.assert_array_equal(decode_array(run["poses"]), np.float32(wanted))
    numbers = rj.ensemble(lambda p: p["spin"], {"spin": np.arange(2.0)}, progress=False)
    with pytest.raises(ValueError, match="let `run` return the `Solution`"):
        rj.view((model, numbers))


def test_frames_are_evenly_spaced_and_reach_the_end():
    times = np.append(np.linspace(0.0, 1.0, 1001) ** 2, np.inf)
    indices = frame_indices(times, 11)
    assert indices[0] == 0 and indices[-1] == 1000
    np.testing.assert_allclose(times[indices], np.linspace(0, 1, 11), atol=2e-3)


def test_shapes_can_be_replaced(system):
    given = {"arm": viewer.sphere(0.3), "drum": [viewer.box((1, 1, 1)), viewer.cone(0.1, 0.2)]}
    (run,) = rj.view(system, shapes=given).scene["runs"]
    kinds = [[shape["kind"] for shape in body["shapes"]] for body in run["bodies"][:2]]
    assert kinds == [["sphere"], ["box", "cone"]]


def test_plane_motion_is_seen_from_the_side():
    bodies = [
        rj.Body.box(n, (0.3, 0.1, 0.1), mass=1.0, position=x)
        for n, x in (("a", (0, 0, 0)), ("b", (1, 0, 0)), ("c", (0, 0, 1)))
    ]
    flat = rj.view(rj.System(bodies, forces=rj.Gravity((0, 0, -9.81)))).scene["camera"]
    assert flat["direction"][1] < -0.9  # x to the right, z up


def test_pages_are_self_contained_and_escape_text(system, tmp_path):
    page = rj.view(system, title="</script><b>&").page
    assert "</script><b>" not in page and "&lt;/script&gt;&lt;b&gt;&amp;" in page
    # The name of a namespace is all that looks like an address.
    links = {word for word in page.split('"') if word.startswith(("http:", "https:", "//"))}
    assert links <= {"http://www.w3.org/1999/xhtml"}
    data = page.split('id="data">')[1].split("</script>")[0]
    assert json.loads(data)["title"] == "</script><b>&"
    shown = rj.view(system)
    assert (
        shown._repr_html_().startswith("<iframe srcdoc=")
        and '"' not in shown._repr_html_()[20:400].split('"')[0]
    )
    path = shown.save(tmp_path / "run.html")
    assert path.read_text("utf-8") == shown.page
    with pytest.raises(FileExistsError, match="exists"):
        shown.save(path)
    shown.save(path, force=True)
    with pytest.raises(ValueError, match=r"must end with \.html; got .*run\.png"):
        shown.save(tmp_path / "run.png")
    assert not (tmp_path / "run.png").exists()


def test_invalid_input_raises(system, pendulum):
    states = turned_states(9)
    for arguments, options, message in (
        ((), {}, "needs something to show"),
        ((system,), {"labels": ["a", "b"]}, "must be 1 texts"),
        ((system,), {"theme": "blue"}, "theme"),
        ((system,), {"frames": 1}, "frames"),
        ((system,), {"speed": 0.0}, "positive"),
        ((system,), {"shapes": {"leg": viewer.sphere(1.0)}}, "names \\['leg'\\]"),
        ((system,), {"state": turned_states(2)}, "each of the 9 bodies"),
        ((system,), {"state": states, "ts": TS[:3]}, "increasing times"),
        ((pendulum,), {"state": states}, "goes with a model"),
        ((pendulum,), {"quantities": {"q": [1.0]}}, "each of the 5 saved times"),
        ((pendulum,), {"traces": {"leg": 1.0}}, "names \\['leg'\\]"),
        ((pendulum,), {"traces": {"rod": -1.0}}, "'rod' has -1.0"),
        ((pendulum.to_xarray().drop_vars("position"),), {}, "has no position"),
    ):
        with pytest.raises(ValueError, match=message):
            rj.view(*arguments, **options)
    with pytest.raises(TypeError, match="takes a `Solution`"):
        rj.view(3.0)
