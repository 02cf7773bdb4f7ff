// A chart of the last minutes on a canvas: axes with units, series that know gaps, values on hover.

import { beforeNextFrame, colours, element, onThemeChange, sharp } from "./dom.js";
import { time, timeOfDay } from "./format.js";

const MARGIN = { left: 52, right: 12, top: 8, bottom: 22 };

/**
 * @param figure the element that it is in
 * @param options `legend`: [class, text] pairs; `range(rows)`: [low, high] of the axis; `draw(plot)`;
 *   `tick(value)`: text of an axis label; `tip(row)`: [name, text] pairs
 */
export class TimeChart {
  constructor(figure, options) {
    this.options = options;
    this.figure = figure;
    this.canvas = figure.appendChild(element("canvas", { role: "img" }));
    this.rows = [];
    this.draw = beforeNextFrame(() => this.#draw());
    for (const [kind, text] of options.legend) {
      figure.querySelector(".legend").append(element("span", {}, element("i", { class: kind }), text));
    }
    this.canvas.addEventListener("pointermove", (event) => this.#hover(event.offsetX));
    this.canvas.addEventListener("pointerleave", () => this.#hover(null));
    new ResizeObserver(this.draw).observe(this.canvas);
    onThemeChange(this.draw);
  }

  /** Show rows, one a second and undefined in a gap, from the second `from` on. */
  show(rows, from, label) {
    Object.assign(this, { rows, from });
    this.canvas.setAttribute("aria-label", label);
    this.draw();
  }

  #hover(x) {
    this.hovered = x;
    this.draw();
  }

  #draw() {
    const { context, width, height } = sharp(this.canvas);
    if (!this.rows.length || width < 80) return;
    const [low, high] = this.options.range(this.rows.filter(Boolean));
    const plot = new Plot(context, width, height, this.rows, this.from, low, high, colours());
    plot.axes(this.options.tick);
    this.options.draw(plot);
    this.#tip(plot);
  }

  #tip(plot) {
    this.tip?.remove();
    const place = this.hovered == null ? -1 : plot.indexAt(this.hovered);
    const row = this.rows[place];
    if (!row) return;
    plot.rule(place);
    const lines = this.options.tip(row).map(([name, text]) => element("span", {}, name, element("span", {}, text)));
    this.tip = element("div", { class: "tip" }, element("b", {}, time(this.from + place)), ...lines);
    this.figure.append(this.tip);
    const x = this.canvas.offsetLeft + plot.x(place);
    const isRight = plot.x(place) > plot.width / 2;
    this.tip.style.left = `${isRight ? x - this.tip.offsetWidth - 10 : x + 10}px`;
    this.tip.style.top = `${this.canvas.offsetTop + MARGIN.top}px`;
  }
}

class Plot {
  constructor(context, width, height, rows, from, low, high, theme) {
    Object.assign(this, { context, width, height, rows, from, theme });
    this.ticks = niceTicks(low, high);
    this.low = Math.min(low, this.ticks[0]);
    this.high = Math.max(high, this.ticks.at(-1));
    this.bottom = height - MARGIN.bottom;
    this.span = width - MARGIN.left - MARGIN.right;
  }

  x(place) {
    return MARGIN.left + (this.span * (place + 0.5)) / this.rows.length;
  }

  y(value) {
    const share = (value - this.low) / (this.high - this.low);
    return this.bottom - share * (this.bottom - MARGIN.top);
  }

  indexAt(x) {
    return Math.floor(((x - MARGIN.left) / this.span) * this.rows.length);
  }

