"""Meshes: files, the volume inside, bodies of it."""

import struct

import jax
import numpy as np
import pytest
from scipy.spatial import ConvexHull, Delaunay
from scipy.spatial.transform import Rotation

import rigidjax as rj
from rigidjax.bodies import shapes

TURN = [[0, -1, 0], [1, 0, 0], [0, 0, 1]]
CORNERS = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
FACES = np.array([[0, 2, 1], [0, 1, 3], [1, 2, 3], [2, 0, 3]])


def stl_text():
    facets = "\n".join(
        "facet normal 0 0 0\nouter loop\n"
        + "\n".join(f"vertex {' '.join(map(str, CORNERS[k]))}" for k in face)
        + "\nendloop\nendfacet"
        for face in FACES
    )
    return f"solid s\n{facets}\nendsolid s\n".encode()


def stl_binary():
    records = b"".join(
        struct.pack("<12fH", 0, 0, 0, *CORNERS[face].astype("f4").ravel(), 0) for face in FACES
    )
    return bytes(80) + struct.pack("<I", len(FACES)) + records


def obj_text():
    lines = [f"v {x} {y} {z}" for x, y, z in CORNERS]
    lines += ["# a comment", "vn 0 0 1"]
    lines += [f"f {a + 1}/1/1 {b + 1}//1 {c - len(CORNERS)}" for a, b, c in FACES]
    return "\n".join(lines).encode()


@pytest.mark.parametrize(
    ("name", "data"), [("a.stl", stl_text()), ("b.STL", stl_binary()), ("c.obj", obj_text())]
)
def test_mesh_files_are_read(tmp_path, name, data):
    (tmp_path / name).write_bytes(data)
    mesh = rj.Mesh.read(tmp_path / name, 2.0, TURN, (0, 0, 1))
    wanted = 2.0 * CORNERS[FACES] @ np.array(TURN).T + np.array([0, 0, 1])
    np.testing.assert_allclose(mesh.vertices[mesh.faces], wanted)


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.ply", b"", "read from .stl and .obj"),
        ("a.stl", b"solid s\nendsolid s", "has no triangles"),
        ("a.stl", b"vertex 1 2 3", "each facet must have three vertices"),
        ("a.stl", bytes(90), "no triangles"),
        ("a.stl", stl_binary()[:-1], "binary STL of 4 facets has 284 bytes; there are 283"),
        ("a.stl", b"facet\nVertex 1 2\nvertex 1,5 2 3", "three numbers; got 'Vertex 1 2'"),
        ("a.stl", stl_text() + b"facet normal 0 0 1", "12 for 5 facets"),
        ("a.obj", b"v 0 0 0\nf 1 0 1", "'0' is no vertex"),
        ("a.obj", b"v 0 0 0\nf 1 -2 1", "'-2' is no vertex"),
        ("a.obj", b"v 0 0 0\nf 1 1 1" + b"1" * 23, "is no vertex"),
        ("a.obj", b"v 0 0 0\nf 1 1", "at least three corners; got 'f 1 1'"),
        ("a.obj", b"v 0 0\nf 1 1 1", "three coordinates; got 'v 0 0'"),
        ("a.obj", b"v 0 0 0\nf 1 2 three", "not a mesh as its suffix says"),
        ("a.obj", b"v 0 0 0\nf 1 2 3", "indices of the 1 vertices"),
    ],
)
def test_invalid_mesh_files_are_rejected(tmp_path, name, data, message):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(ValueError, match=message):
        rj.Mesh.read(tmp_path / name)


DIALECTS = {
    "capitals.stl": stl_text().upper(),
    "tabs.stl": stl_text().replace(b" ", b" \t ").replace(b"\n", b"\r\n"),
    "two_solids.stl": stl_text().replace(
        b"endfacet\nfacet", b"endfacet\nendsolid s\nSOLID Geh\xe4use vertex 2\nFacet", 1
    ),
    "one_line.stl": stl_text().replace(b"solid s\n", b"solid s\n", 1).replace(b"\n   ", b" "),
    "more_bytes.stl": stl_binary() + b"made by",
    "binary_solid.stl": b"solid part".ljust(80) + stl_binary()[80:],
    "continued.obj": obj_text().replace(b"/1/1 ", b" \\\r\n ").upper(),
    "normals.obj": b"\xef\xbb\xbf" + obj_text().replace(b"/1/1 ", b"//1 "),
}


