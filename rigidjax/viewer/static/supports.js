"use strict";
// Symbols of the ground: a pyramid on a hatched plate below each joint that is fixed to it.

/** Return a support whose tip is at the origin and whose plate is in the direction of `down`. */
function supportOf(size, down, material, lineMaterial) {
  const group = new THREE.Group();
  const [high, half] = [2.3 * size, 1.5 * size];
  const pyramid = new THREE.Mesh(new THREE.ConeGeometry(1.25 * size, high, 4).rotateY(Math.PI / 4).translate(0, -high / 2, 0), material);
  const plate = new THREE.Mesh(new THREE.BoxGeometry(2 * half, 0.22 * size, 2 * half).translate(0, -high - 0.11 * size, 0), material);
  pyramid.castShadow = plate.castShadow = true;
  const points = [];
  const [top, step] = [-high - 0.22 * size, half / 2.5];
  for (const side of [-half, half]) {
    for (let x = -half + step; x <= half + 1e-9 * half; x += step) {
      points.push(x, top, side, x - step, top - step, side, side, top, x, side, top - step, x - step);
    }
  }
  const geometry = new THREE.BufferGeometry();
  geometry.setAttribute("position", new THREE.BufferAttribute(new Float32Array(points), 3));
  group.add(pyramid, plate, new THREE.LineSegments(geometry, lineMaterial));
  group.quaternion.setFromUnitVectors(new THREE.Vector3(0, -1, 0), down);
  return group;
}

/** Return the positions of the supports of a joint or spring of the ground, with the direction to the plate. */
function supportPlaces(run, joint, up, size) {
  const end = joint.parent < 0 ? "parent" : "child";
  const other = end === "parent" ? "child" : "parent";
  if (joint[end] >= 0 || joint.kind === "Planar") return [];
  const at = new THREE.Vector3(...joint[`${end}_point`]);
  const axis = new THREE.Vector3(0, 0, 1).applyQuaternion(quaternionOf(joint[`${end}_orientation`] ?? [1, 0, 0, 0]));
  const down = up.clone().negate();
  if (["Prismatic", "Cylindrical", "Screw"].includes(joint.kind) && end === "parent") {
    const [low, high] = [joint.range[0] - 2 * size, joint.range[1] + 2 * size];
    const ends = [low, high].map((s) => at.clone().addScaledVector(axis, s));
    const tilt = axis.dot(up);
    if (Math.abs(tilt) > 0.8) return [[ends[tilt > 0 ? 0 : 1], down]];
    return ends.map((point) => [point, down]);
  }
  // Hanging bodies have their support above.
  const mean = new THREE.Vector3();
  const x = new THREE.Vector3();
  const { track } = run;
  let reach = 0;
  for (let row = 0; row < track.times.length; row++) {
    track.position(joint[other], [row, 0], x).sub(at);
    mean.add(x);
    reach += x.length();
  }
  return [[at, mean.dot(up) < -0.3 * reach ? up.clone() : down]];
}
