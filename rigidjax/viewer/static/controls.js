"use strict";
// Buttons, sliders and lists.

const ICONS = {
  play: '<path d="M4 2.5v11l9-5.5z" fill="currentColor"/>',
  pause: '<path d="M4.5 3v10M11.5 3v10" stroke-width="3"/>',
  options: '<path d="M2 4h7M13 4h1M2 12h1M7 12h7"/><circle cx="11" cy="4" r="1.8"/><circle cx="5" cy="12" r="1.8"/>',
  graphs: '<path d="M2 2v12h12M4.5 10l3-4 2.5 2.5L14 4"/>',
  theme: '<circle cx="8" cy="8" r="5.5"/><path d="M8 2.5a5.5 5.5 0 0 1 0 11z" fill="currentColor"/>',
  before: '<path d="M11 3L5.5 8l5.5 5M4 3v10"/>',
  after: '<path d="M5 3l5.5 5L5 13M12 3v10"/>',
  picture: '<rect x="1.5" y="4" width="13" height="9.5" rx="1.5"/><path d="M5.5 4l1-1.8h3l1 1.8"/><circle cx="8" cy="8.7" r="2.4"/>',
  video: '<rect x="1.5" y="4" width="8.5" height="8" rx="1.5"/><path d="M10 7l4.5-2.5v7L10 9z"/>',
  home: '<path d="M2.5 7.5L8 3l5.5 4.5M4 6.5V13h8V6.5"/>',
};

const LAYERS = [
  ["bodies", "Bodies"],
  ["joints", "Joints"],
  ["supports", "Supports"],
  ["axes", "Joint axes and names"],
  ["names", "Names of bodies"],
  ["traces", "Traces"],
  ["frames", "Body frames"],
  ["centers", "Centres of mass"],
  ["inertia", "Inertia ellipsoids"],
  ["ground", "Ground"],
  ["gravity", "Gravity"],
  ["rates", "Angular velocities"],
  ["forces", "Applied forces"],
  ["reactions", "Reactions of joints"],
];

function button(name, title, act) {
  const made = document.createElement("button");
  Object.assign(made, { type: "button", id: name, title });
  made.setAttribute("aria-label", title);
  setIcon(made, name);
  made.addEventListener("click", act);
  return made;
}

function setIcon(made, name) {
  made.innerHTML = `<svg viewBox="0 0 16 16" aria-hidden="true">${ICONS[name]}</svg>`;
}

function labelled(text, input, wide = false) {
  const label = document.createElement("label");
  if (wide) label.className = "wide";
  label.append(...(wide ? [text, input] : [input, text]));
  return label;
}

function list(options, value) {
  const select = document.createElement("select");
  for (const [key, text] of options) select.add(new Option(text, key));
  select.value = value;
  return select;
}

class Controls {
  constructor(viewer) {
    this.viewer = viewer;
    this.makeBar();
    this.makeTools();
    this.makeOptions();
    this.makeHeading();
    document.addEventListener("keydown", (event) => this.onKey(event));
  }

  makeBar() {
    const { viewer } = this;
    this.play = button("play", "Play or pause (space)", () => viewer.toggle());
    this.slider = Object.assign(document.createElement("input"), { type: "range", id: "time", min: 0, max: 10000, value: 0 });
    this.slider.setAttribute("aria-label", "Time");
    this.slider.addEventListener("input", () => {
      viewer.pause();
      viewer.seek(viewer.start + ((viewer.end - viewer.start) * this.slider.value) / 10000);
    });
    this.clock = Object.assign(document.createElement("span"), { id: "clock" });
    const base = viewer.data.speed;
    const factors = [0.1, 0.25, 0.5, 1, 2, 4, 10];
    const speeds = [...new Set([...factors.map((f) => f * base), 1])].sort((a, b) => a - b);
    this.speed = list(speeds.map((s) => [s, `${Number(s.toPrecision(2))} ×`]), base);
    this.speed.id = "speed";
    this.speed.title = "Seconds of motion in a second";
    this.speed.setAttribute("aria-label", this.speed.title);
    this.speed.addEventListener("change", () => (viewer.speed = Number(this.speed.value)));
    const before = button("before", "Previous saved time (,)", () => viewer.step(-1));
    const after = button("after", "Next saved time (.)", () => viewer.step(1));
    document.getElementById("bar").append(this.play, before, after, this.slider, this.clock, this.speed);
    document.getElementById("bar").hidden = viewer.end <= viewer.start;
  }

