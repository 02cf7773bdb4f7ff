// How a network looks on a canvas. Distances between rows shrink with the zoom, texts do not: they
// are left out where there is no room for them.

import { circle, font } from "./canvas.js";
import { count, number, percent } from "./format.js";
import { isLeaf, ROW } from "./tree.js";

const SIGNS = { sum: "+", product: "×" };
const PENS = { sum: "blue", product: "violet", leaf: "teal", multivariate_leaf: "amber" };
const COLOURS = ["grey", "blue", "violet", "teal", "amber", "red", "text", "quiet", "card"];
const MEAN_DIGITS = 3;
// Rows that are lower, in CSS pixels, have no room for texts, or for small ones only.
const TEXT_ROW = 13;
const LARGE_TEXT_ROW = 18;
const FONT_SIZE = { small: 11, large: 12 };
const RADIUS = { least: 1, most: 9 };
// Sides and corners of a leaf, in radii; a leaf of several fields is wider.
const LEAF = { width: 1.8, wide: 2.5, height: 1.6, corner: 0.5 };
const FRAME = { gap: 2.5, line: 2 }; // around the chosen node
// Lines where there is room for texts, and without texts.
const LINE = { opacity: 0.8, least: 1, byWeight: 6 };
const FAINT_LINE = { opacity: 0.5, width: 0.6 };
const TEXT_GAP = { beside: 7, above: 9 };
const HALO = 5; // width of the line that keeps a text clear of what is behind it
const WEIGHT_WIDTH = 20; // room for the weight on the left of a node

/** Room for the text on the right of a node, in CSS pixels. */
export const TEXT_WIDTH = 200;

/** What a node is called. */
export function label(node) {
  if (node.title) return node.title;
  if (node.kind === "others") return `… ${count(node.hidden)} more`;
  if (!isLeaf(node)) return node.kind;
  const [first, second] = node.fields;
  if (node.fields.length === 1) return `${first} ${number(node.mean[0], MEAN_DIGITS)}`;
  const rest = node.fields.length - 2;
  return `${first}, ${second}${rest ? ` + ${rest}` : ""}`;
}

const hasName = (node) => node.title || isLeaf(node) || node.kind === "others";

/** What a closed node hides. */
function below(node) {
  if (node.kind === "others") return "";
  return node.size > 1 ? `▸ ${count(node.size - 1)} nodes` : "";
}

/** One picture: `camera` says where nodes are on the canvas. */
export class Drawing {
  constructor(context, theme, camera, width, height, chosen) {
    Object.assign(this, { context, camera, width, height, chosen });
    this.pens = Object.fromEntries(COLOURS.map((name) => [name, theme[name]]));
    this.row = ROW * camera.zoom;
    this.hasText = this.row >= TEXT_ROW;
    this.radius = Math.min(RADIUS.most, Math.max(RADIUS.least, this.row / 2 - 1));
    context.font = font(this.row < LARGE_TEXT_ROW ? FONT_SIZE.small : FONT_SIZE.large);
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
    context.globalAlpha = this.hasText ? LINE.opacity : FAINT_LINE.opacity;
    for (const child of node.shown) {
      const y1 = camera.y(child);
      if (Math.max(y0, y1) < 0 || Math.min(y0, y1) > this.height) continue;
      context.lineWidth = this.#lineWidth(child);
      this.#edge(x0, y0, x1, y1);
    }
    context.globalAlpha = 1;
  }

  #lineWidth(child) {
    return this.hasText ? LINE.least + LINE.byWeight * (child.weight ?? 0) : FAINT_LINE.width;
  }

  #edge(x0, y0, x1, y1) {
    const { context } = this;
    const bend = (x1 - x0) / 2;
    context.beginPath();
    context.moveTo(x0, y0);
    if (this.hasText) context.bezierCurveTo(x0 + bend, y0, x0 + bend / 2, y1, x1, y1);
    else context.lineTo(x1, y1);
    context.stroke();
  }

  /** Draw a node and tell whether it is in view. */
  node(node) {
    const [x, y] = [this.camera.x(node), this.camera.y(node)];
    if (x < -TEXT_WIDTH || x > this.width + WEIGHT_WIDTH || y < -this.row || y > this.height + this.row) return false;
    if (node.kind !== "others") this.#shape(node, x, y);
    if (this.hasText) this.#texts(node, x, y);
    return true;
  }

  #shape(node, x, y) {
    const { context, pens, radius } = this;
    context.fillStyle = pens[PENS[node.kind] ?? "grey"];
    context.beginPath();
    if (isLeaf(node)) {
      const [width, height] = [radius * (node.fields.length > 1 ? LEAF.wide : LEAF.width), radius * LEAF.height];
      context.roundRect(x - width / 2, y - height / 2, width, height, radius * LEAF.corner);
    } else {
      circle(context, x, y, radius);
    }
    context.fill();
    if (node === this.chosen) this.#frame(x, y);
  }

  #frame(x, y) {
    const { context, pens } = this;
    const half = this.radius + FRAME.gap;
    context.strokeStyle = pens.text;
    context.lineWidth = FRAME.line;
    context.strokeRect(x - half, y - half, 2 * half, 2 * half);
  }

  #texts(node, x, y) {
    const { pens, radius } = this;
    if (node.kind !== "others") this.#sign(node, x, y);
    if (node.weight !== null) this.#text(percent(node.weight), "right", x - radius - TEXT_GAP.beside, y, pens.quiet);
    const name = hasName(node) ? label(node) : "";
    if (node.isOpen && node.children.length) {
      this.#text(name, "left", x - radius, y - radius - TEXT_GAP.above, pens.text);
    } else {
      const text = [name, below(node)].filter(Boolean).join("  ");
      this.#text(text, "left", x + radius + TEXT_GAP.beside, y, name ? pens.text : pens.quiet);
    }
  }

  /** What is written on a node. */
  #sign(node, x, y) {
    const { context, pens } = this;
    context.fillStyle = pens.card;
    context.textAlign = "center";
    context.fillText(SIGNS[node.kind] ?? (node.fields.length > 1 ? node.fields.length : ""), x, y + 0.5);
  }

  /** A text that keeps clear of the lines behind it. */
  #text(text, align, x, y, colour) {
    const { context } = this;
    if (!text) return;
    context.textAlign = align;
    context.lineWidth = HALO;
    context.strokeStyle = this.pens.card;
    context.strokeText(text, x, y + 0.5);
    context.fillStyle = colour;
    context.fillText(text, x, y + 0.5);
  }
}
