"use strict";
// The time and the view in the address of the page, such as `#t=1.2&view=3,1,2,0,0,0&play&bare`.

const VIEW_NUMBERS = 6;

class Address {
  constructor(viewer) {
    this.viewer = viewer;
    // Pages inside of a notebook have no address.
    this.isKnown = location.protocol !== "about:";
    if (!this.isKnown) return;
    window.addEventListener("hashchange", () => this.read());
    viewer.stage.controls.addEventListener("end", () => this.write());
    for (const name of ["pointerup", "keyup"]) window.addEventListener(name, () => this.write());
  }

  /** Apply the address. `bare` leaves only the picture, `play` starts the motion and repeats it. */
  read() {
    if (!this.isKnown) return;
    const { viewer } = this;
    const options = new URLSearchParams(location.hash.slice(1));
    document.getElementById("viewer").classList.toggle("bare", options.has("bare"));
    if (options.has("bare")) viewer.showGraphs(false);
    viewer.fit();
    viewer.setParallel(options.has("parallel"));
    const view = (options.get("view") ?? "").split(",").map(Number);
    if (view.length === VIEW_NUMBERS && view.every(Number.isFinite)) viewer.stage.setView(view);
    else viewer.home();
    const time = Number(options.get("t"));
    if (options.has("t") && Number.isFinite(time)) viewer.seek(time);
    if (options.has("play")) {
      viewer.setLoop(true);
      viewer.play();
    }
  }

  /** Write the time and the view into the address, without a new entry in the history. */
  write() {
    const { viewer } = this;
    if (viewer.playing) return;
    const { camera, controls, parallel } = viewer.stage;
    const view = [...camera.position.toArray(), ...controls.target.toArray()].map((x) => Number(x.toPrecision(5)));
    const isParallel = camera === parallel ? "&parallel" : "";
    const hash = `#t=${Number(viewer.time.toPrecision(6))}&view=${view}${isParallel}`;
    if (hash !== location.hash) history.replaceState(null, "", hash);
  }
}
