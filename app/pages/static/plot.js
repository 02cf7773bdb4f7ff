// A chart's drawing: axes with round values and times, and series with gaps.

import { circle, font } from "./canvas.js";
import { time, timeOfDay } from "./format.js";

const MARGIN = { left: 52, right: 12, top: 8, bottom: 22 };
const FONT_SIZE = 11;
const LABEL_GAP = 8; // between the labels of the value axis and the plot
const TIME = { tick: 4, baseline: 5 }; // height of a tick; from the text's baseline to the lower edge
// A time that is nearer to an edge of the plot (left) or of the canvas (right) would be cut off.
const TIME_ROOM = { left: 14, right: 28 };
// Up to so many seconds the times have seconds too.
const SHORT_SPAN = 150;
const TIMES = { short: { seconds: 20, text: time }, long: { seconds: 60, text: timeOfDay } };
const LINE_WIDTH = 1.6;
const DOT_RADIUS = 3.2;
const ARROW = { halfWidth: 4, height: 7, gap: 1 }; // gap: between its tip and the axis
const DASH = { line: 4, gap: 3 };
const INTERVALS = 4; // between the values of an axis, about
// oxlint-disable-next-line no-magic-numbers -- the factors of the usual round numbers
const ROUND_STEPS = [1, 2, 5, 10];

export class Plot {
  constructor(context, width, height, rows, from, low, high, theme) {
    Object.assign(this, { context, width, height, rows, from, theme });
    this.ticks = niceTicks(low, high);
    this.low = Math.min(low, this.ticks[0]);
    this.high = Math.max(high, this.ticks.at(-1));
    this.top = MARGIN.top;
    this.bottom = height - MARGIN.bottom;
    this.left = MARGIN.left;
    this.right = width - MARGIN.right;
    this.span = this.right - this.left;
    this.half = this.span / rows.length / 2; // of the width of a row
  }

  x(place) {
    return this.left + (this.span * (place + 0.5)) / this.rows.length;
  }

  /** The height of a value; one below the axis lies on it. */
  y(value) {
    const share = Math.max(0, (value - this.low) / (this.high - this.low));
    return this.bottom - share * (this.bottom - this.top);
  }

  #yOf(of, place) {
    return this.y(of(this.rows[place]));
  }

  indexAt(x) {
    return Math.floor(((x - this.left) / this.span) * this.rows.length);
  }

  axes(tick) {
    const { context, theme } = this;
    context.font = font(FONT_SIZE);
    context.strokeStyle = theme.grid;
    context.fillStyle = theme.quiet;
    context.lineWidth = 1;
    context.textAlign = "right";
    context.textBaseline = "middle";
    for (const value of this.ticks) {
      const y = Math.round(this.y(value)) + 0.5;
      this.#line(this.left, y, this.right, y);
      context.fillText(tick(value), this.left - LABEL_GAP, y);
    }
    this.#times();
  }

  #times() {
    const { context } = this;
    const { seconds, text } = this.rows.length > SHORT_SPAN ? TIMES.long : TIMES.short;
    context.textAlign = "center";
    context.textBaseline = "alphabetic";
    for (let place = 0; place < this.rows.length; place++) {
      const second = this.from + place;
      if (second % seconds) continue;
      const x = Math.round(this.x(place) - this.half) + 0.5;
      this.#line(x, this.bottom, x, this.bottom + TIME.tick);
      const hasRoom = x > this.left + TIME_ROOM.left && x < this.width - TIME_ROOM.right;
      if (hasRoom) context.fillText(text(second), x, this.height - TIME.baseline);
    }
  }

  #line(x0, y0, x1, y1) {
    const { context } = this;
    context.beginPath();
    context.moveTo(x0, y0);
    context.lineTo(x1, y1);
    context.stroke();
  }

  #rule(place) {
    this.#line(this.x(place), this.top, this.x(place), this.bottom);
  }

  /** A line through the whole height at the row that the pointer is on. */
  pointer(place) {
    this.context.strokeStyle = this.theme.grey;
    this.#rule(place);
  }

  /** A line through the values of `of(row)`, broken where there is none. */
  line(of, colour) {
    const { context } = this;
    context.strokeStyle = colour;
    context.lineWidth = LINE_WIDTH;
    context.lineJoin = "round";
    for (const stretch of this.#stretches(of)) {
      context.beginPath();
      if (stretch.length === 1) circle(context, this.x(stretch[0]), this.#yOf(of, stretch[0]), LINE_WIDTH);
      for (const place of stretch) context.lineTo(this.x(place), this.#yOf(of, place));
      context.stroke();
    }
  }

  /** The area between two values of a row. */
  area(below, above, colour) {
    const { context, half } = this;
    context.fillStyle = colour;
    for (const stretch of this.#stretches(above)) {
      context.beginPath();
      const [first, last] = [stretch[0], stretch.at(-1)];
      context.lineTo(this.x(first) - half, this.#yOf(above, first));
      for (const place of stretch) context.lineTo(this.x(place), this.#yOf(above, place));
      context.lineTo(this.x(last) + half, this.#yOf(above, last));
      context.lineTo(this.x(last) + half, this.#yOf(below, last));
      for (const place of stretch.toReversed()) context.lineTo(this.x(place), this.#yOf(below, place));
      context.lineTo(this.x(first) - half, this.#yOf(below, first));
      context.fill();
    }
  }

  /** The whole height behind the rows that `is` so. */
  spans(is, colour) {
    const { context, half } = this;
    context.fillStyle = colour;
    for (const stretch of this.#stretches((row) => is(row) || null)) {
      const from = this.x(stretch[0]) - half;
      context.fillRect(from, this.top, this.x(stretch.at(-1)) + half - from, this.bottom - this.top);
    }
  }

  /** A dashed line through the whole height at each row that `is` so. */
  marks(is, colour) {
    const { context } = this;
    context.strokeStyle = colour;
    context.setLineDash([DASH.line, DASH.gap]);
    for (const [place, row] of this.rows.entries()) if (row && is(row)) this.#rule(place);
    context.setLineDash([]);
  }

  /** A dot at each value, or an arrow at the lower edge where it lies below the axis. */
  dots(of, colour) {
    const { context } = this;
    context.fillStyle = colour;
    for (const [place, row] of this.rows.entries()) {
      const value = row ? of(row) : null;
      if (value === null) continue;
      context.beginPath();
      if (value >= this.low) circle(context, this.x(place), this.y(value), DOT_RADIUS);
      else this.#arrow(this.x(place));
      context.fill();
    }
  }

  #arrow(x) {
    const { context } = this;
    const tip = this.bottom - ARROW.gap;
    context.lineTo(x - ARROW.halfWidth, tip - ARROW.height);
    context.lineTo(x + ARROW.halfWidth, tip - ARROW.height);
    context.lineTo(x, tip);
  }

  /** Rows next to each other that have a value, as lists of their places. */
  #stretches(of) {
    const found = [];
    let open = null;
    for (const [place, row] of this.rows.entries()) {
      const hasValue = row && of(row) !== null;
      if (hasValue && !open) found.push((open = []));
      if (hasValue) open.push(place);
      else open = null;
    }
    return found;
  }
}

/** Round values, three to six of them, that cover a range. */
function niceTicks(low, high) {
  const rough = (high - low || Math.abs(high) || 1) / INTERVALS;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = ROUND_STEPS.map((factor) => factor * power).find((size) => size >= rough);
  const first = Math.floor(low / step);
  const ticks = [];
  for (let i = first; i <= Math.ceil(high / step); i++) ticks.push(i * step);
  return ticks;
}
