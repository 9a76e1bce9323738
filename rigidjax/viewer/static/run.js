"use strict";
// A run in the scene: its bodies, joints, traces and arrows.

const ARROW_COLORS = { rates: "#9b4fd8", forces: "#d8a21a", reactions: "#cf3d62" };
const JOINT_LAYERS = ["joints", "supports", "axes"];
const WITH_AXIS = ["Revolute", "Cylindrical", "Screw", "Prismatic"];

class RunView {
  constructor(run, index, several, data) {
    this.run = run;
    this.data = data;
    this.track = new Track(run);
    this.faint = run.ghost || (several && index > 0);
    this.group = new THREE.Group();
    const radius = data.camera.radius;
    this.size = Math.min(Math.max(0.08 * data.unit, 0.01 * radius), 0.032 * radius);
    this.color = new THREE.Color(RUN_COLORS[(run.ghost ? 0 : index) % RUN_COLORS.length]);
    this.up = new THREE.Vector3(...data.camera.up);
    // One of several runs has its own colour, in tones of which its bodies differ.
    const tone = (i) => this.color.clone().offsetHSL(0, 0, [0, 0.1, -0.1][i % 3]);
    const layers = ["bodies", "inertia", ...JOINT_LAYERS, "frames", "centers", "rates", "forces", "reactions"];
    this.layers = Object.fromEntries(layers.map((layer) => [layer, []]));
    this.bodies = run.bodies.map((body, i) => this.addBody(body, several ? tone(i) : bodyColor(i, run.bodies.length)));
    this.traces = new Map();
    this.connections = [];
    this.makeMaterials();
    this.setTheme();
    this.addJoints(this.size);
    this.addArrows(0.3 * radius, 0.006 * radius);
  }

  put(layer, object, parent = this.group) {
    this.layers[layer].push(object);
    parent.add(object);
    return object;
  }

  addBody(body, color) {
    const object = new THREE.Group();
    this.group.add(object);
    object.userData = { color, name: body.name, solid: solidOf(body, color, this.faint) };
    this.put("bodies", object.userData.solid, object);
    if (!this.faint) {
      this.put("frames", frameOf(Math.max(1.15 * body.extent, 3 * this.size)), object);
      this.put("centers", massCenterOf(0.8 * this.size), object);
      if (body.inertia) this.put("inertia", ellipsoidOf(body.inertia, color), object);
    }
    return object;
  }

  /** Return the object of a body, or the scene for the ground. */
  holder(index) {
    return index < 0 ? this.group : this.bodies[index];
  }

  makeMaterials() {
    const look = { roughness: 0.35, metalness: 0.35, transparent: this.faint, opacity: this.faint ? 0.25 : 1, depthWrite: !this.faint };
    this.metal = new THREE.MeshStandardMaterial(look);
    this.chosen = new THREE.MeshStandardMaterial({ ...look, emissiveIntensity: 0.5 });
    this.stone = new THREE.MeshStandardMaterial({ roughness: 0.9, flatShading: true });
    this.hatch = new THREE.LineBasicMaterial();
  }

  /** Apply the colours of the style sheet. */
  setTheme() {
    const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
    this.metal.color.set(color("--metal"));
    this.chosen.color.set(color("--accent"));
    this.chosen.emissive.set(color("--accent"));
    this.stone.color.set(color("--stone"));
    this.hatch.color.set(color("--soft"));
    for (const { mesh } of this.connections) mesh.material.color.set(color("--metal"));
  }

  /** Draw the joints, their axes and supports, with a size. */
  addJoints(size) {
    for (const layer of JOINT_LAYERS) {
      for (const object of this.layers[layer].splice(0)) object.removeFromParent();
    }
    [this.connections, this.pens, this.supportPoints] = [[], [], []];
    if (this.run.ghost) return;
    for (const joint of this.run.joints) {
      const pen = new JointPen(joint, size, this.metal);
      this.pens.push(pen);
      this.put("joints", pen.parent, this.holder(joint.parent));
      this.put("joints", pen.child, this.holder(joint.child));
      if (joint.kind === "Distance") this.addConnection(rodOf(joint, size, this.metal));
      if (WITH_AXIS.includes(joint.kind) && !this.faint) this.put("axes", pen.axis(), pen.child);
    }
    const ink = `#${this.metal.color.getHexString()}`;
    for (const spring of this.run.springs) {
      this.addConnection(spring.is_cord ? cordOf(spring, ink) : springOf(spring, 0.9 * size, ink));
    }
    if (!this.faint) for (const joint of [...this.run.joints, ...this.run.springs]) this.addSupports(joint, size);
  }

  addSupports(joint, size) {
    for (const [at, down] of supportPlaces(this, joint, this.up, size)) {
      const support = supportOf(size, down, this.stone, this.hatch);
      support.position.copy(at);
      this.put("supports", support);
      const foot = at.clone().addScaledVector(down, 3.1 * size);
      for (const k of [0, 1, 2]) for (const s of [-1.5, 1.5]) {
        const side = new THREE.Vector3().setComponent(k, s * size);
        this.supportPoints.push(...foot.clone().add(side.addScaledVector(down, -side.dot(down))));
      }
    }
  }

