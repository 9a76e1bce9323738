"use strict";
// Graphs over time; a click or drag in a graph sets the current time.

const NUM_GRAPHS = 3;

/** Return round values within a range, about `count` of them. */
function ticksOf(low, high, count) {
  const rough = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((s) => s * power).find((s) => s >= rough * 0.999);
  const ticks = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + 1e-9 * step; k++) ticks.push(k * step);
  return { ticks, step };
}

/** Format a tick with the digits that its step needs. */
function tickText(value, step) {
  if (Math.abs(value) < 1e-9 * step) return "0";
  if (Math.abs(value) >= 1e5 || step < 1e-4) return value.toExponential(Math.max(0, Math.ceil(Math.log10(Math.abs(value) / step) - 1e-9)));
  return value.toFixed(Math.max(0, -Math.floor(Math.log10(step) + 1e-9)));
}

class Graph {
  constructor(parent, quantities, chosen, viewer) {
    Object.assign(this, { quantities, viewer, hidden: new Set() });
    const figure = document.createElement("figure");
    this.select = document.createElement("select");
    this.select.setAttribute("aria-label", "Quantity");
    quantities.forEach((q, k) => this.select.add(new Option(q.unit ? `${q.name} (${q.unit})` : q.name, k)));
    this.select.value = String(chosen);
    this.select.addEventListener("change", () => this.refresh());
    this.legend = Object.assign(document.createElement("div"), { className: "legend" });
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
    figure.append(this.select, this.legend, this.canvas);
    parent.append(figure);
    this.collect();
  }

  refresh() {
    this.hidden.clear();
    this.collect();
    this.draw();
  }

  /** Collect the values of all lines in all runs, and their range. */
  collect() {
    const quantity = this.quantities[Number(this.select.value)];
    const isSingle = quantity.lines.length === 1;
    const several = this.viewer.runs.length > 1;
    this.lines = this.viewer.runs.flatMap((run, k) => quantity.lines.map((line) => ({
      run,
      values: line.valuesOf(run.track),
      name: isSingle ? run.run.label || line.name : line.name,
      color: isSingle && several ? `#${run.color.getHexString()}` : line.color,
      dash: isSingle || k === 0 ? line.dash ?? [] : [5, 3],
    }))).filter((line) => line.values);
    let [low, high] = [Infinity, -Infinity];
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
    this.extent = [low, high];
    const room = 0.06 * (high - low);
    this.range = [low - room, high + room];
    this.makeLegend(isSingle);
  }

  /** Add a button with colour, name and current value of each line of the runs that are not faint. */
  makeLegend(isSingle) {
    this.legend.replaceChildren();
    this.entries = [];
    const shown = this.lines.filter((line, k) => !line.run.run.ghost && (isSingle || this.lines[0].run === line.run));
    for (const line of shown) {
      const entry = Object.assign(document.createElement("button"), { type: "button", title: `${line.name}: show or hide` });
      const swatch = document.createElement("i");
      const value = document.createElement("b");
      entry.append(swatch, `${line.name} `, value);
      entry.addEventListener("click", () => {
        if (!this.hidden.delete(line.name)) this.hidden.add(line.name);
        entry.classList.toggle("off", this.hidden.has(line.name));
        this.draw();
      });
      this.legend.append(entry);
      this.entries.push({ line, swatch, value });
    }
  }

