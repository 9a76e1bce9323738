"use strict";
// Joint coordinates by sliders, for a mechanism without loops that has no run.

/** Displacement of a unit change of a coordinate: axis, and whether it precedes the present relative pose. */
const FREEDOMS = { x: [0, true], y: [1, true], z: [2, true], a: [0, true], b: [1, false], c: [2, false] };

class Posing {
  constructor(viewer) {
    this.viewer = viewer;
    this.view = viewer.runs[0];
    this.changes = this.view.run.coordinates.map(() => 0);
    const frame = (end, joint) => this.pose(joint[`${end}_point`], quaternionOf(joint[`${end}_orientation`]));
    const body = (k) => k < 0 ? new THREE.Matrix4() : this.pose(this.view.bodies[k].position.toArray(), this.view.bodies[k].quaternion);
    this.view.update(viewer.start, 1);
    // Each joint is passed from the side that is placed already; bodies without a joint stay.
    const reached = new Set([-1]);
    const waiting = [...this.view.run.joints.entries()];
    this.links = [];
    while (waiting.length) {
      let next = waiting.findIndex(([, joint]) => reached.has(joint.parent) || reached.has(joint.child));
      if (next < 0) {
        reached.add(waiting[0][1].parent);
        next = 0;
      }
      const [[index, joint]] = waiting.splice(next, 1);
      const [parent, child] = [frame("parent", joint), frame("child", joint)];
      const start = body(joint.parent).multiply(parent).invert().multiply(body(joint.child)).multiply(child);
      this.links.push({ index, joint, parent, child, start, isReversed: !reached.has(joint.parent) });
      reached.add(joint.parent).add(joint.child);
    }
    const bar = document.getElementById("bar");
    bar.replaceChildren(...this.view.run.coordinates.map((coordinate, k) => this.slider(coordinate, k)));
    bar.classList.add("joints");
    bar.hidden = !this.changes.length;
  }

  pose(point, orientation) {
    return new THREE.Matrix4().compose(new THREE.Vector3(...point), orientation, new THREE.Vector3(1, 1, 1));
  }

  slider(coordinate, k) {
    const start = this.view.track.coordinates[k].values[0];
    const [min, max] = coordinate.limits;
    const value = document.createElement("b");
    const write = () => (value.textContent = `${inWords(start + this.changes[k], max - min)} ${coordinate.unit}`);
    const input = Object.assign(document.createElement("input"), { type: "range", min, max, step: "any", value: start });
    input.addEventListener("input", () => {
      this.changes[k] = Number(input.value) - start;
      write();
      this.viewer.ask();
    });
    write();
    const label = labelled(coordinate.name, input, true);
    label.append(value);
    return label;
  }

  /** Return the relative pose of the frames of a joint. */
  relative({ index, joint, start }) {
    const result = start.clone();
    this.view.run.coordinates.forEach(({ joint: own, freedom }, k) => {
      if (own !== index) return;
      const [axis, isFirst] = FREEDOMS[freedom];
      const unit = new THREE.Vector3().setComponent(axis, 1);
      const shift = "xyz".includes(freedom) ? this.changes[k] : (joint.pitch * this.changes[k]) / (2 * Math.PI);
      const angle = "xyz".includes(freedom) ? 0 : this.changes[k];
      const change = this.pose(unit.clone().multiplyScalar(shift).toArray(), new THREE.Quaternion().setFromAxisAngle(unit, angle));
      if (isFirst) result.premultiply(change);
      else result.multiply(change);
    });
    return result;
  }

  /** Place the bodies at the coordinates of the sliders. */
  apply() {
    const bodies = this.view.bodies;
    const place = (k) => k < 0 ? new THREE.Matrix4() : this.pose(bodies[k].position.toArray(), bodies[k].quaternion);
    for (const link of this.links) {
      const { joint, parent, child, isReversed } = link;
      const along = parent.clone().multiply(this.relative(link)).multiply(child.clone().invert());
      const [from, to] = isReversed ? [joint.child, joint.parent] : [joint.parent, joint.child];
      const found = place(from).multiply(isReversed ? along.invert() : along);
      found.decompose(bodies[to].position, bodies[to].quaternion, new THREE.Vector3());
    }
  }
}
