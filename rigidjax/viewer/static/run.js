"use strict";
// A run in the scene: its bodies, joints, traces and arrows.

const ARROW_COLORS = { rates: "#9b4fd8", forces: "#d8a21a", reactions: "#cf3d62" };

class RunView {
  constructor(run, index, several, data) {
    this.run = run;
    this.track = new Track(run);
    this.faint = run.ghost || (several && index > 0);
    this.group = new THREE.Group();
    const radius = data.camera.radius;
    this.size = Math.min(Math.max(0.08 * data.unit, 0.022 * radius), 0.035 * radius);
    this.color = new THREE.Color(RUN_COLORS[(run.ghost ? 0 : index) % RUN_COLORS.length]);
    const many = several && index > 0 ? this.color : null;
    this.layers = { bodies: [], joints: [], frames: [], centers: [], traces: [], rates: [], forces: [], reactions: [] };
    this.bodies = run.bodies.map((body, i) => this.addBody(body, many ?? bodyColor(i, run.bodies.length), i));
    this.addJoints(run);
    this.addArrows(0.3 * radius, 0.006 * radius);
  }

  put(layer, object, parent = this.group) {
    this.layers[layer].push(object);
    parent.add(object);
  }

  addBody(body, color, i) {
    const object = new THREE.Group();
    this.group.add(object);
    object.userData = { color, name: body.name };
    this.put("bodies", solidOf(body, color, this.faint), object);
    if (!this.faint) {
      this.put("frames", frameOf(Math.max(1.15 * body.extent, 5 * this.size)), object);
      this.put("centers", massCenterOf(0.8 * this.size), object);
    }
    const trace = new Trace(this.track, i, color, this.run.ghost);
    object.userData.trace = trace;
    this.put("traces", trace.group);
    return object;
  }

  /** Return the object of a body, or the scene for the ground. */
  holder(index) {
    return index < 0 ? this.group : this.bodies[index];
  }

  addJoints(run) {
    this.connections = [];
    if (run.ghost) return;
    const ink = getComputedStyle(document.documentElement).getPropertyValue("--metal").trim();
    const look = { color: ink, roughness: 0.35, metalness: 0.35, transparent: this.faint, opacity: this.faint ? 0.35 : 1 };
    this.metal = new THREE.MeshStandardMaterial(look);
    for (const joint of run.joints) {
      const pen = new JointPen(joint, this.size, this.metal);
      this.put("joints", pen.parent, this.holder(joint.parent));
      this.put("joints", pen.child, this.holder(joint.child));
      if (joint.kind === "Distance") this.addConnection(rodOf(joint, this.size, this.metal));
    }
    for (const spring of run.springs) {
      this.addConnection(spring.is_cord ? cordOf(spring, ink) : springOf(spring, 0.9 * this.size, ink));
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
      body.userData.trace.update(where[0]);
    });
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
}
