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
    this.camera = new THREE.PerspectiveCamera(32, 1, 0.01 * radius, 100 * radius);
    this.camera.up.copy(this.up);
    this.controls = new THREE.OrbitControls(this.camera, canvas);
    this.controls.enableDamping = false;
    this.addLights();
    this.addGround();
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

  /** Add a ground plane below everything, with shadows and lines; without gravity there is none. */
  addGround() {
    this.ground = new THREE.Group();
    this.scene.add(this.ground);
    if (!this.data.gravity) return;
    const low = this.data.camera.lowest - 0.02 * this.radius;
    this.ground.position.copy(this.center).addScaledVector(this.up, low - this.center.dot(this.up));
    this.ground.quaternion.setFromUnitVectors(new THREE.Vector3(0, 0, 1), this.up);
    const shade = new THREE.Mesh(new THREE.PlaneGeometry(12 * this.radius, 12 * this.radius), new THREE.ShadowMaterial({ opacity: 0.22 }));
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
    if (this.gridMaterial) this.gridMaterial.color.set(style.getPropertyValue("--grid").trim());
  }

  /** Point the camera at the whole motion, from the direction in the data. */
  reset() {
    const { direction, size } = this.data.camera;
    const along = new THREE.Vector3(...direction);
    this.camera.position.copy(this.center).add(along);
    this.camera.lookAt(this.center);
    this.camera.updateMatrixWorld();
    // The distance at which the bounding box of the motion fits into the view.
    const half = Math.tan((this.camera.fov * Math.PI) / 360);
    const view = this.camera.matrixWorldInverse;
    let distance = 0;
    for (let corner = 0; corner < 8; corner++) {
      const point = new THREE.Vector3(...size.map((s, k) => (corner >> k & 1 ? 0.5 : -0.5) * s)).transformDirection(view)
        .multiplyScalar(new THREE.Vector3(...size.map((s) => 0.5 * s)).length());
      distance = Math.max(distance, Math.abs(point.y) / half + point.z, Math.abs(point.x) / (half * this.camera.aspect) + point.z);
    }
    this.camera.position.copy(this.center).addScaledVector(along, Math.max(1.04 * distance, 1.3 * this.radius));
    this.controls.target.copy(this.center);
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
    this.camera.aspect = width / height;
    this.camera.updateProjectionMatrix();
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