  makeTools() {
    const { viewer } = this;
    const options = document.getElementById("options");
    this.optionsButton = button("options", "What is shown", () => {
      options.hidden = !options.hidden;
      this.optionsButton.setAttribute("aria-pressed", String(!options.hidden));
    });
    this.optionsButton.id = "show-options";
    this.graphsButton = button("graphs", "Graphs", () => viewer.showGraphs(document.getElementById("graphs").hidden));
    this.graphsButton.id = "show-graphs";
    const theme = button("theme", "Light or dark", () => viewer.toggleTheme());
    const home = button("home", "Look at everything", () => viewer.home());
    const picture = button("picture", "Save a picture", () => savePicture(viewer));
    this.video = button("video", "Play once and save a video", async () => {
      this.video.setAttribute("aria-pressed", "true");
      const blob = await recordVideo(viewer);
      this.video.setAttribute("aria-pressed", "false");
      download(blob, fileName(viewer, blob.type.includes("webm") ? "webm" : "mp4"));
    });
    this.video.hidden = viewer.end <= viewer.start || !window.MediaRecorder;
    document.getElementById("tools").append(home, theme, picture, this.video, this.graphsButton, this.optionsButton);
  }

  /** Add the projection, the views along the axes of space, and the repetition. */
  makeViews(options) {
    const { viewer } = this;
    const row = Object.assign(document.createElement("div"), { className: "views" });
    ["x", "y", "z"].forEach((name, axis) => {
      const look = Object.assign(document.createElement("button"), { type: "button", id: `look-${name}`, textContent: name });
      look.title = `Look along ${name} (${name})`;
      look.addEventListener("click", () => viewer.lookAlong(axis));
      row.append(look);
    });
    const check = (id, text, act) => {
      const box = Object.assign(document.createElement("input"), { type: "checkbox", id });
      box.addEventListener("change", () => act(box.checked));
      options.append(labelled(text, box));
      return box;
    };
    options.append(labelled("View along", row, true));
    this.parallel = check("parallel", "Parallel projection", (value) => viewer.setParallel(value));
    this.loop = check("loop", "Repeat", (value) => viewer.setLoop(value));
  }

  makeDetails(options, id, text, content) {
    const details = Object.assign(document.createElement("details"), { id });
    details.append(Object.assign(document.createElement("summary"), { textContent: text }), ...content);
    options.append(details);
  }

  /** Return a row for a point whose path can be shown: a box, and the length of the path in seconds. */
  traceRow(point) {
    const row = Object.assign(document.createElement("div"), { className: "trace" });
    const box = Object.assign(document.createElement("input"), { type: "checkbox", checked: point.isShown });
    const length = Object.assign(document.createElement("input"), { type: "number", min: 0, step: "any", placeholder: "s" });
    length.title = `Length of the trace of ${point.name} in seconds; empty: the whole run`;
    length.setAttribute("aria-label", length.title);
    if (point.seconds < Infinity) length.value = point.seconds;
    box.addEventListener("change", () => this.viewer.chooseTrace(point, box.checked));
    length.addEventListener("input", () => {
      box.checked = true;
      this.viewer.chooseTrace(point, true, length.value === "" ? Infinity : Math.max(0, Number(length.value)));
    });
    row.append(labelled(point.name, box), length);
    return row;
  }

  /** Add a slider from a tenth to ten times, on a logarithmic scale. */
  makeFactor(options, id, text, act) {
    const input = Object.assign(document.createElement("input"), { type: "range", id, min: -1, max: 1, step: 0.05, value: 0 });
    input.addEventListener("input", () => act(10 ** input.value));
    options.append(labelled(text, input, true));
  }

