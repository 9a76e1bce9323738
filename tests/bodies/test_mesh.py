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
def test_meshes_are_read(tmp_path, name, data):
    (tmp_path / name).write_bytes(data)
    mesh = rj.Mesh.read(tmp_path / name, 2.0, TURN, (0, 0, 1))
    wanted = 2.0 * CORNERS[FACES] @ np.array(TURN).T + np.array([0, 0, 1])
    np.testing.assert_allclose(mesh.vertices[mesh.faces], wanted)


@pytest.mark.parametrize(
    ("name", "data", "message"),
    [
        ("a.ply", b"", "read from .stl and .obj"),
        ("a.stl", b"solid s\nendsolid s", "has no triangles"),
        ("a.stl", b"vertex 1 2 3", "not three for each facet"),
        ("a.stl", bytes(90), "no triangles"),
        ("a.obj", b"v 0 0 0\nf 1 2 three", "not a mesh as its ending says"),
        ("a.obj", b"v 0 0 0\nf 1 2 3", "indices of the 1 vertices"),
    ],
)
def test_what_is_no_mesh_is_refused(tmp_path, name, data, message):
    (tmp_path / name).write_bytes(data)
    with pytest.raises(ValueError, match=message):
        rj.Mesh.read(tmp_path / name)


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


def test_a_box_of_triangles_is_the_box(rng):
    R, at, size = Rotation.random(rng=rng).as_matrix(), np.array([3.0, -2, 1]), (0.3, 0.2, 0.1)
    mesh = rj.Mesh(BOX * size @ R.T + at, TRIANGLES)
    wanted = shapes.box(size, density=700.0).transformed(R, at)
    # Inside out, and with vertices of each triangle of its own, it is the same solid.
    loose = rj.Mesh(mesh.vertices[mesh.faces[:, ::-1]].reshape(-1, 3), np.arange(36).reshape(-1, 3))
    for found in (shapes.mesh(mesh, density=700.0), shapes.mesh(loose, mass=wanted.mass)):
        for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-15)


def test_a_polyhedron_against_quadrature_over_its_inside(rng):
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


def test_a_body_is_where_its_mesh_is(rng):
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


def test_meshes_are_equal_by_their_numbers():
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
def test_bad_meshes_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()