  axes(tick) {
    const { context, theme } = this;
    context.font = "11px system-ui, 'DejaVu Sans', sans-serif";
    context.strokeStyle = theme.grid;
    context.fillStyle = theme.quiet;
    context.lineWidth = 1;
    context.textAlign = "right";
    context.textBaseline = "middle";
    for (const value of this.ticks) {
      const y = Math.round(this.y(value)) + 0.5;
      this.#line(MARGIN.left, y, this.width - MARGIN.right, y);
      context.fillText(tick(value), MARGIN.left - 8, y);
    }
    context.textAlign = "center";
    context.textBaseline = "alphabetic";
    for (let place = 0; place < this.rows.length; place++) {
      if ((this.from + place) % (this.rows.length > 150 ? 60 : 20)) continue;
      const x = Math.round(this.x(place) - this.span / this.rows.length / 2) + 0.5;
      this.#line(x, this.bottom, x, this.bottom + 4);
      if (x > MARGIN.left + 14 && x < this.width - 28) context.fillText((this.rows.length > 150 ? timeOfDay : time)(this.from + place), x, this.height - 5);
    }
  }

  #line(x0, y0, x1, y1) {
    const { context } = this;
    context.beginPath();
    context.moveTo(x0, y0);
    context.lineTo(x1, y1);
    context.stroke();
  }

  rule(place) {
    this.context.strokeStyle = this.theme.grey;
    this.#line(this.x(place), MARGIN.top, this.x(place), this.bottom);
  }

  /** A line through the values of `of(row)`, broken where there is none. */
  line(of, colour) {
    const { context } = this;
    context.strokeStyle = colour;
    context.lineWidth = 1.6;
    context.lineJoin = "round";
    for (const stretch of this.#stretches(of)) {
      context.beginPath();
      if (stretch.length === 1) context.arc(this.x(stretch[0]), this.y(of(this.rows[stretch[0]])), 0.8, 0, 7);
      for (const place of stretch) context.lineTo(this.x(place), this.y(of(this.rows[place])));
      context.stroke();
    }
  }

  /** The area between two values of a row. */
  area(below, above, colour) {
    const { context } = this;
    context.fillStyle = colour;
    const half = this.span / this.rows.length / 2;
    for (const stretch of this.#stretches(above)) {
      context.beginPath();
      const [first, last] = [stretch[0], stretch.at(-1)];
      context.lineTo(this.x(first) - half, this.y(above(this.rows[first])));
      for (const place of stretch) context.lineTo(this.x(place), this.y(above(this.rows[place])));
      context.lineTo(this.x(last) + half, this.y(above(this.rows[last])));
      context.lineTo(this.x(last) + half, this.y(below(this.rows[last])));
      for (const place of stretch.toReversed()) context.lineTo(this.x(place), this.y(below(this.rows[place])));
      context.lineTo(this.x(first) - half, this.y(below(this.rows[first])));
      context.fill();
    }
  }

  /** A dashed line through the whole height at each row that `is` so. */
  marks(is, colour) {
    const { context } = this;
    context.strokeStyle = colour;
    context.setLineDash([4, 3]);
    this.rows.forEach((row, place) => row && is(row) && this.#line(this.x(place), MARGIN.top, this.x(place), this.bottom));
    context.setLineDash([]);
  }

  /** A dot at each value, or an arrow at the lower edge where it lies below the axis. */
  dots(of, colour) {
    const { context } = this;
    context.fillStyle = colour;
    this.rows.forEach((row, place) => {
      const value = row && of(row);
      if (value == null) return;
      const [x, y] = [this.x(place), this.y(value)];
      context.beginPath();
      if (value >= this.low) context.arc(x, y, 3.2, 0, 7);
      else [[-4, -8], [4, -8], [0, -1]].forEach(([dx, dy]) => context.lineTo(x + dx, this.bottom + dy));
      context.fill();
    });
  }

  #stretches(of) {
    const found = [];
    let open = null;
    this.rows.forEach((row, place) => {
      if (row && of(row) != null) (open ??= found[found.push([]) - 1]).push(place);
      else open = null;
    });
    return found;
  }
}

/** Round values, three to six of them, that cover a range. */
function niceTicks(low, high) {
  const rough = (high - low || Math.abs(high) || 1) / 4;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => size >= rough);
  const first = Math.floor(low / step);
  const ticks = [];
  for (let i = first; i <= Math.ceil(high / step); i++) ticks.push(i * step);
  return ticks;
}