  makeOptions() {
    const { viewer } = this;
    const options = document.getElementById("options");
    for (const [layer, text] of LAYERS) {
      if (!viewer.has(layer)) continue;
      const box = Object.assign(document.createElement("input"), { type: "checkbox", id: `show-${layer}`, checked: viewer.shown[layer] });
      box.addEventListener("change", () => viewer.show(layer, box.checked));
      options.append(labelled(text, box));
    }
    if (viewer.has("traces")) this.makeDetails(options, "trace-points", "Traces, lengths in s", viewer.tracePoints.map((point) => this.traceRow(point)));
    const [from, to] = viewer.distance.lists;
    this.makeDetails(options, "measure", "Distance", [labelled("from", from, true), labelled("to", to, true)]);
    this.makeViews(options);
    if (viewer.has("joints")) this.makeFactor(options, "joint-size", "Size of joints", (factor) => viewer.setJointSize(factor));
    this.makeFactor(options, "arrows", "Length of arrows", (factor) => viewer.setArrows(factor));
    const names = viewer.data.runs[0].bodies.map((body, i) => [i, body.name]);
    this.follow = list([[-1, "nothing"], ...names], -1);
    this.follow.id = "follow";
    this.follow.addEventListener("change", () => viewer.followBody(Number(this.follow.value)));
    options.append(labelled("Camera follows", this.follow, true));
  }

  makeHeading() {
    const { viewer } = this;
    const heading = document.getElementById("heading");
    if (viewer.data.title) heading.append(Object.assign(document.createElement("h1"), { textContent: viewer.data.title }));
    const runs = viewer.runs.filter((run) => !run.run.ghost);
    const ghosts = viewer.runs.length - runs.length;
    if (viewer.runs.length < 2) return;
    const legend = Object.assign(document.createElement("ul"), { id: "runs" });
    const entry = (color, text, group) => {
      const item = document.createElement("li");
      const box = Object.assign(document.createElement("input"), { type: "checkbox", checked: true });
      box.addEventListener("change", () => viewer.showRuns(group, box.checked));
      const swatch = document.createElement("i");
      swatch.style.background = color;
      const label = labelled(text, box);
      label.insertBefore(swatch, label.lastChild);
      item.append(label);
      legend.append(item);
    };
    for (const run of runs) entry(`#${run.color.getHexString()}`, run.run.label || "run", [run]);
    if (ghosts) entry("#8894a3", `${ghosts} further members`, viewer.runs.filter((run) => run.run.ghost));
    heading.append(legend);
  }

  onKey(event) {
    if (["SELECT", "INPUT", "BUTTON", "SUMMARY"].includes(event.target.tagName) || event.ctrlKey || event.metaKey) return;
    const step = (this.viewer.end - this.viewer.start) / 200;
    if (event.key === " ") this.viewer.toggle();
    else if (event.key === "ArrowRight") this.viewer.seek(this.viewer.time + step);
    else if (event.key === "ArrowLeft") this.viewer.seek(this.viewer.time - step);
    else if (event.key === "Home") this.viewer.seek(this.viewer.start);
    else if (event.key === ",") this.viewer.step(-1);
    else if (event.key === ".") this.viewer.step(1);
    else if ("xyz".includes(event.key)) this.viewer.lookAlong("xyz".indexOf(event.key));
    else if (event.key === "Escape") {
      this.viewer.picking.select(null);
      this.viewer.distance.clear();
    } else return;
    event.preventDefault();
  }

  update() {
    const { time, start, end, playing } = this.viewer;
    this.slider.value = String((10000 * (time - start)) / (end - start || 1));
    const digits = Math.max(0, Math.min(6, 2 - Math.floor(Math.log10((end - start) / 10 || 1))));
    this.clock.innerHTML = `<b>${time.toFixed(digits)}</b> / ${end.toFixed(digits)} s`;
    if (this.wasPlaying !== playing) setIcon(this.play, playing ? "pause" : "play");
    this.wasPlaying = playing;
  }
}
