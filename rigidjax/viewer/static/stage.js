"use strict";
// Renderer, lights, ground and camera.

class Stage {
  constructor(canvas, compass, data) {
    this.canvas = canvas;
    this.compass = compass;
    this.data = data;
    this.renderer = new THREE.WebGLRenderer({ canvas, antialias: true, alpha: true });
    this.renderer.setPixelRatio(Math.min(window.devicePixelRatio, 2));
    this.renderer.setClearAlpha(0);
    this.renderer.shadowMap.enabled = true;
    this.renderer.shadowMap.type = THREE.PCFShadowMap;
    this.scene = new THREE.Scene();
    const { up, center, radius } = data.camera;
    this.up = new THREE.Vector3(...up);
    this.center = new THREE.Vector3(...center);
    this.radius = radius;
    this.perspective = new THREE.PerspectiveCamera(32, 1, 0.01 * radius, 100 * radius);
    this.parallel = new THREE.OrthographicCamera(-1, 1, 1, -1, 0.01 * radius, 100 * radius);
    for (const camera of [this.perspective, this.parallel]) camera.up.copy(this.up);
    this.camera = this.perspective;
    this.direction = new THREE.Vector3(...data.camera.direction);
    this.controls = new THREE.OrbitControls(this.camera, canvas);
    this.controls.enableDamping = false;
    this.addLights();
  }

  addLights() {
    this.sky = new THREE.HemisphereLight("#ffffff", "#8d97a6", 1.9);
    this.sky.position.copy(this.up);
    this.sun = new THREE.DirectionalLight("#fff6e8", 2.2);
    this.sun.castShadow = true;
    this.sun.shadow.mapSize.set(2048, 2048);
    this.sun.shadow.radius = 5;
    this.sun.shadow.bias = -0.0004;
    this.sun.shadow.normalBias = 0.004 * this.radius;
    const view = this.sun.shadow.camera;
    Object.assign(view, {
      left: -1.7 * this.radius, right: 1.7 * this.radius, top: 1.7 * this.radius, bottom: -1.7 * this.radius,
      near: 0.1 * this.radius, far: 9 * this.radius,
    });
    this.scene.add(this.sky, this.sun, this.sun.target);
  }

  /** Set the points that a view of everything shows, and place the ground below them. */
  setPoints(points) {
    this.points = points;
    let low = Infinity;
    for (let i = 0; i < points.length; i += 3) {
      low = Math.min(low, points[i] * this.up.x + points[i + 1] * this.up.y + points[i + 2] * this.up.z);
    }
    this.addGround(low - 0.005 * this.radius);
  }

  /** Add a ground plane at a height, with shadows and lines; without gravity there is none. */
  addGround(low) {
    this.ground = new THREE.Group();
    this.scene.add(this.ground);
    if (!this.data.gravity) return;
    this.ground.position.copy(this.center).addScaledVector(this.up, low - this.center.dot(this.up));
    this.ground.quaternion.setFromUnitVectors(new THREE.Vector3(0, 0, 1), this.up);
    const shade = new THREE.Mesh(new THREE.PlaneGeometry(12 * this.radius, 12 * this.radius), (this.shade = new THREE.ShadowMaterial({ opacity: 0.22 })));
    shade.receiveShadow = true;
    this.step = 10 ** Math.floor(Math.log10(this.radius / 2));
    if (this.radius / this.step > 10) this.step *= 5;
    else if (this.radius / this.step > 4) this.step *= 2;
    const reach = 3.2 * this.radius;
    const count = Math.ceil(reach / this.step);
    const points = [];
    const colors = [];
    const fade = (x, y) => Math.max(0, 1 - Math.hypot(x, y) / reach) ** 1.5;
    for (let i = -count; i <= count; i++) {
      for (let j = -count; j < count; j++) {
        const [a, b, c] = [i * this.step, j * this.step, (j + 1) * this.step];
        for (const [x, y] of [[a, b], [a, c], [b, a], [c, a]]) {
          points.push(x, y, 0);
          colors.push(1, 1, 1, (i % 5 === 0 ? 0.6 : 0.3) * fade(x, y));
        }
      }
    }
    const geometry = new THREE.BufferGeometry();
    geometry.setAttribute("position", new THREE.BufferAttribute(new Float32Array(points), 3));
    geometry.setAttribute("color", new THREE.BufferAttribute(new Float32Array(colors), 4));
    this.gridMaterial = new THREE.LineBasicMaterial({ vertexColors: true, transparent: true, depthWrite: false });
    this.grid = new THREE.LineSegments(geometry, this.gridMaterial);
    this.ground.add(shade, this.grid);
  }

  /** Apply the colours of the style sheet. */
  setTheme() {
    const style = getComputedStyle(document.documentElement);
    this.ink = style.getPropertyValue("--ink").trim();
    if (this.shade) this.shade.opacity = Number(style.getPropertyValue("--shade"));
    if (this.gridMaterial) this.gridMaterial.color.set(style.getPropertyValue("--grid").trim());
  }

