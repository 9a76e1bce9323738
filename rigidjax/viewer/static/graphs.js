"use strict";
// Graphs over time; a click or drag in a graph sets the current time.

const NUM_GRAPHS = 3;

/** Return the quantities of the run and of each body; each computes one value per time of a track. */
function quantitiesOf(tracks, data) {
  const { runs } = data;
  const found = new Map();
  // Arrays named by `rough` have 16 bits: changes far below their usual size are round-off.
  const add = (name, unit, valuesOf, rough = null) => {
    if (!found.has(name)) found.set(name, { name, unit, valuesOf, rough });
  };
  for (const track of tracks) {
    for (const graph of track.graphs) {
      add(graph.name, graph.unit, (other) => other.graphs.find((g) => g.name === graph.name)?.values);
    }
  }
  const along = (track, value) => Float32Array.from(track.times, (_, row) => value(row));
  const at = new THREE.Vector3();
  runs[0].bodies.forEach((body, i) => {
    const within = (value) => (track) => (i < track.bodies ? along(track, (row) => value(track, row)) : undefined);
    const ofRates = (value) => (track) => (track.rates ? within(value)(track) : undefined);
    const rate = (track, row) => track.vector(track.rates, 3 * track.bodies, 3 * i, [row, 0], at);
    add(`angular speed of ${body.name}`, "rad/s", ofRates((track, row) => rate(track, row).length()), "rates");
    const turn = new THREE.Quaternion();
    [1, 2, 3].forEach((k) => {
      const component = (track, row) => {
        track.orientation(i, [row, 0], turn);
        return rate(track, row).applyQuaternion(turn.conjugate()).getComponent(k - 1);
      };
      add(`\u03a9${k} of ${body.name}`, "rad/s", ofRates(component), "rates");
    });
    if (!data.translates) return;
    ["x", "y", "z"].forEach((axis, k) => {
      add(`${axis} of ${body.name}`, "m", within((track, row) => track.poses[(row * track.bodies + i) * 7 + k]));
    });
  });
  runs[0].joints.forEach((joint, i) => {
    if (!tracks[0].reactions) return;
    const size = (track) => (row) => track.vector(track.reactions, 3 * track.joints, 3 * i, [row, 0], at).length();
    add(`reaction of ${joint.name}`, "N", (track) => (track.reactions ? along(track, size(track)) : undefined), "reactions");
  });
  return [...found.values()];
}

class Graph {
  constructor(parent, quantities, chosen, viewer) {
    Object.assign(this, { quantities, viewer });
    const figure = document.createElement("figure");
    this.select = document.createElement("select");
    this.select.setAttribute("aria-label", "Quantity");
    quantities.forEach((q, k) => this.select.add(new Option(q.unit ? `${q.name} (${q.unit})` : q.name, k)));
    this.select.value = String(chosen);
    this.select.addEventListener("change", () => this.refresh());
    this.canvas = document.createElement("canvas");
    const seek = (event) => {
      if (event.type === "pointermove" && !event.buttons) return;
      const { left, right } = this.frame;
      const part = (event.offsetX - left) / (right - left);
      viewer.pause();
      viewer.seek(viewer.start + Math.min(1, Math.max(0, part)) * (viewer.end - viewer.start));
    };
    this.canvas.addEventListener("pointerdown", seek);
    this.canvas.addEventListener("pointermove", seek);
    figure.append(this.select, this.canvas);
    parent.append(figure);
    this.collect();
  }

  refresh() {
    this.collect();
    this.draw();
  }

  collect() {
    const quantity = this.quantities[Number(this.select.value)];
    this.lines = this.viewer.runs.map((run) => ({ run, values: quantity?.valuesOf(run.track) })).filter((l) => l.values);
    let low = Infinity;
    let high = -Infinity;
    for (const { values } of this.lines) {
      for (const value of values) {
        if (!Number.isFinite(value)) continue;
        low = Math.min(low, value);
        high = Math.max(high, value);
      }
    }
    if (!(high >= low)) [low, high] = [0, 1];
    const sizes = this.lines.map(({ run }) => (quantity.rough ? 1e-3 * Track.usual(run.track[quantity.rough]) : 0));
    const least = Math.max(1e-7 * Math.max(Math.abs(low), Math.abs(high)), ...sizes);
    if (high - low <= least) {
      const room = Math.abs(low) || 1;
      [low, high] = [low - 0.5 * room, high + 0.5 * room];
    }
    const room = 0.06 * (high - low);
    this.range = [low - room, high + room];
    this.marks = [low, high];
  }