  addConnection(connection) {
    this.connections.push(connection);
    this.put("joints", connection.mesh);
  }

  addArrows(length, thickness) {
    this.arrows = [];
    if (this.run.ghost) return;
    const center = (k) => this.bodies[k].position;
    const joint = (k) => this.pointOf(this.run.joints[k].child, new THREE.Vector3(...this.run.joints[k].child_point));
    for (const [kind, values, count, start] of [
      ["rates", this.track.rates, this.track.bodies, center],
      ["forces", this.track.forces, this.track.bodies, center],
      ["reactions", this.track.reactions, this.track.joints, joint],
    ]) {
      if (!values) continue;
      const arrows = new Arrows(values, count, ARROW_COLORS[kind], length, thickness, start);
      this.arrows.push(arrows);
      this.put(kind, arrows.group);
    }
  }

  /** Show or hide the path of a point of a body, of its last `seconds`. */
  showTrace({ body, point, seconds }, visible) {
    const key = `${body} ${point}`;
    if (!this.traces.has(key)) {
      if (!visible || !this.bodies[body]) return;
      const trace = new Trace(this.track, body, new THREE.Vector3(...point), this.bodies[body].userData.color, this.run.ghost);
      this.traces.set(key, trace);
      this.group.add(trace.group);
    }
    const trace = this.traces.get(key);
    trace.seconds = seconds;
    trace.group.visible = visible;
  }

  /** Return the current position of a point of a body or of the ground. */
  pointOf(body, point) {
    const there = point.clone();
    return body < 0 ? there : there.applyQuaternion(this.bodies[body].quaternion).add(this.bodies[body].position);
  }

  update(time, arrowFactor) {
    const where = this.track.locate(time);
    this.bodies.forEach((body, i) => {
      this.track.position(i, where, body.position);
      this.track.orientation(i, where, body.quaternion);
    });
    this.posing?.apply();
    for (const trace of this.traces.values()) trace.update(time);
    for (const connection of this.connections) {
      connection.place(
        this.pointOf(connection.parent, connection.parentPoint),
        this.pointOf(connection.child, connection.childPoint),
      );
    }
    for (const arrows of this.arrows) arrows.update(this.track, where, arrowFactor);
  }

  show(layer, visible) {
    for (const object of this.layers[layer]) object.visible = visible;
  }

  /** Highlight a body or a joint, `{ body }` or `{ joint }`, or nothing. */
  highlight(chosen, color) {
    this.bodies.forEach((body, i) => body.userData.solid.traverse((object) => {
      if (!object.material) return;
      object.material.emissive.set(chosen?.body === i ? color : "#000000");
      object.material.emissiveIntensity = 0.45;
    }));
    this.pens.forEach((pen, k) => pen.setMaterial(chosen?.joint === k ? this.chosen : this.metal));
  }
}

/** Return the points of a run whose paths can be shown: centres of mass, free ends of bodies, and named frames. */
function tracePoints(run) {
  const points = [];
  run.bodies.forEach((body, i) => {
    const end = freeEnd(run, i);
    points.push({ name: `${body.name}, centre of mass`, key: body.name, body: i, point: [0, 0, 0], isEnd: false });
    if (end) points.push({ name: `${body.name}, free end`, body: i, point: end.toArray(), isEnd: true });
  });
  for (const frame of run.frames ?? []) points.push({ ...frame, key: frame.name, isEnd: false });
  return points;
}

/** Return the far end of a long body that one joint holds near its other end, or null. */
function freeEnd(run, i) {
  const ends = run.joints.flatMap((j) => [[j.parent, j.parent_point], [j.child, j.child_point]]).filter(([body]) => body === i);
  const shapes = run.bodies[i].shapes.filter((shape) => shape.kind !== "mesh" && shape.size.length > 1);
  if (ends.length !== 1 || !shapes.length) return null;
  const joint = new THREE.Vector3(...ends[0][1]);
  let best = null;
  for (const shape of shapes) {
    const sizes = shape.kind === "box" ? shape.size : [2 * shape.size[0], 2 * shape.size[0], shape.size[1]];
    if (shape.kind === "ellipsoid") continue;
    const k = sizes.indexOf(Math.max(...sizes));
    const arm = new THREE.Vector3().setComponent(k, sizes[k] / 2).applyQuaternion(quaternionOf(shape.orientation));
    const center = new THREE.Vector3(...shape.position);
    if (center.distanceTo(joint) < 0.25 * sizes[k]) continue;
    for (const side of [-1, 1]) {
      const end = center.clone().addScaledVector(arm, side);
      if (!best || end.distanceTo(joint) > best.distanceTo(joint)) best = end;
    }
  }
  return best;
}
