"use strict";
// The region of a motion: corners of all bodies at all times, and camera positions that show it.

const MARGIN = 0.1; // free space on each side, as a part of the picture
const MAX_POINTS = 400000;

/** Directions that are spread evenly over the sphere. */
const DIRECTIONS = Array.from({ length: 80 }, (_, k) => {
  const z = 1 - (2 * k + 1) / 80;
  const angle = k * Math.PI * (3 - Math.sqrt(5));
  return new THREE.Vector3(Math.cos(angle) * Math.sqrt(1 - z * z), Math.sin(angle) * Math.sqrt(1 - z * z), z);
});

/** Return points, in body components, whose convex hull is nearly that of a shape. */
function hullOf(shape) {
  const [a, b, c] = shape.size;
  let points = DIRECTIONS.map((direction) => direction.clone());
  if (shape.kind === "box") {
    points = Array.from({ length: 8 }, (_, k) => new THREE.Vector3(...[a, b, c].map((s, axis) => (k >> axis & 1 ? s : -s) / 2)));
  } else if (shape.kind === "mesh") points = extremesOf(decodeArray(shape.triangles));
  else if (shape.kind === "sphere") for (const point of points) point.multiplyScalar(a);
  else if (shape.kind === "ellipsoid") for (const point of points) point.multiply(new THREE.Vector3(a, b, c));
  else {
    const half = b / 2 + (shape.kind === "bar" ? a : 0);
    points = Array.from({ length: 48 }, (_, k) => {
      const [angle, z] = [(Math.PI * (k >> 1)) / 12, k & 1 ? half : -half];
      const radius = shape.kind === "cone" && z < 0 ? 0 : a;
      return new THREE.Vector3(radius * Math.cos(angle), radius * Math.sin(angle), z);
    });
  }
  const turn = quaternionOf(shape.orientation);
  const center = new THREE.Vector3(...shape.position);
  return points.map((point) => point.applyQuaternion(turn).add(center));
}

/** Return the vertices that are farthest in each of the directions. */
function extremesOf(values) {
  const found = new Map();
  for (const { x, y, z } of DIRECTIONS) {
    let [best, most] = [0, -Infinity];
    for (let i = 0; i < values.length; i += 3) {
      const reach = values[i] * x + values[i + 1] * y + values[i + 2] * z;
      if (reach > most) [best, most] = [i, reach];
    }
    found.set(best, new THREE.Vector3(values[best], values[best + 1], values[best + 2]));
  }
  return [...found.values()];
}

/** Return the corners of all bodies at all saved times, three numbers each; of long runs only a part of the times. */
function motionPoints(runs) {
  const corners = runs.map(({ run }) => run.bodies.map((body) => body.shapes.flatMap(hullOf)));
  const total = runs.reduce((sum, { track }, k) => sum + track.times.length * corners[k].flat().length, 0);
  const stride = Math.ceil(total / MAX_POINTS);
  const points = [];
  const [x, q, p] = [new THREE.Vector3(), new THREE.Quaternion(), new THREE.Vector3()];
  runs.forEach(({ track }, k) => {
    const rows = track.times.length;
    for (let row = 0; row < rows; row += row + stride < rows || row === rows - 1 ? stride : rows - 1 - row) {
      corners[k].forEach((list, body) => {
        track.position(body, [row, 0], x);
        track.orientation(body, [row, 0], q);
        for (const corner of list) points.push(...p.copy(corner).applyQuaternion(q).add(x));
      });
    }
  });
  return points;
}

/**
 * Return the position, the target and the half height of a camera that shows all points with a margin on each side.
 *
 * `away` is the unit vector from the target to the camera; `slope` is the tangent of half the angle of view, or 0 for
 * a parallel projection.
 */
function frameOfPoints(points, away, up, slope, aspect) {
  const right = new THREE.Vector3().crossVectors(up, away).normalize();
  const above = new THREE.Vector3().crossVectors(away, right);
  const inner = 1 - 2 * MARGIN;
  const [sx, sy] = [slope * aspect * inner, slope * inner];
  // Largest values of x, -x, y, -y, each with the widening of the view, and the range of the depth.
  const most = [-Infinity, -Infinity, -Infinity, -Infinity];
  let [near, far] = [-Infinity, Infinity];
  for (let i = 0; i < points.length; i += 3) {
    const [a, b, c] = [points[i], points[i + 1], points[i + 2]];
    const x = a * right.x + b * right.y + c * right.z;
    const y = a * above.x + b * above.y + c * above.z;
    const z = a * away.x + b * away.y + c * away.z;
    most[0] = Math.max(most[0], x + sx * z);
    most[1] = Math.max(most[1], sx * z - x);
    most[2] = Math.max(most[2], y + sy * z);
    most[3] = Math.max(most[3], sy * z - y);
    near = Math.max(near, z);
    far = Math.min(far, z);
  }
  const [x, y] = [(most[0] - most[1]) / 2, (most[2] - most[3]) / 2];
  const [wide, high] = [(most[0] + most[1]) / 2, (most[2] + most[3]) / 2];
  const depth = (near + far) / 2;
  const distance = slope > 0 ? Math.max(wide / sx, high / sy) : near + 1.5 * Math.max(wide, high);
  const at = (z) => new THREE.Vector3().addScaledVector(right, x).addScaledVector(above, y).addScaledVector(away, z);
  return { position: at(distance), target: at(depth), half: Math.max(high, wide / aspect) / inner };
}
