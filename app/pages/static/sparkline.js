// The course of an incident's first field, with the band in which it was expected.

import { beforeNextFrame, circle, sharp } from "./canvas.js";
import { colours, element, onThemeChange } from "./dom.js";
import { short } from "./format.js";
import { averageCourse, courseOf } from "./course.js";

const LEAST_WIDTH = 60;
const ROOM = 4; // pixels above and below
const LINE_WIDTH = 1.4;
const DOT_RADIUS = 2.4;
// An open incident's course is asked for again after so long.
const AGAIN_MILLISECONDS = 5000;

export class Sparkline {
  #rows = [];

  /** Shows the course of a field to blame, `entry` of the event's contributions. */
  constructor(event, entry) {
    Object.assign(this, { event, entry });
    this.canvas = element("canvas", { role: "img", "aria-label": `${entry.name} around the incident` });
    this.label = element("figcaption", { class: "quiet" });
    this.element = element("figure", { class: "spark", hidden: "" }, this.canvas, this.label);
    this.draw = beforeNextFrame(() => this.#draw());
    onThemeChange(this.draw);
    this.#look();
  }

  async #look() {
    const rows = await courseOf(this.event, this.entry).catch(() => []);
    if (rows.length) this.#show(rows, "");
    else this.#show(averageCourse(this.event, this.entry), " on average");
    const isWatched = this.element.isConnected || !rows.length;
    if (this.event.state !== "closed" && isWatched) setTimeout(() => this.element.isConnected && this.#look(), AGAIN_MILLISECONDS);
  }

  #show(rows, note) {
    this.#rows = rows;
    this.element.hidden = !rows.length;
    if (!rows.length) return;
    const [low, high] = extent(rows);
    const whose = this.event.entity ? ` of ${this.event.entity}` : "";
    this.label.textContent = `${this.entry.name}${whose}${note}, ${short(low)} to ${short(high)}`;
    this.draw();
  }

  #draw() {
    const { context, width, height } = sharp(this.canvas);
    const rows = this.#rows;
    if (!rows.length || width < LEAST_WIDTH) return;
    const [low, high] = extent(rows);
    const [first, last] = [rows[0].time, rows.at(-1).time];
    const x = (row) => DOT_RADIUS + ((width - 2 * DOT_RADIUS) * (row.time - first)) / Math.max(1, last - first);
    const y = (value) => height - ROOM - ((height - 2 * ROOM) * (value - low)) / (high - low || 1);
    drawCourse(context, rows, x, y);
  }
}

/** The band, the values as a line, and a dot for each anomaly. */
function drawCourse(context, rows, x, y) {
  const theme = colours();
  const banded = rows.filter((row) => row.low !== null);
  context.fillStyle = theme["blue-band"];
  context.beginPath();
  for (const row of banded) context.lineTo(x(row), y(row.low));
  for (const row of banded.toReversed()) context.lineTo(x(row), y(row.high));
  context.fill();
  context.strokeStyle = theme.blue;
  context.lineWidth = LINE_WIDTH;
  context.beginPath();
  for (const row of rows.filter((each) => each.value !== null)) context.lineTo(x(row), y(row.value));
  context.stroke();
  context.fillStyle = theme.red;
  for (const row of rows.filter((each) => each.unusual)) {
    context.beginPath();
    circle(context, x(row), y(row.value), DOT_RADIUS);
    context.fill();
  }
}

function extent(rows) {
  const values = rows.flatMap((row) => [row.value, row.low, row.high]).filter((value) => value !== null);
  return [Math.min(...values), Math.max(...values)];
}