  /** Point the camera at the whole motion, from the direction in the data. */
  reset() {
    this.direction.set(...this.data.camera.direction);
    this.frame();
  }

  /** Look at the whole motion along an axis of space, 0 to 2. */
  lookAlong(axis) {
    const away = new THREE.Vector3().setComponent(axis, axis === 1 ? -1 : 1);
    // Seen along the vertical, the second axis of space points up in the picture.
    if (Math.abs(away.dot(this.up)) > 0.99) away.addScaledVector(new THREE.Vector3().setComponent(axis === 1 ? 2 : 1, 1), -1e-3);
    this.direction.copy(away.normalize());
    this.frame();
  }

  /** Move the camera so that the whole motion is in the picture, from the present direction. */
  frame() {
    const { points, direction, up, perspective, parallel } = this;
    const slope = this.camera === perspective ? Math.tan((perspective.fov * Math.PI) / 360) : 0;
    const { position, target, half } = frameOfPoints(points, direction, up, slope, perspective.aspect);
    this.camera.position.copy(position);
    this.half = half;
    parallel.zoom = 1;
    this.updateParallel();
    this.controls.target.copy(target);
    this.controls.update();
  }

  /** Set position and target of the camera. */
  setView(view) {
    this.camera.position.set(...view.slice(0, 3));
    this.controls.target.set(...view.slice(3));
    this.half = this.camera.position.distanceTo(this.controls.target) * Math.tan((this.perspective.fov * Math.PI) / 360);
    this.updateParallel();
    this.controls.update();
  }

  updateParallel() {
    const [high, wide] = [this.half, this.half * this.perspective.aspect];
    Object.assign(this.parallel, { left: -wide, right: wide, top: high, bottom: -high });
    this.parallel.updateProjectionMatrix();
  }

  /** Switch between perspective and parallel projection without moving. */
  setParallel(isParallel) {
    const camera = isParallel ? this.parallel : this.perspective;
    if (camera === this.camera) return;
    const { target } = this.controls;
    const away = this.camera.position.clone().sub(target);
    const slope = Math.tan((this.perspective.fov * Math.PI) / 360);
    if (isParallel) {
      this.half = away.length() * slope;
      this.parallel.zoom = 1;
    } else away.setLength(this.half / this.parallel.zoom / slope);
    camera.position.copy(target).add(away);
    this.camera = this.controls.object = camera;
    this.updateParallel();
    this.controls.update();
  }

  /** Move the camera together with its target. */
  shift(by) {
    this.camera.position.add(by);
    this.controls.target.add(by);
    this.controls.update();
  }

  resize() {
    const { clientWidth: width, clientHeight: height } = this.canvas.parentElement;
    if (!width || !height) return;
    this.renderer.setSize(width, height, false);
    this.perspective.aspect = width / height;
    this.perspective.updateProjectionMatrix();
    if (this.half) this.updateParallel();
  }

  render() {
    const side = new THREE.Vector3().setFromMatrixColumn(this.camera.matrixWorld, 0);
    const to = this.controls.target;
    this.sun.target.position.copy(to);
    this.sun.position.copy(to).addScaledVector(this.up, 3.2 * this.radius).addScaledVector(side, -1.5 * this.radius)
      .addScaledVector(new THREE.Vector3().setFromMatrixColumn(this.camera.matrixWorld, 2), 1.8 * this.radius);
    this.renderer.render(this.scene, this.camera);
    this.drawCompass();
  }

  /** Draw the axes of space in a corner, as seen by the camera. */
  drawCompass() {
    const ratio = Math.min(window.devicePixelRatio, 2);
    const size = 84;
    this.compass.width = this.compass.height = size * ratio;
    const pen = this.compass.getContext("2d");
    pen.scale(ratio, ratio);
    pen.translate(size / 2, size / 2);
    pen.lineWidth = 2.4;
    pen.lineCap = "round";
    pen.font = "600 11px system-ui, 'DejaVu Sans', sans-serif";
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    const axes = ["x", "y", "z"].map((name, k) => {
      const axis = new THREE.Vector3().setComponent(k, 1).transformDirection(this.camera.matrixWorldInverse);
      return { name, color: ["#e0503f", "#3fa552", "#4c7df0"][k], axis };
    });
    axes.sort((a, b) => a.axis.z - b.axis.z);
    for (const { name, color, axis } of axes) {
      pen.strokeStyle = pen.fillStyle = color;
      pen.globalAlpha = axis.z < -0.2 ? 0.55 : 1;
      pen.beginPath();
      pen.moveTo(0, 0);
      pen.lineTo(26 * axis.x, -26 * axis.y);
      pen.stroke();
      pen.fillText(name, 35 * axis.x, -35 * axis.y);
    }
  }
}
