"use strict";
// Quantities of the graphs: a name, a unit, and one or several lines.

const AXIS_COLORS = ["#e0503f", "#3fa552", "#4c7df0"];
const ENERGY_COLORS = { "kinetic energy": "#e5853b", "potential energy": "#3f7fd6", energy: "--ink" };

/** Return the quantities of the first run; a line computes one value per time of a track, or nothing. */
function quantitiesOf(views, data) {
  const { run, track } = views[0];
  const quantities = [];
  // Lines named by `rough` have 16 bits: changes far below their usual size are round-off.
  const add = (name, unit, lines, rough = null) => lines.length && quantities.push({ name, unit, lines, rough });
  const named = (name) => (other) => other.graphs.find((graph) => graph.name === name)?.values;
  const isEnergy = (graph) => graph.name in ENERGY_COLORS;
  const others = views.flatMap((view) => view.track.graphs).filter((graph) => !isEnergy(graph));
  const isGiven = (graph) => !["change of energy", "position drift", "velocity drift"].includes(graph.name);
  const addGraphs = (graphs) => {
    for (const name of new Set(graphs.map((graph) => graph.name))) {
      add(name, graphs.find((graph) => graph.name === name).unit, [{ name, color: "--accent", valuesOf: named(name) }]);
    }
  };
  addGraphs(others.filter(isGiven));
  addJointCoordinates(add, views[0]);
  const energies = track.graphs.filter(isEnergy).map(({ name }) => ({ name, color: ENERGY_COLORS[name], valuesOf: named(name) }));
  const short = { "kinetic energy": "kinetic", "potential energy": "potential", energy: "total" };
  if (energies.length > 1) for (const line of energies) line.name = short[line.name];
  add("energy", "J", energies);
  addGraphs(others.filter((graph) => !isGiven(graph)));
  run.bodies.forEach((body, i) => addBody(add, body.name, i, data.translates));
  run.joints.forEach((joint, i) => {
    if (!track.reactions) return;
    const at = new THREE.Vector3();
    const valuesOf = (other) => other.reactions && along(other, (row) => other.vector(other.reactions, 3 * other.joints, 3 * i, [row, 0], at).length());
    add(`reaction of ${joint.name}`, "N", [{ name: joint.name, color: "--accent", valuesOf }], "reactions");
  });
  return quantities;
}

function along(track, value) {
  return Float32Array.from(track.times, (_, row) => value(row));
}

/** Add the coordinates and the rates of all joints, of each unit, in the colours of the children. */
function addJointCoordinates(add, view) {
  const lines = view.track.coordinates.map((coordinate, k) => {
    const child = view.run.joints[coordinate.joint].child;
    const color = child < 0 ? "--ink" : `#${view.bodies[child].userData.color.getHexString()}`;
    const other = (track) => track.coordinates.find(({ name }) => name === coordinate.name);
    return { ...coordinate, color, dash: dashOf(view, k), valuesOf: (track) => other(track)?.values, ratesOf: (track) => other(track)?.rates };
  });
  for (const unit of ["rad", "m"]) {
    const ofUnit = lines.filter((line) => line.unit === unit);
    add(unit === "rad" ? "joint angles" : "joint displacements", unit, ofUnit);
  }
  for (const unit of ["rad", "m"]) {
    const ofUnit = lines.filter((line) => line.unit === unit && line.rates).map((line) => ({ ...line, valuesOf: line.ratesOf }));
    add(unit === "rad" ? "joint rates" : "joint velocities", `${unit}/s`, ofUnit);
  }
}

/** Return the dashes of a coordinate: several coordinates of a child have the same colour. */
function dashOf(view, k) {
  const childOf = (coordinate) => view.run.joints[coordinate.joint].child;
  const { coordinates } = view.track;
  const before = coordinates.slice(0, k).filter((other) => childOf(other) === childOf(coordinates[k])).length;
  return [[], [6, 3], [2, 2]][before % 3];
}

function addBody(add, name, i, translates) {
  const [at, turn] = [new THREE.Vector3(), new THREE.Quaternion()];
  const rate = (track, row) => track.vector(track.rates, 3 * track.bodies, 3 * i, [row, 0], at);
  const ofRates = (value) => (track) => (track.rates && i < track.bodies ? along(track, (row) => value(track, row)) : undefined);
  const components = [0, 1, 2].map((k) => ({
    name: `\u03a9${k + 1}`,
    color: AXIS_COLORS[k],
    valuesOf: ofRates((track, row) => {
      track.orientation(i, [row, 0], turn);
      return rate(track, row).applyQuaternion(turn.conjugate()).getComponent(k);
    }),
  }));
  add(`angular velocity of ${name}`, "rad/s", components, "rates");
  if (!translates) return;
  const position = (k) => (track) => (i < track.bodies ? along(track, (row) => track.poses[(row * track.bodies + i) * 7 + k]) : undefined);
  add(`position of ${name}`, "m", ["x", "y", "z"].map((axis, k) => ({ name: axis, color: AXIS_COLORS[k], valuesOf: position(k) })));
}

/** Return the indices of the graphs that are shown at first. */
function defaultGraphs(quantities, tracks) {
  const special = ["energy", "change of energy", "position drift", "velocity drift"];
  const first = quantities.findIndex(({ name }) => /^(joint |angular velocity|energy$)/.test(name));
  const given = quantities.slice(0, Math.max(first, 0)).map((_, k) => k).filter((k) => !special.includes(quantities[k].name));
  const find = (pattern) => quantities.findIndex((quantity) => pattern.test(quantity.name) && quantity.lines[0].valuesOf(tracks[0]));
  const joints = ["angles", "rates", "displacements", "velocities"].map((word) => find(new RegExp(`^joint ${word}`)));
  const bodies = [/^angular velocity/, /^position of/].map(find);
  const chosen = [...given.slice(0, NUM_GRAPHS - 1), ...joints, ...bodies].filter((k) => k >= 0);
  const energy = find(/^energy$/);
  return [...chosen.slice(0, energy < 0 ? NUM_GRAPHS : NUM_GRAPHS - 1), ...(energy < 0 ? [] : [energy])];
}
