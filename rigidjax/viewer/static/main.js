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
    this.playing = this.loop = false;
    this.follow = -1;
    this.arrowFactor = 1;
    this.stage = new Stage(document.getElementById("canvas"), document.getElementById("compass"), data);
    const several = data.runs.filter((run) => !run.ghost).length > 1;
    this.runs = data.runs.map((run, k) => new RunView(run, k, several, data));
    for (const run of this.runs) this.stage.scene.add(run.group);
    this.corners = motionPoints(this.runs);
    this.stage.setPoints([...this.corners, ...this.connectionPoints()]);
    this.addGravity();
    const count = data.runs[0].bodies.length;
    this.shown = {
      bodies: true, joints: true, supports: true, axes: false, traces: true, frames: count === 1, centers: false, inertia: false,
      names: false, ground: true, gravity: false, rates: false, forces: false, reactions: false,
    };
    this.addTraces(count);
    this.addLabels();
    for (const layer of Object.keys(this.shown)) this.show(layer, this.shown[layer]);
    this.distance = new Distance(this);
    this.controls = new Controls(this);
    if (data.poses) this.runs[0].posing = new Posing(this);
    this.picking = new Picking(this);
    this.addGraphs();
    this.stage.controls.addEventListener("change", () => this.ask());
    new ResizeObserver(() => this.fit()).observe(document.getElementById("stage"));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.setTheme());
    this.setTheme();
    // Beside the picture, or below a picture that takes most of the height.
    const isRoom = innerWidth > 700 || innerHeight > 480;
    this.showGraphs(this.end > this.start && isRoom);
    this.fit();
    this.home();
    this.seek(this.start);
    this.address = new Address(this);
    this.address.read();
    // It starts by itself, unless the user prefers less motion or the address has a time.
    const isStill = matchMedia("(prefers-reduced-motion: reduce)").matches || /[#&]t=/.test(location.hash);
    if (!isStill) this.play();
  }

  /** Return the points of joints, springs and supports at all times. */
  connectionPoints() {
    const points = [];
    const at = new THREE.Vector3();
    for (const view of this.runs.filter((run) => !run.run.ghost)) {
      points.push(...view.supportPoints);
      for (const { parent, child, parent_point, child_point } of [...view.run.joints, ...view.run.springs]) {
        for (const [body, point] of [[parent, parent_point], [child, child_point]]) {
          if (body < 0) {
            points.push(...point);
            continue;
          }
          view.track.times.forEach((_, row) => {
            const turn = view.track.orientation(body, [row, 0], new THREE.Quaternion());
            points.push(...at.set(...point).applyQuaternion(turn).add(view.track.position(body, [row, 0], new THREE.Vector3())));
          });
        }
      }
    }
    return points;
  }

  /** Choose the paths that are shown at first: the given ones, or those of free ends, otherwise of few centres of mass. */
  addTraces(count) {
    this.tracePoints = tracePoints(this.data.runs[0]);
    const ends = this.tracePoints.filter((point) => point.isEnd);
    for (const point of this.tracePoints) {
      const isChosen = ends.length ? point.isEnd && ends.length <= 4 : count <= 4;
      const seconds = this.data.traces ? this.data.traces[point.key] ?? 0 : isChosen ? "run" : 0;
      point.isShown = seconds !== 0 && this.end > this.start;
      point.seconds = Number(seconds) || Infinity;
    }
  }

  /** Show or hide the path of a point, of the last `seconds`; infinity is the whole run. */
  chooseTrace(point, visible, seconds = point.seconds) {
    Object.assign(point, { isShown: visible, seconds });
    this.show("traces", this.shown.traces || visible);
    document.getElementById("show-traces").checked = this.shown.traces;
  }

  addLabels() {
    const { run } = this.runs[0];
    const add = (name, layer, at) => {
      const label = Object.assign(document.createElement("span"), { textContent: name });
      document.getElementById("names").append(label);
      return { label, layer, at };
    };
    const center = (i) => () => this.runs[0].bodies[i].position.clone();
    const joint = ({ child, child_point }) => () => this.runs[0].pointOf(child, new THREE.Vector3(...child_point));
    this.labels = [
      ...run.bodies.map((body, i) => add(body.name, "names", center(i))),
      ...run.joints.map((item) => add(item.name, "axes", joint(item))),
    ];
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
    const quantities = quantitiesOf(this.runs, this.data);
    const chosen = defaultGraphs(quantities, this.runs.map((run) => run.track));
    this.graphs = chosen.map((k) => new Graph(document.getElementById("graphs"), quantities, k, this));
  }

  /** Return whether a layer has any content. */
  has(layer) {
    if (layer === "names") return true;
    if (layer === "traces") return this.end > this.start;
    if (layer === "ground" || layer === "gravity") return Boolean(this.data.gravity);
    return this.runs.some((run) => run.layers[layer].length > 0);
  }

  show(layer, visible) {
    this.shown[layer] = visible;
    if (layer === "traces") {
      for (const point of this.tracePoints) for (const run of this.runs) run.showTrace(point, visible && point.isShown);
    } else if (layer === "ground") this.stage.ground.visible = visible;
    else if (layer === "gravity") this.gravity.visible = visible;
    else if (layer !== "names") for (const run of this.runs) run.show(layer, visible);
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

  setJointSize(factor) {
    for (const run of this.runs) run.addJoints(factor * run.size);
    for (const layer of JOINT_LAYERS) this.show(layer, this.shown[layer]);
    this.picking.select(this.picking.chosen);
  }

  setParallel(isParallel) {
    this.stage.setParallel(isParallel);
    this.controls.parallel.checked = isParallel;
    this.ask();
  }

  lookAlong(axis) {
    this.stage.lookAlong(axis);
    this.ask();
  }

  setLoop(loop) {
    this.loop = this.controls.loop.checked = loop;
  }

  /** Go to the next (1) or previous (-1) saved time of the first run. */
  step(direction) {
    this.pause();
    const { times } = this.runs[0].track;
    const [row, part] = this.runs[0].track.locate(this.time + 1e-6 * (times[1] - times[0] || 0));
    const next = direction > 0 ? row + 1 : part > 1e-3 ? row : row - 1;
    this.seek(times[Math.min(times.length - 1, Math.max(0, next))]);
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
    for (const run of this.runs) run.setTheme();
    this.picking.select(this.picking.chosen);
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
        this.time = this.loop ? this.start : this.end;
        this.playing = this.loop;
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
    this.distance.update();
    this.stage.render();
    this.placeNames();
    this.controls.update();
    this.picking.update();
    this.onDraw?.();
    if (!document.getElementById("graphs").hidden) for (const graph of this.graphs) graph.draw();
  }

  placeNames() {
    const { clientWidth: width, clientHeight: height } = this.stage.canvas;
    for (const { label, layer, at } of this.labels) {
      label.hidden = !this.shown[layer];
      if (label.hidden) continue;
      const point = at().project(this.stage.camera);
      label.hidden = Math.abs(point.z) > 1;
      label.style.transform = `translate(${((point.x + 1) / 2) * width + 8}px, ${((1 - point.y) / 2) * height - 9}px)`;
    }
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