@pytest.mark.parametrize("name", DIALECTS)
def test_dialects_of_stl_and_obj(tmp_path, name):
    (tmp_path / name).write_bytes(DIALECTS[name])
    mesh = rj.Mesh.read(tmp_path / name)
    np.testing.assert_allclose(mesh.vertices[mesh.faces], CORNERS[FACES])


BOX = np.array([[x, y, z] for x in (0, 1) for y in (0, 1) for z in (0, 1)], float) - 0.5
SIDES = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
TRIANGLES = np.array([t for a, b, c, d in SIDES for t in ((a, b, c), (a, c, d))])


def hull(points):
    """The convex hull, its triangles counterclockwise from outside."""
    found = ConvexHull(points)
    faces = found.simplices.copy()
    a, b, c = np.moveaxis(points[faces], 1, 0)
    inwards = np.sum(np.cross(b - a, c - a) * found.equations[:, :3], axis=1) < 0
    faces[inwards] = faces[inwards][:, ::-1]
    return rj.Mesh(points, faces)


def test_triangulated_box_has_the_inertia_of_a_box(rng):
    R, at, size = Rotation.random(rng=rng).as_matrix(), np.array([3.0, -2, 1]), (0.3, 0.2, 0.1)
    mesh = rj.Mesh(BOX * size @ R.T + at, TRIANGLES)
    wanted = shapes.box(size, density=700.0).transformed(R, at)
    # Inverted faces, or separate vertices for each triangle, describe the same solid.
    loose = rj.Mesh(mesh.vertices[mesh.faces[:, ::-1]].reshape(-1, 3), np.arange(36).reshape(-1, 3))
    for found in (shapes.mesh(mesh, density=700.0), shapes.mesh(loose, mass=wanted.mass)):
        for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-15)


def test_polyhedron_against_quadrature(rng):
    points = rng.normal(size=(30, 3)) * (0.3, 0.2, 0.1) + (1, 2, 3)
    found = shapes.mesh(hull(points), density=2.0)
    # Exact to second order in a tetrahedron: four points at equal weights.
    corners = points[Delaunay(points).simplices]
    near, far = (5 + 3 * np.sqrt(5)) / 20, (5 - np.sqrt(5)) / 20
    nodes = np.einsum("ij,tjk->tik", far + (near - far) * np.eye(4), corners)
    volumes = abs(np.linalg.det(corners[:, 1:] - corners[:, :1])) / 6
    weights, x = np.repeat(volumes / 2, 4), nodes.reshape(-1, 3)
    mass = weights.sum()
    center = weights @ x / mass
    second = np.einsum("t,ti,tj->ij", weights, x - center, x - center)
    np.testing.assert_allclose(found.mass, mass, rtol=1e-12)
    np.testing.assert_allclose(found.center, center, rtol=1e-12)
    np.testing.assert_allclose(
        found.tensor, np.trace(second) * np.eye(3) - second, rtol=1e-9, atol=1e-12
    )


def test_body_has_the_pose_of_its_mesh(rng):
    mesh = rj.Mesh(CORNERS, FACES)
    p = Rotation.random(rng=rng).as_quat(scalar_first=True)
    body = rj.Body.mesh("b", mesh, density=6.0, origin=(1, 2, 3), orientation=p)
    turned = Rotation.from_quat(p, scalar_first=True).apply(CORNERS)
    np.testing.assert_allclose(body.position, turned.mean(axis=0) + np.array([1, 2, 3]), rtol=1e-12)
    np.testing.assert_allclose(body.mass, 1.0, rtol=1e-12)
    np.testing.assert_allclose(body.shape.vertices, CORNERS - 0.25)
    moved = rj.Body.mesh("b", mesh, density=6.0, position=(1, 2, 3))
    np.testing.assert_array_equal(moved.position, (1.0, 2.0, 3.0))
    mass = jax.jit(lambda d: rj.Body.mesh("b", mesh, density=d, origin=(0, 0, 1)).mass)
    np.testing.assert_allclose(jax.grad(mass)(6.0), 1 / 6, rtol=1e-12)


