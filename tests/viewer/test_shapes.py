"""Shapes of bodies: given, equivalent to an inertia, meshes."""

import numpy as np
import pytest

import rigidjax as rj
from rigidjax import viewer
from rigidjax.io.mechanism import describe_mechanism
from rigidjax.plotting.film import faces_of
from rigidjax.viewer.scene import decode_array
from rigidjax.viewer.shapes import inertia_ellipsoid, shapes_of


def describe_body(body):
    (entry,) = describe_mechanism(rj.System([body]))["bodies"]
    return entry


@pytest.mark.parametrize(
    ("body", "kind", "size"),
    [
        (rj.Body.box("b", (0.3, 0.2, 0.1), density=700.0), "box", (0.3, 0.2, 0.1)),
        (rj.Body.box("b", (0.2, 0.2, 0.2), mass=3.0), "box", (0.2, 0.2, 0.2)),
        (rj.Body.cylinder("b", 0.1, 0.4, mass=2.0), "cylinder", (0.1, 0.4)),
        (rj.Body.sphere("b", 0.25, mass=2.0), "sphere", (0.25,)),
        (rj.Body.ellipsoid("b", (0.3, 0.2, 0.1), mass=2.0), "ellipsoid", (0.3, 0.2, 0.1)),
        (rj.Body.cone("b", 0.1, 0.4, mass=2.0), "cone", (0.1, 0.4)),
        (rj.Body.rod("b", 2.0, 0.05, mass=2.0), "cylinder", (0.05, 2.0)),
        # Without a given shape the inertia determines it.
        (rj.Body("b", 2.0, (0.05, 0.13, 0.10)), "box", None),
        (rj.Body("b", 2.0, (0.05, 0.05, 0.05)), "sphere", (0.25,)),
        (rj.Body("b", 2.0, (0.03, 0.03, 0.01)), "cylinder", (0.1, 0.3872983346)),
    ],
)
def test_solids_have_their_size(body, kind, size):
    (shape,) = shapes_of(describe_body(body), 1e-3)
    assert shape.kind == kind
    if size is not None:
        np.testing.assert_allclose(shape.size, size, rtol=1e-6)


def test_equivalent_box_has_the_inertia(rng):
    turn, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    inertia = turn @ np.diag([0.05, 0.13, 0.10]) @ turn.T
    (shape,) = shapes_of(describe_body(rj.Body("b", 2.0, 0.5 * (inertia + inertia.T))), 1e-3)
    a, b, c = np.square(shape.size)
    moments = 2.0 / 12 * np.array([b + c, c + a, a + b])
    np.testing.assert_allclose(shape.axes @ np.diag(moments) @ shape.axes.T, inertia, atol=1e-12)
    assert np.linalg.det(shape.axes) > 0


def test_apex_of_a_cone_matches_its_inertia():
    body = describe_body(rj.Body.cone("b", 0.1, 0.4, mass=2.0))
    (shape,) = shapes_of(body, 1e-3)
    # Half of the height is a quarter above the centre of mass, towards the apex.
    np.testing.assert_allclose(shape.position, (0.0, 0.0, -0.1), atol=1e-12)


def test_a_top_stands_on_its_fixed_point():
    top = rj.problems.symmetric_top().system
    (entry,) = describe_mechanism(top)["bodies"]
    (shape,) = shapes_of(entry, 1.0)
    radius, height = shape.size
    assert shape.kind == "cone" and max(shape.size) == 1.0
    np.testing.assert_allclose(shape.position, (0.0, 0.0, 0.5 * height))
    ratio = (0.15 * radius**2 + 0.6 * height**2) / (0.3 * radius**2)
    np.testing.assert_allclose(ratio, entry["inertia"][0][0] / entry["inertia"][2][2])


def test_plates_of_plane_mechanisms_are_bars_between_their_joints():
    plate = rj.Body("plate", 1.0, (0.5, 0.5, 1.0))
    points = [np.array([-0.4, 0.0, 0.0]), np.array([0.4, 0.0, 0.0])]
    bar, hub = shapes_of(describe_body(plate), 0.4, points)
    assert (bar.kind, hub.kind) == ("bar", "sphere")
    np.testing.assert_allclose(bar.size[1], 0.8)
    stout = rj.Body("stout", 0.5, (4e-4, 4e-3, 4e-3))
    kinds = [
        s.kind
        for s in shapes_of(describe_body(stout), 0.15, [0.15 * np.eye(3)[0], -0.15 * np.eye(3)[0]])
    ]
    assert kinds == ["bar", "sphere"]
    (disc,) = shapes_of(describe_body(plate), 0.4, [np.zeros(3)])
    assert disc.kind == "cylinder"


def test_inertia_ellipsoids_have_the_inertia():
    body = rj.Body.ellipsoid("b", (0.3, 0.2, 0.1), mass=2.0)
    shape = inertia_ellipsoid(describe_body(body))
    np.testing.assert_allclose(shape.size, (0.3, 0.2, 0.1), rtol=1e-6)
    assert inertia_ellipsoid(describe_body(rj.Body("bob", 1.0, (0.0, 0.0, 0.0)))) is None


def test_body_without_inertia_is_a_small_ball():
    bob = rj.Body("bob", 1.0, (0.0, 0.0, 0.0))
    bar, ball = shapes_of(describe_body(bob), 1.0, [np.array([-1.0, 0.0, 0.0])])
    assert (ball.kind, bar.kind) == ("sphere", "bar")


def test_meshes_as_objects_or_files(tmp_path):
    mesh = rj.Mesh(0.1 * np.eye(4, 3), [[0, 2, 1], [0, 1, 3], [1, 2, 3], [2, 0, 3]])
    (tmp_path / "a.obj").write_text(
        "".join(f"v {x} {y} {z}\n" for x, y, z in mesh.vertices)
        + "".join(f"f {a + 1} {b + 1} {c + 1}\n" for a, b, c in mesh.faces)
    )
    system = rj.System([rj.Body("b", 1.0, (1, 1, 1)), rj.Body.mesh("c", mesh, mass=2.0)])
    shown = rj.view(system, system, shapes={"b": [tmp_path / "a.obj", viewer.sphere(0.1)]}).scene
    (first, ball), (own,) = (body["shapes"] for body in shown["runs"][0]["bodies"])
    assert (first["kind"], ball["kind"], own["kind"]) == ("mesh", "sphere", "mesh")
    # Surfaces are shared by runs and bodies.
    assert shown["runs"][1]["bodies"][0]["shapes"][0] == first
    assert len(shown["meshes"]) == 2
    np.testing.assert_allclose(
        decode_array(shown["meshes"][first["mesh"]]),
        mesh.vertices[mesh.faces].reshape(-1, 3),
        atol=2e-6,
    )
    found = decode_array(shown["meshes"][own["mesh"]]).reshape(-1, 3, 3)
    np.testing.assert_allclose(found, (mesh.vertices - 0.025)[mesh.faces], atol=2e-6)
    faces, _ = faces_of(own, shown["meshes"])
    np.testing.assert_array_equal(faces[:, :3], found)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: viewer.box((1.0, 2.0)), "3 positive lengths"),
        (lambda: viewer.sphere(-1.0), "1 positive length, m"),
        (lambda: viewer.sphere(1.0, position=(0, 0)), "position"),
        (lambda: viewer.cylinder(1.0, 2.0, axis=(0, 0, 0)), "not zero"),
        (lambda: rj.Body("b", 1.0, (1, 1, 1), shape="torus"), "must be one of"),
    ],
)
def test_invalid_shapes_raise(make, message):
    with pytest.raises(ValueError, match=message):
        make()