  draw() {
    const style = getComputedStyle(document.documentElement);
    const color = (name) => (name.startsWith("--") ? style.getPropertyValue(name).trim() : name);
    for (const { line, swatch, value } of this.entries) {
      swatch.style.background = color(line.color);
      const now = line.run.track.value(line.values, line.run.track.locate(this.viewer.time));
      value.textContent = Number.isFinite(now) ? inWords(now, this.range[1] - this.range[0]) : "";
    }
    const { clientWidth: width, clientHeight: height } = this.canvas;
    if (!width || !height) return;
    const ratio = Math.min(window.devicePixelRatio, 2);
    this.canvas.width = width * ratio;
    this.canvas.height = height * ratio;
    const pen = this.canvas.getContext("2d");
    pen.scale(ratio, ratio);
    pen.font = "10.5px system-ui, 'DejaVu Sans', sans-serif";
    const { x, y } = this.drawAxes(pen, width, height, color);
    const isVisible = ({ run, name }) => run.group.visible && !this.hidden.has(name);
    for (const line of [...this.lines].reverse()) if (isVisible(line)) this.drawLine(pen, line, x, y, color);
    pen.globalAlpha = 1;
    pen.setLineDash([]);
    pen.strokeStyle = color("--ink");
    pen.lineWidth = 1;
    pen.beginPath();
    pen.moveTo(x(this.viewer.time), this.frame.top);
    pen.lineTo(x(this.viewer.time), this.frame.bottom);
    pen.stroke();
    for (const line of this.lines) {
      if (!isVisible(line) || line.run.run.ghost) continue;
      const { track } = line.run;
      pen.fillStyle = color(line.color);
      pen.beginPath();
      const time = Math.min(this.viewer.time, track.times.at(-1));
      pen.arc(x(time), y(track.value(line.values, track.locate(time))), 3, 0, 7);
      pen.fill();
    }
  }

  drawLine(pen, { run, values, color: name, dash }, x, y, color) {
    pen.strokeStyle = color(name);
    pen.globalAlpha = run.run.ghost ? 0.35 : 1;
    pen.lineWidth = run.run.ghost ? 1 : 1.6;
    pen.lineJoin = "round";
    pen.setLineDash(dash);
    pen.beginPath();
    values.forEach((value, k) => Number.isFinite(value) && pen.lineTo(x(run.track.times[k]), y(value)));
    pen.stroke();
  }

  /** Draw both axes with their ticks; return the functions from time and value to pixels. */
  drawAxes(pen, width, height, color) {
    const { start, end } = this.viewer;
    const [low, high] = this.range;
    const rows = ticksOf(low, high, Math.max(2, Math.min(5, height / 28)));
    const texts = rows.ticks.map((tick) => tickText(tick, rows.step));
    const left = Math.ceil(Math.max(...texts.map((text) => pen.measureText(text).width), 12)) + 8;
    this.frame = { left, right: width - 8, top: 4, bottom: height - 19 };
    const { right, top, bottom } = this.frame;
    const x = (t) => left + ((right - left) * (t - start)) / (end - start || 1);
    const y = (v) => bottom - ((bottom - top) * (v - low)) / (high - low);
    const line = (x0, y0, x1, y1) => {
      pen.beginPath();
      pen.moveTo(x0, y0);
      pen.lineTo(x1, y1);
      pen.stroke();
    };
    pen.fillStyle = color("--soft");
    pen.strokeStyle = color("--line");
    pen.lineWidth = 1;
    pen.textAlign = "right";
    pen.textBaseline = "middle";
    rows.ticks.forEach((tick, k) => {
      pen.fillText(texts[k], left - 5, y(tick));
      line(left, y(tick), right, y(tick));
    });
    const columns = ticksOf(start, end, Math.max(2, (right - left) / 60));
    pen.textAlign = "center";
    pen.textBaseline = "top";
    const unit = pen.measureText("t (s)").width;
    for (const tick of columns.ticks) {
      const text = tickText(tick, columns.step);
      const half = pen.measureText(text).width / 2;
      line(x(tick), bottom, x(tick), bottom + 3);
      if (x(tick) + half < right - unit - 4) pen.fillText(text, Math.max(x(tick), half), bottom + 5);
    }
    pen.textAlign = "right";
    pen.fillText("t (s)", width - 2, bottom + 5);
    pen.strokeStyle = color("--soft");
    line(left, bottom, right, bottom);
    line(left, top, left, bottom);
    return { x, y };
  }
}
