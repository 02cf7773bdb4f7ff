// How a network looks on a canvas. Distances between rows shrink with the zoom, texts do not: they
// are left out where there is no room for them.

import { count, number, percent } from "./format.js";
import { isLeaf, ROW } from "./tree.js";

const SIGNS = { sum: "+", product: "×" };
const PENS = { sum: "blue", product: "violet", leaf: "teal", multivariate_leaf: "amber" };
const COLOURS = ["grey", "blue", "violet", "teal", "amber", "red", "text", "quiet", "card"];
const TEXT_ROW = 13;

/** What a node is called. */
export function label(node) {
  if (node.title) return node.title;
  if (node.kind === "others") return `… ${count(node.hidden)} more`;
  if (!isLeaf(node)) return node.kind;
  const [first, second] = node.fields;
  if (node.fields.length === 1) return `${first} ${number(node.mean[0], 3)}`;
  const rest = node.fields.length - 2;
  return `${first}, ${second}${rest ? ` + ${rest}` : ""}`;
}

/** One picture: `camera` says where nodes are on the canvas. */
export class Drawing {
  constructor(context, theme, camera, width, height, chosen) {
    Object.assign(this, { context, camera, width, height, chosen });
    this.pens = Object.fromEntries(COLOURS.map((name) => [name, theme[name]]));
    this.row = ROW * camera.zoom;
    this.hasText = this.row >= TEXT_ROW;
    this.radius = Math.min(9, Math.max(1, this.row / 2 - 1));
    context.font = `${this.row < 18 ? 11 : 12}px system-ui, "DejaVu Sans", sans-serif`;
    context.textBaseline = "middle";
    context.lineJoin = "round";
  }

  /** The lines from a node to its children, those that are in view. */
  edges(node) {
    const { context, camera, radius } = this;
    const [x0, y0] = [camera.x(node) + radius, camera.y(node)];
    const x1 = camera.x(node.shown[0] ?? node) - radius;
    if (!node.shown.length || x0 > this.width || x1 < 0) return;
    context.strokeStyle = this.pens.grey;
    context.globalAlpha = this.hasText ? 0.8 : 0.5;
    for (const child of node.shown) {
      const y1 = camera.y(child);
      if (Math.max(y0, y1) < 0 || Math.min(y0, y1) > this.height) continue;
      context.lineWidth = this.hasText ? 1 + 6 * (child.weight ?? 0) : 0.6;
      context.beginPath();
      context.moveTo(x0, y0);
      const bend = (x1 - x0) / 2;
      if (this.hasText) context.bezierCurveTo(x0 + bend, y0, x0 + bend / 2, y1, x1, y1);
      else context.lineTo(x1, y1);
      context.stroke();
    }
    context.globalAlpha = 1;
  }

  /** Draw a node and tell whether it is in view. */
  node(node) {
    const [x, y] = [this.camera.x(node), this.camera.y(node)];
    if (x < -200 || x > this.width + 20 || y < -this.row || y > this.height + this.row) return false;
    if (node.kind !== "others") this.#shape(node, x, y);
    if (this.hasText) this.#texts(node, x, y);
    return true;
  }

  #shape(node, x, y) {
    const { context, pens, radius } = this;
    const isChosen = node === this.chosen;
    context.fillStyle = pens[PENS[node.kind] ?? "grey"];
    context.beginPath();
    const half = node.fields.length > 1 ? 1.25 * radius : 0.9 * radius;
    if (isLeaf(node)) context.roundRect(x - half, y - 0.8 * radius, 2 * half, 1.6 * radius, radius / 2);
    else context.arc(x, y, radius, 0, 7);
    context.fill();
    if (!isChosen) return;
    context.strokeStyle = pens.text;
    context.lineWidth = 2;
    context.strokeRect(x - radius - 2.5, y - radius - 2.5, 2 * radius + 5, 2 * radius + 5);
  }

  #texts(node, x, y) {
    const { context, pens, radius } = this;
    context.fillStyle = pens.card;
    context.textAlign = "center";
    if (node.kind !== "others") context.fillText(SIGNS[node.kind] ?? (node.fields.length > 1 ? node.fields.length : ""), x, y + 0.5);
    if (node.weight !== null) this.#text(percent(node.weight), "right", x - radius - 7, y, pens.quiet);
    const isClosed = node.size > 1 && !node.isOpen;
    const name = node.title || isLeaf(node) || node.kind === "others" ? label(node) : "";
    const more = isClosed && node.kind !== "others" ? `▸ ${count(node.size - 1)} nodes` : "";
    if (!isClosed && node.children.length) this.#text(name, "left", x - radius, y - radius - 9, pens.text);
    else this.#text([name, more].filter(Boolean).join("  "), "left", x + radius + 7, y, name ? pens.text : pens.quiet);
  }

  /** A text that keeps clear of the lines behind it. */
  #text(text, align, x, y, colour) {
    const { context } = this;
    if (!text) return;
    context.textAlign = align;
    context.lineWidth = 5;
    context.strokeStyle = this.pens.card;
    context.strokeText(text, x, y + 0.5);
    context.fillStyle = colour;
    context.fillText(text, x, y + 0.5);
  }
}
