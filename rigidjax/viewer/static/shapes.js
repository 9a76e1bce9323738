"use strict";
// Bodies as solids. Round ones have fields of two tones, so that their rotation is visible.

const PALETTE = ["#3f7fd6", "#e5853b", "#36a07c", "#c25fa3", "#d3a92f", "#51aed0", "#8a70d4", "#d45a52"];
const RUN_COLORS = ["#3f7fd6", "#e5853b", "#36a07c", "#c25fa3", "#8a70d4", "#d3a92f"];

function bodyColor(index, count) {
  if (count <= PALETTE.length) return new THREE.Color(PALETTE[index]);
  return new THREE.Color().setHSL((0.58 + (0.8 * index) / count) % 1, 0.5, 0.55);
}

/** Return the geometry of a shape whose axis is the third one. */
function geometryOf(shape) {
  const [a, b, c] = shape.size;
  switch (shape.kind) {
    case "box":
      return new THREE.RoundedBoxGeometry(a, b, c, 3, 0.12 * Math.min(a, b, c));
    case "sphere":
      return inFields(new THREE.SphereGeometry(a, 48, 32), checkered);
    case "ellipsoid":
      return inFields(new THREE.SphereGeometry(1, 48, 32).scale(a, b, c), checkered);
    case "cylinder":
      return inFields(new THREE.CylinderGeometry(a, a, b, 48, 2).rotateX(Math.PI / 2), checkered);
    case "cone": // from the apex, at the negative end, to the base
      return inFields(new THREE.ConeGeometry(a, b, 48, 2).rotateX(-Math.PI / 2), checkered);
    case "bar":
      return new THREE.CapsuleGeometry(a, b, 6, 20).rotateX(Math.PI / 2);
    case "mesh": {
      const geometry = new THREE.BufferGeometry();
      geometry.setAttribute("position", new THREE.BufferAttribute(decodeArray(shape.triangles), 3));
      geometry.computeVertexNormals();
      return geometry;
    }
    default:
      throw new Error(`There is no shape called ${shape.kind}.`);
  }
}

/** Return whether a point is in a dark field: eight sectors around the third axis, exchanged at the middle. */
function checkered(x, y, z) {
  return (Math.floor((4 * Math.atan2(y, x)) / Math.PI + 8) + (z > 1e-9)) % 2 > 0;
}

/** Return the geometry with a darker tone on the triangles for which `dark` is true. */
function inFields(geometry, dark) {
  const loose = geometry.index ? geometry.toNonIndexed() : geometry;
  const at = loose.attributes.position;
  const tones = new Float32Array(3 * at.count);
  const mean = (get, i) => (get(i) + get(i + 1) + get(i + 2)) / 3;
  for (let i = 0; i < at.count; i += 3) {
    const middle = [(k) => at.getX(k), (k) => at.getY(k), (k) => at.getZ(k)].map((get) => mean(get, i));
    tones.fill(dark(...middle) ? 0.62 : 1, 3 * i, 3 * i + 9);
  }
  loose.setAttribute("color", new THREE.BufferAttribute(tones, 3));
  return loose;
}

/** Return the solids of a body, in its axes, with the origin at its reference point. */
function solidOf(body, color, ghost) {
  const group = new THREE.Group();
  for (const shape of body.shapes) {
    const geometry = geometryOf(shape);
    const material = new THREE.MeshStandardMaterial({
      color,
      vertexColors: geometry.hasAttribute("color"),
      roughness: 0.5,
      metalness: 0.05,
      transparent: ghost,
      opacity: ghost ? 0.28 : 1,
      depthWrite: !ghost,
      // Where a faint run agrees with the first one, the first one is drawn in front.
      polygonOffset: ghost,
      polygonOffsetFactor: 1,
      polygonOffsetUnits: 4,
      side: shape.kind === "mesh" ? THREE.DoubleSide : THREE.FrontSide,
    });
    const mesh = new THREE.Mesh(geometry, material);
    mesh.position.set(...shape.position);
    mesh.quaternion.copy(quaternionOf(shape.orientation));
    mesh.castShadow = !ghost;
    mesh.receiveShadow = !ghost;
    group.add(mesh);
  }
  return group;
}

/** Return the ellipsoid with the inertia of a body, translucent. */
function ellipsoidOf(shape, color) {
  const material = new THREE.MeshStandardMaterial({ color, transparent: true, opacity: 0.3, depthWrite: false });
  const mesh = new THREE.Mesh(new THREE.SphereGeometry(1, 48, 32).scale(...shape.size), material);
  mesh.position.set(...shape.position);
  mesh.quaternion.copy(quaternionOf(shape.orientation));
  return mesh;
}

/** Return a round bar between two points. */
function barOf(from, to, radius, material) {
  const along = new THREE.Vector3().subVectors(to, from);
  const mesh = new THREE.Mesh(new THREE.CylinderGeometry(radius, radius, 1, 16), material);
  placeBar(mesh, from, along);
  mesh.castShadow = true;
  return mesh;
}

/** Place a bar of unit length along its second axis so that it starts at a point and spans a vector. */
function placeBar(mesh, from, along) {
  const length = along.length();
  mesh.visible = length > 0;
  if (!mesh.visible) return;
  mesh.position.copy(from).addScaledVector(along, 0.5);
  mesh.quaternion.setFromUnitVectors(new THREE.Vector3(0, 1, 0), along.clone().divideScalar(length));
  mesh.scale.set(1, length, 1);
}

/** Return three bars along the axes of a frame: red, green and blue. */
function frameOf(length) {
  const group = new THREE.Group();
  ["#e0503f", "#3fa552", "#3f6fe0"].forEach((color, k) => {
    const tip = new THREE.Vector3().setComponent(k, length);
    const bar = barOf(new THREE.Vector3(), tip, 0.008 * length, new THREE.MeshBasicMaterial({ color }));
    bar.castShadow = false;
    group.add(bar);
  });
  return group;
}

/** Return the symbol of a centre of mass: a ball with dark and light octants. */
function massCenterOf(radius) {
  const geometry = inFields(new THREE.SphereGeometry(radius, 32, 24), (x, y, z) => x * y * z > 0);
  const colors = geometry.attributes.color.array;
  for (let i = 0; i < colors.length; i++) colors[i] = colors[i] < 1 ? 0.02 : 1;
  const material = new THREE.MeshBasicMaterial({ vertexColors: true, depthTest: false, transparent: true });
  const mesh = new THREE.Mesh(geometry, material);
  mesh.renderOrder = 5;
  return mesh;
}
