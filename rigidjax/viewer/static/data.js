"use strict";
// The data of the page: arrays from base64, and interpolation of poses between saved times.

const KINDS = { float32: [Float32Array, 4], int16: [Int16Array, 2] };

/** Decode an array of the data to a typed array with a property `shape`. */
function decodeArray(entry) {
  const text = atob(entry.data);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  const [Type, size] = KINDS[entry.type];
  let values = new Type(bytes.buffer, 0, bytes.length / size);
  if (entry.scale !== undefined) values = Float32Array.from(values, (value) => value * entry.scale);
  values.shape = entry.shape;
  return values;
}

/** Times of a run, with its poses, rates, forces, reactions and graphs. */
class Track {
  constructor(run) {
    this.times = decodeArray(run.times);
    this.poses = decodeArray(run.poses);
    this.rates = run.rates ? decodeArray(run.rates) : null;
    this.forces = run.forces ? decodeArray(run.forces) : null;
    this.reactions = run.reactions ? decodeArray(run.reactions) : null;
    this.bodies = run.bodies.length;
    this.joints = run.joints.length;
    this.graphs = run.graphs.map((graph) => ({ ...graph, values: decodeArray(graph.values) }));
    this.coordinates = (run.coordinates ?? []).map((coordinate) => ({
      ...coordinate,
      values: decodeArray(coordinate.values),
      rates: coordinate.rates ? decodeArray(coordinate.rates) : null,
    }));
  }

  /** Return the row at or before a time, and the fraction of the interval to the next row. */
  locate(time) {
    const times = this.times;
    let low = 0;
    let high = times.length - 1;
    if (time <= times[0] || high === 0) return [0, 0];
    if (time >= times[high]) return [high, 0];
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (times[middle] <= time) low = middle;
      else high = middle;
    }
    return [low, (time - times[low]) / (times[high] - times[low])];
  }

  /** Interpolate values with one number per time. */
  value(values, [row, part]) {
    return part > 0 ? values[row] + part * (values[row + 1] - values[row]) : values[row];
  }

  position(body, [row, part], target) {
    return this.vector(this.poses, 7 * this.bodies, 7 * body, [row, part], target);
  }

  /** Interpolate three components at `offset` of an array with `stride` numbers per time. */
  vector(values, stride, offset, [row, part], target) {
    const a = row * stride + offset;
    const b = part > 0 ? a + stride : a;
    return target.set(
      values[a] + part * (values[b] - values[a]),
      values[a + 1] + part * (values[b + 1] - values[a + 1]),
      values[a + 2] + part * (values[b + 2] - values[a + 2]),
    );
  }

  orientation(body, [row, part], target) {
    const a = (row * this.bodies + body) * 7 + 3;
    const at = (k) => new THREE.Quaternion(this.poses[k + 1], this.poses[k + 2], this.poses[k + 3], this.poses[k]);
    target.copy(at(a));
    if (part > 0) target.slerp(at(a + 7 * this.bodies), part);
    return target;
  }

  /** Return the 90 % quantile of the lengths of the rows of an array (n, 3). */
  static usual(values) {
    const lengths = [];
    for (let i = 0; i + 2 < values.length; i += 3) lengths.push(Math.hypot(values[i], values[i + 1], values[i + 2]));
    lengths.sort((a, b) => a - b);
    return lengths[Math.floor(0.9 * (lengths.length - 1))] || lengths.at(-1) || 0;
  }
}

/** Return the quaternion of components with the scalar first. */
function quaternionOf([w, x, y, z]) {
  return new THREE.Quaternion(x, y, z, w);
}

/** Format a number with few digits, but enough to distinguish values within a range. */
function inWords(value, range = Infinity) {
  if (!Number.isFinite(value)) return String(value);
  const size = Math.abs(value);
  // Rounding errors of SI units in double precision, and of values within a range.
  if (size < 1e-12 || size < 1e-9 * (Number.isFinite(range) ? range : 0)) return "0";
  const digits = Math.min(7, Math.max(3, 2 + Math.ceil(Math.log10(size / range))));
  if (size >= 1e4 || size < 1e-2) return value.toExponential(digits - 2);
  return String(Number(value.toPrecision(digits)));
}
