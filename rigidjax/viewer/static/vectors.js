"use strict";
// Lines with a width in pixels, and arrows with a length proportional to a quantity.

function fatLine(points, color, width, opacity) {
  const geometry = new THREE.LineGeometry();
  geometry.setPositions(points);
  const material = new THREE.LineMaterial({ color, linewidth: width, transparent: opacity < 1, opacity });
  material.depthWrite = opacity === 1;
  return new THREE.Line2(geometry, material);
}

/** The path of a point of a body, drawn faintly, and strongly up to the current time. */
class Trace {
  constructor(track, body, point, color, ghost) {
    const points = [];
    const [x, q] = [new THREE.Vector3(), new THREE.Quaternion()];
    for (let row = 0; row < track.times.length; row++) {
      track.position(body, [row, 0], x);
      track.orientation(body, [row, 0], q);
      points.push(...point.clone().applyQuaternion(q).add(x));
    }
    this.group = new THREE.Group();
    this.segments = track.times.length - 1;
    if (this.segments < 1) return;
    this.past = fatLine(points, color, ghost ? 1 : 2.4, ghost ? 0.35 : 0.9);
    this.group.add(fatLine(points, color, ghost ? 0.8 : 1.2, ghost ? 0.15 : 0.3), this.past);
  }

  update(row) {
    if (this.segments < 1) return;
    this.past.visible = row > 0;
    this.past.geometry.instanceCount = Math.max(row, 1);
  }
}

class Arrow {
  constructor(color, thickness) {
    // Drawn over everything else, because most arrows begin inside a body.
    const material = new THREE.MeshBasicMaterial({ color, depthTest: false, transparent: true });
    this.thickness = thickness;
    this.shaft = new THREE.Mesh(new THREE.CylinderGeometry(thickness, thickness, 1, 16), material);
    this.head = new THREE.Mesh(new THREE.ConeGeometry(2.6 * thickness, 1, 20), material);
    this.group = new THREE.Group();
    this.group.add(this.shaft, this.head);
    for (const mesh of [this.shaft, this.head]) mesh.renderOrder = 8;
  }

  /** Place the arrow at a point along a vector; hide it if it is shorter than its thickness. */
  set(from, vector) {
    const length = vector.length();
    this.group.visible = length > this.thickness;
    if (!this.group.visible) return;
    const head = Math.min(7 * this.thickness, 0.6 * length);
    const direction = vector.clone().divideScalar(length);
    placeBar(this.shaft, from, direction.clone().multiplyScalar(length - 0.9 * head));
    placeBar(this.head, from.clone().addScaledVector(direction, length - head), direction.multiplyScalar(head));
  }
}

/** Arrows of one kind on all bodies or joints of a run, with a common scale. */
class Arrows {
  constructor(values, count, color, length, thickness, startOf) {
    Object.assign(this, { values, startOf, length });
    this.usual = Track.usual(values);
    this.group = new THREE.Group();
    this.items = Array.from({ length: count }, () => new Arrow(color, thickness));
    this.group.add(...this.items.map((arrow) => arrow.group));
  }

  update(track, where, factor) {
    if (!this.group.visible) return;
    const scale = this.usual > 0 ? (factor * this.length) / this.usual : 0;
    const vector = new THREE.Vector3();
    this.items.forEach((arrow, k) => {
      track.vector(this.values, 3 * this.items.length, 3 * k, where, vector).multiplyScalar(scale).clampLength(0, 2 * factor * this.length);
      arrow.set(this.startOf(k), vector);
    });
  }
}
