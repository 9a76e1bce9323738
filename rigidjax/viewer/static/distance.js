"use strict";
// The distance between two points, which are chosen in lists or by clicks with the shift key.

class Distance {
  constructor(viewer) {
    this.viewer = viewer;
    this.readout = document.getElementById("distance");
    const [run] = viewer.runs;
    this.points = [
      ...viewer.tracePoints,
      ...run.run.joints.map(({ name, child, child_point }) => ({ name, body: child, point: child_point })),
      { name: "origin", body: -1, point: [0, 0, 0] },
    ].map((point) => ({ ...point, run, point: new THREE.Vector3(...point.point) }));
    const radius = 0.004 * viewer.stage.radius;
    const material = new THREE.MeshBasicMaterial({ color: "#cf3d62", depthTest: false, transparent: true });
    this.bar = new THREE.Mesh(new THREE.CylinderGeometry(radius, radius, 1, 12), material);
    this.bar.renderOrder = 8;
    viewer.stage.scene.add(this.bar);
    this.lists = ["from", "to"].map((end) => {
      const select = list([[-1, "nothing"], ...this.points.map(({ name }, k) => [k, name])], -1);
      select.id = `distance-${end}`;
      select.addEventListener("change", () => viewer.ask());
      return select;
    });
  }

  /** Choose the point of a body under the pointer, or a joint, as the first or second end. */
  pick({ run, item, at }) {
    const joint = run.run.joints[item.joint];
    const body = joint ? joint.child : item.body;
    const point = joint ? new THREE.Vector3(...joint.child_point) : run.bodies[body].worldToLocal(at);
    const name = (joint ? joint.name : `point on ${run.run.bodies[body].name}`) + this.viewer.picking.suffixOf(run);
    const k = this.points.push({ name, run, body, point }) - 1;
    for (const select of this.lists) select.add(new Option(name, k));
    const [from, to] = this.lists;
    const isSecond = from.value !== "-1" && to.value === "-1";
    to.value = isSecond ? k : -1;
    if (!isSecond) from.value = k;
    this.viewer.ask();
  }

  clear() {
    for (const select of this.lists) select.value = "-1";
    this.viewer.ask();
  }

  update() {
    const ends = this.lists.map((select) => this.points[select.value]);
    const [from, to] = ends.map((end) => end?.run.pointOf(end.body, end.point));
    const along = from && to ? new THREE.Vector3().subVectors(to, from) : new THREE.Vector3();
    placeBar(this.bar, from, along);
    this.readout.hidden = !from;
    if (!from) return;
    const value = Object.assign(document.createElement("b"), { textContent: to ? `distance ${along.length().toPrecision(5)} m` : "distance" });
    const names = Object.assign(document.createElement("div"), { textContent: `from ${ends[0].name} to ${ends[1]?.name ?? "\u2026"}` });
    this.readout.replaceChildren(value, names);
  }
}
