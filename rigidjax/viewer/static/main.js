"use strict";
// The page: a clock, and the updates that follow it.

class Viewer {
  constructor(data) {
    for (const run of data.runs)
      for (const body of run.bodies)
        for (const shape of body.shapes) if (shape.kind === "mesh") shape.triangles = data.meshes[shape.mesh];
    this.data = data;
    this.start = data.start;
    this.end = data.end;
    this.time = data.start;
    this.speed = data.speed;
    this.playing = false;
    this.follow = -1;
    this.arrowFactor = 1;
    this.stage = new Stage(document.getElementById("canvas"), document.getElementById("compass"), data);
    const several = data.runs.filter((run) => !run.ghost).length > 1;
    this.runs = data.runs.map((run, k) => new RunView(run, k, several, data));
    for (const run of this.runs) this.stage.scene.add(run.group);
    this.addGravity();
    const count = data.runs[0].bodies.length;
    this.shown = {
      bodies: true, joints: true, traces: count <= 4, frames: count === 1, centers: false, names: false,
      ground: true, gravity: false, rates: false, forces: false, reactions: false,
    };
    this.labels = this.runs[0].run.bodies.map((body) => {
      const label = Object.assign(document.createElement("span"), { textContent: body.name });
      document.getElementById("names").append(label);
      return label;
    });
    for (const layer of Object.keys(this.shown)) this.show(layer, this.shown[layer]);
    this.controls = new Controls(this);
    this.addGraphs();
    this.stage.controls.addEventListener("change", () => this.ask());
    new ResizeObserver(() => this.fit()).observe(document.getElementById("stage"));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.setTheme());
    this.setTheme();
    // Beside the picture, or below a picture that takes most of the height.
    const isRoom = innerWidth > 700 || (innerWidth > 560 && innerHeight > 480);
    this.showGraphs(this.end > this.start && isRoom);
    this.fit();
    this.home();
    this.seek(this.start);
  }

  addGravity() {
    this.gravity = new THREE.Group();
    this.stage.scene.add(this.gravity);
    if (!this.data.gravity) return;
    const arrow = new Arrow("#7b8794", 0.008 * this.stage.radius);
    const down = new THREE.Vector3(...this.data.gravity).normalize();
    const aside = new THREE.Vector3(...this.data.camera.direction).cross(down).normalize();
    const from = this.stage.center.clone().addScaledVector(aside, -0.75 * this.stage.radius);
    from.addScaledVector(down, -0.3 * this.stage.radius);
    arrow.set(from, down.multiplyScalar(0.35 * this.stage.radius));
    this.gravity.add(arrow.group);
  }

  addGraphs() {
    const tracks = this.runs.map((run) => run.track);
    const quantities = quantitiesOf(tracks, this.data);
    const always = ["energy", "change of energy", "position drift", "velocity drift"];
    const given = tracks[0].graphs.map((graph) => graph.name).filter((name) => !always.includes(name) && !name.startsWith("angle of "));
    const rest = given.length ? ["change of energy", "angular speed of"] : ["change of energy", "position drift", "angular speed of"];
    const wanted = [...given, ...rest].slice(0, NUM_GRAPHS);
    const chosen = wanted.map((name) => quantities.findIndex((q) => q.name.startsWith(name))).filter((k) => k >= 0);
    for (let k = 0; chosen.length < Math.min(NUM_GRAPHS, quantities.length); k++) if (!chosen.includes(k)) chosen.push(k);
    this.graphs = chosen.map((k) => new Graph(document.getElementById("graphs"), quantities, k, this));
  }

  /** Return whether a layer has any content. */
  has(layer) {
    if (layer === "names") return true;
    if (layer === "ground" || layer === "gravity") return Boolean(this.data.gravity);
    return this.runs.some((run) => run.layers[layer].length > 0);
  }

  show(layer, visible) {
    this.shown[layer] = visible;
    if (layer === "names") document.getElementById("names").hidden = !visible;
    else if (layer === "ground") this.stage.ground.visible = visible;
    else if (layer === "gravity") this.gravity.visible = visible;
    else for (const run of this.runs) run.show(layer, visible);
    this.ask();
  }

  showRuns(runs, visible) {
    for (const run of runs) run.group.visible = visible;
    this.ask(true);
  }

  showGraphs(visible) {
    document.getElementById("graphs").hidden = !visible;
    this.controls.graphsButton.setAttribute("aria-pressed", String(visible));
    this.fit();
  }

  setArrows(factor) {
    this.arrowFactor = factor;
    this.ask();
  }

  followBody(index) {
    this.follow = index;
    if (index < 0) return;
    this.stage.shift(new THREE.Vector3().subVectors(this.runs[0].bodies[index].position, this.stage.controls.target));
  }

  toggleTheme() {
    const root = document.documentElement;
    const isDark = root.dataset.theme === "dark" || (root.dataset.theme === "auto" && matchMedia("(prefers-color-scheme: dark)").matches);
    root.dataset.theme = isDark ? "light" : "dark";
    this.setTheme();
  }

  setTheme() {
    this.stage.setTheme();
    const metal = getComputedStyle(document.documentElement).getPropertyValue("--metal").trim();
    for (const run of this.runs) if (run.metal) run.metal.color.set(metal);
    this.ask(true);
  }

  fit() {
    this.stage.resize();
    this.render();
  }

  home() {
    this.stage.reset();
    if (this.follow >= 0) this.followBody(this.follow);
    this.ask();
  }

  seek(time) {
    this.time = Math.min(this.end, Math.max(this.start, time));
    this.ask();
  }

  toggle() {
    if (this.playing) this.pause();
    else this.play();
  }

  play() {
    if (this.end <= this.start) return;
    if (this.time >= this.end) this.time = this.start;
    this.playing = true;
    this.last = undefined;
    this.ask();
  }

  pause() {
    this.playing = false;
    this.ask();
  }

  /** Request a redraw. */
  ask() {
    if (this.asked) return;
    this.asked = true;
    requestAnimationFrame((now) => {
      this.asked = false;
      this.tick(now);
    });
  }

  tick(now) {
    if (this.playing) {
      if (this.last !== undefined) this.time += (this.speed * (now - this.last)) / 1000;
      this.last = now;
      if (this.time >= this.end) {
        this.time = this.end;
        this.playing = false;
      }
    }
    this.render();
    if (this.playing) this.ask();
  }

  render() {
    const followed = this.follow >= 0 ? this.runs[0].bodies[this.follow].position : null;
    const before = followed?.clone();
    for (const run of this.runs) if (run.group.visible) run.update(this.time, this.arrowFactor);
    if (followed) this.stage.shift(followed.clone().sub(before));
    this.stage.render();
    this.placeNames();
    this.controls.update();
    if (!document.getElementById("graphs").hidden) for (const graph of this.graphs) graph.draw();
  }

  placeNames() {
    if (!this.shown.names) return;
    const { clientWidth: width, clientHeight: height } = this.stage.canvas;
    this.labels.forEach((label, i) => {
      const at = this.runs[0].bodies[i].position.clone().project(this.stage.camera);
      label.hidden = Math.abs(at.z) > 1;
      label.style.transform = `translate(${((at.x + 1) / 2) * width + 8}px, ${((1 - at.y) / 2) * height - 9}px)`;
    });
  }

  /** Return position and unit quaternion, scalar first, of a body as drawn. */
  pose(run, body) {
    const object = this.runs[run].bodies[body];
    object.updateWorldMatrix(true, false);
    const [x, q, s] = [new THREE.Vector3(), new THREE.Quaternion(), new THREE.Vector3()];
    object.matrixWorld.decompose(x, q, s);
    return [x.x, x.y, x.z, q.w, q.x, q.y, q.z];
  }
}

try {
  window.rigidjaxViewer = new Viewer(JSON.parse(document.getElementById("data").textContent));
} catch (error) {
  const failure = document.getElementById("failure");
  failure.hidden = false;
  failure.textContent = `This page needs WebGL and did not get it, or its data are damaged: ${error.message}`;
  console.error(error);
}
