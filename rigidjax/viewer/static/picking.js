"use strict";
// The legend of bodies and joints, hints under the pointer, and the selection.

class Picking {
  constructor(viewer) {
    this.viewer = viewer;
    this.chosen = null;
    this.hint = document.getElementById("hint");
    this.card = document.getElementById("card");
    this.ray = new THREE.Raycaster();
    this.makeLegend();
    const { canvas } = viewer.stage;
    let from = null;
    canvas.addEventListener("pointerdown", (event) => (from = [event.clientX, event.clientY]));
    canvas.addEventListener("pointermove", (event) => event.buttons || this.showHint(event));
    canvas.addEventListener("pointerleave", () => (this.hint.hidden = true));
    canvas.addEventListener("pointerup", (event) => {
      const moved = from ? Math.hypot(event.clientX - from[0], event.clientY - from[1]) : 9;
      if (moved >= 4) return;
      const found = this.find(event);
      if (!event.shiftKey) this.select(found?.item ?? null);
      else if (found) viewer.distance.pick(found);
    });
  }

  makeLegend() {
    const { run, bodies } = this.viewer.runs[0];
    const legend = document.getElementById("parts");
    const summary = Object.assign(document.createElement("summary"), { textContent: run.joints.length ? "Bodies and joints" : "Bodies" });
    const rows = document.createElement("div");
    legend.append(summary, rows);
    this.rows = [];
    const add = (item, name, color) => {
      const row = Object.assign(document.createElement("button"), { type: "button" });
      const swatch = document.createElement("i");
      if (color) swatch.style.background = color;
      else swatch.className = "joint";
      row.append(swatch, name);
      row.addEventListener("click", () => this.select(same(item, this.chosen) ? null : item));
      rows.append(row);
      this.rows.push({ item, row });
    };
    run.bodies.forEach((body, i) => add({ body: i }, body.name, `#${bodies[i].userData.color.getHexString()}`));
    run.joints.forEach((joint, i) => add({ joint: i }, joint.name, null));
    legend.open = this.rows.length <= 8 && innerWidth > 700 && innerHeight > 420;
  }

  /** Return the body or joint under the pointer, with its run and the position. */
  find(event) {
    const { canvas, camera } = this.viewer.stage;
    const at = { x: (2 * event.offsetX) / canvas.clientWidth - 1, y: 1 - (2 * event.offsetY) / canvas.clientHeight };
    this.ray.setFromCamera(at, camera);
    let best = null;
    const check = (objects, found) => {
      const [hit] = this.ray.intersectObjects(objects.filter((object) => object.visible));
      if (hit && (!best || hit.distance < best.distance)) best = { ...found, distance: hit.distance, at: hit.point };
    };
    for (const run of this.viewer.runs.filter((view) => view.group.visible && !view.run.ghost)) {
      run.bodies.forEach((body, i) => check([body.userData.solid], { run, item: { body: i } }));
      run.pens.forEach((pen, i) => check([pen.parent, pen.child], { run, item: { joint: i } }));
    }
    return best;
  }

  showHint(event) {
    const found = this.find(event);
    this.hint.hidden = !found;
    this.viewer.stage.canvas.style.cursor = found ? "pointer" : "";
    if (!found) return;
    this.hint.replaceChildren(...this.describe(found.run, found.item));
    const { clientWidth: width, clientHeight: height } = this.viewer.stage.canvas;
    const x = Math.min(event.offsetX + 14, width - this.hint.offsetWidth - 6);
    const y = Math.min(event.offsetY + 14, height - this.hint.offsetHeight - 6);
    this.hint.style.transform = `translate(${Math.max(0, x)}px, ${Math.max(0, y)}px)`;
  }

  /** Return the label of a run in parentheses, if there are several. */
  suffixOf({ run }) {
    return this.viewer.runs.length > 1 && run.label ? ` (${run.label})` : "";
  }

  /** Return the lines that describe a body or a joint at the current time. */
  describe(run, item) {
    const line = (text, tag = "div") => Object.assign(document.createElement(tag), { textContent: text });
    const suffix = this.suffixOf(run);
    if (item.body !== undefined) {
      const body = run.run.bodies[item.body];
      const mass = body.mass ? [line(`mass ${inWords(body.mass)} kg`)] : [];
      return [line(body.name + suffix, "b"), ...mass];
    }
    const joint = run.run.joints[item.joint];
    const name = (body) => (body < 0 ? "ground" : run.run.bodies[body].name);
    const where = run.track.locate(this.viewer.time);
    const values = run.track.coordinates.filter((c) => c.joint === item.joint).map((c) => {
      const value = run.track.value(c.values, where);
      const degrees = c.unit === "rad" ? ` = ${((value * 180) / Math.PI).toFixed(1)}\u00b0` : "";
      const rate = c.rates ? `, ${inWords(run.track.value(c.rates, where))} ${c.unit}/s` : "";
      return line(`${(value + 0).toFixed(4).replace(/^-(0\.0*)$/, "$1")} ${c.unit}${degrees}${rate}`);
    });
    return [line(joint.name + suffix, "b"), line(`${joint.kind}, ${name(joint.parent)} to ${name(joint.child)}`), ...values];
  }

  select(item) {
    this.chosen = item;
    const accent = getComputedStyle(document.documentElement).getPropertyValue("--accent").trim();
    for (const run of this.viewer.runs) run.highlight(item, accent);
    for (const { item: other, row } of this.rows) row.setAttribute("aria-pressed", String(same(item, other)));
    this.viewer.ask();
  }

  update() {
    this.card.hidden = !this.chosen;
    if (this.chosen) this.card.replaceChildren(...this.describe(this.viewer.runs[0], this.chosen));
  }
}

function same(a, b) {
  return Boolean(a && b) && a.body === b.body && a.joint === b.joint;
}