def test_equality_compares_vertices_and_faces():
    mesh, same = rj.Mesh(CORNERS, FACES), rj.Mesh(CORNERS.tolist(), FACES.tolist())
    assert mesh == same and hash(mesh) == hash(same) and mesh != rj.Mesh(CORNERS, FACES[:3])
    assert repr(mesh) == "Mesh of 4 vertices, 4 faces"
    with pytest.raises(ValueError, match="read-only"):
        mesh.vertices[0] = 1.0


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: rj.Mesh([[0, 0]], [[0, 0, 0]]), "shape \\(V, 3\\)"),
        (lambda: rj.Mesh([[0, 0, 0]], [[0.0, 0, 0]]), "integers"),
        (lambda: rj.Mesh(CORNERS, FACES).placed(scale=0.0), "scale.*positive"),
        (lambda: rj.Mesh(CORNERS, FACES).placed(rotation=-np.eye(3)), "rotation matrix"),
        (lambda: rj.Mesh(CORNERS, FACES).placed(offset=(0, 0)), "offset"),
        (lambda: rj.Mesh(CORNERS, FACES[:3]).solid(), "at 3 of its 6 edges"),
        (lambda: rj.Mesh(CORNERS, [[0, 1, 2], [0, 2, 1]]).solid(), "encloses no volume"),
        (lambda: rj.Body.mesh("b", rj.Mesh(CORNERS, FACES)), "exactly one of"),
        (
            lambda: rj.Body.mesh(
                "b", rj.Mesh(CORNERS, FACES), mass=1.0, origin=(0, 0, 0), position=(0, 0, 0)
            ),
            "got both",
        ),
    ],
)
def test_invalid_meshes_are_rejected(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_vertices_that_differ_by_rounding_are_merged(rng):
    """Every facet has separate vertices, rounded to single precision far from the origin."""
    exact = rj.Mesh(0.05 * BOX + np.array([3.0, -2.0, 1.0]), TRIANGLES)
    corners = exact.vertices[exact.faces].reshape(-1, 3)
    rounded = (corners + 1.2e-7 * rng.uniform(-1, 1, corners.shape)).astype("f4")
    loose = rj.Mesh(rounded, np.arange(36).reshape(-1, 3))
    assert abs(loose.solid().volume / 0.05**3 - 1) < 3e-5
    with pytest.raises(ValueError, match="no closed surface"):
        rj.Mesh(
            1.0 + 1e-4 * rng.uniform(size=(36, 3)) + corners, np.arange(36).reshape(-1, 3)
        ).solid()


def boxes(*places, inside_out=False):
    """Return scaled and moved unit boxes, the last one inverted on request."""
    vertices = np.concatenate([BOX * np.asarray(size) + at for size, at in places])
    faces = [TRIANGLES + 8 * k for k in range(len(places))]
    if inside_out:
        faces[-1] = faces[-1][:, ::-1]
    return rj.Mesh(vertices, np.concatenate(faces))


def test_overlapping_shells_are_named():
    apart, touching = ((1, (0, 0, 0)), (1, (2, 0, 0))), ((1, (0, 0, 0)), (0.5, (0.75, 0.1, 0)))
    within, beams = ((1, (0, 0, 0)), (0.5, (0.1, 0, 0))), ((3, 0.2, 0.2), (0.3, 3, 0.3))
    for mesh in (boxes(*apart), boxes(*touching), boxes(*within, inside_out=True)):
        assert mesh.doubts() == []
    hollow = boxes(*within, inside_out=True)
    assert rj.Body.mesh("b", hollow, density=2.0).mass == pytest.approx(2 * (1 - 0.125))
    (text,) = boxes(*within).doubts()
    assert "shell 2 (12 triangles) lies within shell 1 (12 triangles), both facing" in text
    crossing = boxes(*((size, (0, 0, 0)) for size in beams))
    with pytest.warns(UserWarning, match=r"`Body.mesh\('b', ...\)`: Shells.*1.*and.*2.*intersect"):
        rj.Body.mesh("b", crossing, mass=1.0)
    assert boxes(*((size, (0, 0, 0)) for size in beams), (1, (9, 9, 9))).doubts()


def test_improbable_size_warns_about_the_unit(tmp_path):
    (tmp_path / "part.stl").write_bytes(stl_text().replace(b"1.0", b"140.0"))
    with pytest.warns(UserWarning, match=r"140 m long.*unit.*scale=0.001\)` for millimetres"):
        rj.Body.mesh("part", tmp_path / "part.stl", density=2700.0)
    for scale in (0.001, 1.0):
        rj.Body.mesh("part", rj.Mesh.read(tmp_path / "part.stl", scale), density=2700.0)