  draw() {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (!width || !height) return;
    const ratio = Math.min(window.devicePixelRatio, 2);
    this.canvas.width = width * ratio;
    this.canvas.height = height * ratio;
    const pen = this.canvas.getContext("2d");
    pen.scale(ratio, ratio);
    const style = getComputedStyle(document.documentElement);
    const color = (name) => style.getPropertyValue(name).trim();
    const { start, end, time } = this.viewer;
    const [low, high] = this.range;
    this.frame = { left: 52, right: width - 4, top: 4, bottom: height - 6 };
    const { left, right, top, bottom } = this.frame;
    const x = (t) => left + ((right - left) * (t - start)) / (end - start || 1);
    const y = (v) => bottom - ((bottom - top) * (v - low)) / (high - low);
    pen.font = "10.5px system-ui, 'DejaVu Sans', sans-serif";
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    pen.fillStyle = color("--soft");
    pen.strokeStyle = color("--line");
    pen.lineWidth = 1;
    for (const mark of this.marks) {
      pen.fillText(inWords(mark, high - low), left - 5, Math.min(bottom - 5, Math.max(top + 5, y(mark))));
      pen.beginPath();
      pen.moveTo(left, y(mark));
      pen.lineTo(right, y(mark));
      pen.stroke();
    }
    const several = this.viewer.runs.length > 1;
    for (const { run, values } of [...this.lines].reverse()) {
      if (!run.group.visible) continue;
      pen.strokeStyle = several ? `#${run.color.getHexString()}` : color("--accent");
      pen.globalAlpha = run.run.ghost ? 0.35 : 1;
      pen.lineWidth = run.run.ghost ? 1 : 1.6;
      pen.lineJoin = "round";
      pen.beginPath();
      values.forEach((value, k) => Number.isFinite(value) && pen.lineTo(x(run.track.times[k]), y(value)));
      pen.stroke();
    }
    pen.globalAlpha = 1;
    pen.strokeStyle = color("--ink");
    pen.lineWidth = 1.2;
    pen.beginPath();
    pen.moveTo(x(time), top);
    pen.lineTo(x(time), bottom);
    pen.stroke();
    this.drawValues(pen, x, y, color);
  }

  /** Draw a dot on each line at the current time, and show its value. */
  drawValues(pen, x, y, color) {
    const { time } = this.viewer;
    const { left, right, top } = this.frame;
    for (const { run, values } of this.lines) {
      if (!run.group.visible || run.run.ghost) continue;
      const [row, part] = run.track.locate(time);
      const value = part > 0 ? values[row] + part * (values[row + 1] - values[row]) : values[row];
      if (!Number.isFinite(value)) continue;
      pen.fillStyle = this.viewer.runs.length > 1 ? `#${run.color.getHexString()}` : color("--accent");
      pen.beginPath();
      pen.arc(x(Math.min(time, run.track.times.at(-1))), y(value), 3.2, 0, 7);
      pen.fill();
      if (run !== this.viewer.runs[0]) continue;
      const text = inWords(value, this.range[1] - this.range[0]);
      const room = pen.measureText(text).width + 8;
      const before = x(time) + room > right;
      pen.fillStyle = color("--plot");
      pen.globalAlpha = 0.8;
      pen.fillRect(before ? Math.max(left, x(time) - room - 3) : x(time) + 3, top, room, 15);
      pen.globalAlpha = 1;
      pen.fillStyle = color("--ink");
      pen.textAlign = "left";
      pen.fillText(text, before ? Math.max(left, x(time) - room - 3) + 4 : x(time) + 7, top + 8);
    }
  }
}
