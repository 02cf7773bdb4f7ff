// A chart of the last minutes on a canvas, with the values of a second on hover.

import { beforeNextFrame, sharp } from "./canvas.js";
import { colours, element, onThemeChange } from "./dom.js";
import { moment } from "./format.js";
import { Plot } from "./plot.js";

// A narrower canvas has no room for a chart.
const LEAST_WIDTH = 80;
const TIP_GAP = 10;

// All charts have the same seconds, so that a pointer on one marks the second in all of them.
const charts = [];

/**
 * @param figure the element that it is in
 * @param options `legend`: [class, text] pairs; `range(rows)`: [low, high] of the axis; `draw(plot)`;
 *   `shaded(row)`: whether what it shows was unusual, by default in any incident;
 *   `tick(value)`: text of an axis label; `tip(row)`: [name, text] pairs
 */
export class TimeChart {
  constructor(figure, options) {
    this.options = options;
    this.figure = figure;
    this.canvas = figure.appendChild(element("canvas", { role: "img" }));
    this.hovered = null;
    this.rows = [];
    this.draw = beforeNextFrame(() => this.#draw());
    for (const [kind, text] of options.legend) {
      figure.querySelector(".legend").append(element("span", {}, element("i", { class: kind }), text));
    }
    this.canvas.addEventListener("pointermove", (event) => this.#hover(event.offsetX));
    this.canvas.addEventListener("pointerleave", () => this.#hover(null));
    new ResizeObserver(this.draw).observe(this.canvas);
    onThemeChange(this.draw);
    charts.push(this);
  }

  /** Show rows, one a second and undefined in a gap, from the second `from` on. */
  show(rows, from, label) {
    Object.assign(this, { rows, from });
    this.canvas.setAttribute("aria-label", label);
    this.draw();
  }

  #hover(x) {
    for (const chart of charts) {
      Object.assign(chart, { hovered: x, isUnderPointer: chart === this && x !== null });
      chart.draw();
    }
  }

  #draw() {
    const { context, width, height } = sharp(this.canvas);
    if (!this.rows.length || width < LEAST_WIDTH) return;
    const [low, high] = this.options.range(this.rows.filter(Boolean));
    const plot = new Plot(context, width, height, this.rows, this.from, low, high, colours());
    plot.spans(this.options.shaded ?? ((row) => row.incident), plot.theme["red-soft"]);
    plot.axes(this.options.tick);
    this.options.draw(plot);
    plot.marks((row) => row.drift, plot.theme.violet);
    this.#tip(plot);
  }

  #tip(plot) {
    this.tip?.remove();
    const place = this.hovered === null ? -1 : plot.indexAt(this.hovered);
    const row = this.rows[place];
    if (!row) return;
    plot.pointer(place);
    if (!this.isUnderPointer) return;
    const lines = this.options.tip(row).map(([name, text]) => element("span", {}, name, element("span", {}, text)));
    this.tip = element("div", { class: "tip" }, element("b", {}, moment(this.from + place)), ...lines);
    this.figure.append(this.tip);
    const x = this.canvas.offsetLeft + plot.x(place);
    const isRight = plot.x(place) > plot.width / 2;
    this.tip.style.left = `${isRight ? x - this.tip.offsetWidth - TIP_GAP : x + TIP_GAP}px`;
    this.tip.style.top = `${this.canvas.offsetTop + plot.top}px`;
  }
}
