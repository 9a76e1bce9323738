"use strict";
// Joints by their kind. All but rods and springs are fixed to one of their bodies.

/** Parts of each kind on the child (`onChild`) and on the parent (`onParent`); the joint axis is the third. */
const GLYPHS = {
  Revolute: (pen) => pen.onChild(pen.ring(), pen.pin(1.5)),
  Cylindrical: (pen) => {
    pen.onParent(pen.rail());
    pen.onChild(pen.ring(), pen.sleeve(0.8));
  },
  Screw: (pen) => {
    pen.onParent(pen.rail(), ...pen.thread());
    pen.onChild(pen.ring());
  },
  Prismatic: (pen) => {
    pen.onParent(pen.rail());
    pen.onChild(pen.block());
  },
  Planar: (pen) => pen.onParent(pen.plate()),
  Spherical: (pen) => pen.onChild(pen.ball()),
  Universal: (pen) => {
    const across = pen.pin(1.2);
    across.rotation.set(0, Math.PI / 2, 0);
    const other = pen.pin(1.2);
    other.rotation.set(Math.PI / 2, 0, 0);
    pen.onParent(across);
    pen.onChild(other, pen.ball(0.6));
  },
  Weld: (pen) => pen.onChild(pen.block(0.8)),
  Distance: (pen) => {
    pen.onParent(pen.ball(0.6));
    pen.onChild(pen.ball(0.6));
  },
};

class JointPen {
  constructor(joint, size, material) {
    Object.assign(this, { joint, size, material, child: new THREE.Group(), parent: new THREE.Group() });
    this.child.position.set(...joint.child_point);
    this.child.quaternion.copy(quaternionOf(joint.child_orientation));
    this.parent.position.set(...joint.parent_point);
    this.parent.quaternion.copy(quaternionOf(joint.parent_orientation));
    const draw = GLYPHS[joint.kind] ?? ((pen) => pen.onChild(pen.jewel()));
    draw(this);
  }

  onChild(...meshes) {
    this.child.add(...meshes);
  }

  onParent(...meshes) {
    this.parent.add(...meshes);
  }

  /** Draw the joint with another material. */
  setMaterial(material) {
    for (const group of [this.child, this.parent]) {
      group.traverse((object) => {
        if (object.material === this.material) object.material = material;
      });
    }
    this.material = material;
  }

  /** Return a thin line along the joint axis. */
  axis() {
    const s = 8 * this.size;
    return fatLine([0, 0, -s, 0, 0, s], "#cf3d62", 1.6, 0.9);
  }

  mesh(geometry) {
    const mesh = new THREE.Mesh(geometry, this.material);
    mesh.castShadow = true;
    return mesh;
  }

  ring() {
    return this.mesh(new THREE.TorusGeometry(this.size, 0.26 * this.size, 16, 40));
  }

  pin(length) {
    const s = this.size;
    return this.mesh(new THREE.CylinderGeometry(0.3 * s, 0.3 * s, 2 * length * s, 16).rotateX(Math.PI / 2));
  }

  sleeve(length) {
    const s = this.size;
    return this.mesh(new THREE.CylinderGeometry(0.8 * s, 0.8 * s, 2 * length * s, 24).rotateX(Math.PI / 2));
  }

  ball(part = 1) {
    return this.mesh(new THREE.SphereGeometry(part * this.size, 32, 20));
  }

  block(part = 1) {
    const s = 1.6 * part * this.size;
    return this.mesh(new THREE.RoundedBoxGeometry(s, s, 1.4 * s, 2, 0.15 * s));
  }

  jewel() {
    return this.mesh(new THREE.OctahedronGeometry(1.2 * this.size));
  }

  /** Return a rail along the range of the child's travel. */
  rail() {
    const [low, high] = this.joint.range;
    const [a, b] = [low - 2 * this.size, high + 2 * this.size];
    const geometry = new THREE.CylinderGeometry(0.3 * this.size, 0.3 * this.size, b - a, 16);
    return this.mesh(geometry.rotateX(Math.PI / 2).translate(0, 0, (a + b) / 2));
  }

  thread() {
    const [low, high] = this.joint.range;
    const count = Math.min(60, Math.max(4, Math.round((high - low + 4 * this.size) / (0.6 * this.size))));
    return Array.from({ length: count }, (_, k) => {
      const ring = this.mesh(new THREE.TorusGeometry(0.36 * this.size, 0.09 * this.size, 8, 24));
      ring.position.z = low - 2 * this.size + ((high - low + 4 * this.size) * (k + 0.5)) / count;
      ring.rotation.x = 0.25;
      return ring;
    });
  }

  plate() {
    const s = 6 * this.size;
    const mesh = new THREE.Mesh(
      new THREE.PlaneGeometry(s, s),
      new THREE.MeshStandardMaterial({
        color: this.material.color, transparent: true, opacity: 0.3, side: THREE.DoubleSide, depthWrite: false,
      }),
    );
    return mesh;
  }
}

/** A rod or a spring between two moving points; `place(from, to)` positions it. */
class Connection {
  constructor(parent, child, parentPoint, childPoint, mesh) {
    Object.assign(this, { parent, child, mesh });
    this.parentPoint = new THREE.Vector3(...parentPoint);
    this.childPoint = new THREE.Vector3(...childPoint);
  }

  place(from, to) {
    placeBar(this.mesh, from, new THREE.Vector3().subVectors(to, from));
  }
}

function rodOf(joint, size, material) {
  const mesh = new THREE.Mesh(new THREE.CylinderGeometry(0.3 * size, 0.3 * size, 1, 16), material);
  mesh.castShadow = true;
  return new Connection(joint.parent, joint.child, joint.parent_point, joint.child_point, mesh);
}

/** A coil along the second axis, of unit length. */
function springOf(spring, radius, color) {
  const points = [0, -0.5, 0];
  const turns = 9;
  for (let k = 0; k <= 24 * turns; k++) {
    const angle = (2 * Math.PI * k) / 24;
    points.push(radius * Math.cos(angle), -0.42 + (0.84 * k) / (24 * turns), radius * Math.sin(angle));
  }
  points.push(0, 0.5, 0);
  const line = fatLine(points, color, 2.2, 1);
  return new Connection(spring.parent, spring.child, spring.parent_point, spring.child_point, line);
}

/** A straight line along the second axis, of unit length. */
function cordOf(cord, color) {
  const line = fatLine([0, -0.5, 0, 0, 0.5, 0], color, 2.2, 1);
  return new Connection(cord.parent, cord.child, cord.parent_point, cord.child_point, line);
}
