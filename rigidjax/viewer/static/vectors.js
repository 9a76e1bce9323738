"use strict";
// Lines with a width in pixels, and arrows with a length proportional to a quantity.

function fatLine(points, color, width, opacity) {
  const geometry = new THREE.LineGeometry();
  geometry.setPositions(points);
  const material = new THREE.LineMaterial({ color, linewidth: width, transparent: opacity < 1, opacity });
  material.depthWrite = opacity === 1;
  return new THREE.Line2(geometry, material);
}

/**
 * The path of a point of a body up to the current time: of the last `seconds`, or of the whole run, which is then
 * also drawn faintly.
 */
class Trace {
  constructor(track, body, point, color, ghost) {
    Object.assign(this, { track, body, point, seconds: Infinity });
    this.points = new Float32Array(3 * track.times.length);
    track.times.forEach((_, row) => this.at([row, 0]).toArray(this.points, 3 * row));
    this.group = new THREE.Group();
    this.segments = track.times.length - 1;
    if (this.segments < 1) return;
    this.past = fatLine(this.points, color, ghost ? 1 : 2.4, ghost ? 0.35 : 0.9);
    this.whole = fatLine(this.points, color, ghost ? 0.8 : 1.2, ghost ? 0.15 : 0.3);
    this.group.add(this.whole, this.past);
  }

  /** Return the position of the point in a row, and part of the way to the next one. */
  at(where) {
    const turn = this.track.orientation(this.body, where, new THREE.Quaternion());
    return this.point.clone().applyQuaternion(turn).add(this.track.position(this.body, where, new THREE.Vector3()));
  }

  update(time) {
    if (this.segments < 1 || !this.group.visible) return;
    const [first, last] = [this.track.locate(time - this.seconds), this.track.locate(time)];
    const path = [...this.at(first), ...this.points.subarray(3 * (first[0] + 1), 3 * (last[0] + 1))];
    if (last[1] > 0) path.push(...this.at(last));
    const count = path.length / 3 - 1;
    const { data } = this.past.geometry.attributes.instanceStart;
    for (let k = 0; k < count; k++) data.array.set(path.slice(3 * k, 3 * k + 6), 6 * k);
    data.needsUpdate = true;
    this.past.geometry.instanceCount = count;
    this.past.visible = count > 0 && this.seconds > 0;
    this.whole.visible = this.seconds === Infinity;
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
