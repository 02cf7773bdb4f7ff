// The learned network on a canvas: open and close, move, zoom, choose. Only what is in view is drawn.

import { beforeNextFrame, colours, onThemeChange, sharp } from "./dom.js";
import { count, number, percent } from "./format.js";
import { COLUMN, follow, isLeaf, layout, openAlike, openAll, openFirst, replace, ROW, wayTo } from "./tree.js";

const RADIUS = 9;
const ZOOM = { least: 0.005, most: 3, text: 0.45 };
const SIGNS = { sum: "+", product: "×" };
const KEYS = ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Enter", " "];

export class NetworkView {
  /** @param onChoose called with the node that is chosen */
  constructor(canvas, onChoose) {
    this.canvas = canvas;
    this.onChoose = onChoose;
    this.root = null;
    this.zoom = 1;
    this.draw = beforeNextFrame(() => this.#draw());
    this.#listen();
    new ResizeObserver(this.draw).observe(canvas);
    onThemeChange(this.draw);
  }

  /** Show a network; with `isNewer` the same one, later: what is open and in view stays so. */
  show(root, isNewer) {
    const older = this.root;
    const way = isNewer && this.chosen ? wayTo(this.chosen) : null;
    this.root = root;
    this.chosen = null;
    if (isNewer && older && this.wasTouched) {
      openAlike(older, root);
      this.#arrange();
      if (way) this.choose(follow(root, way));
    } else {
      this.collapse();
    }
  }

  clear() {
    this.root = null;
    this.canvas.dataset.shown = 0;
    this.draw();
  }

  /** Open a few levels, as at first. */
  collapse() {
    this.wasTouched = false;
    openFirst(this.root);
    this.#arrange();
    this.fit();
  }

  /** Open everything. */
  expand() {
    this.wasTouched = true;
    openAll(this.root);
    this.#arrange();
    this.fit();
  }

  /** Show all that is open, where it can be read; else its beginning. */
  fit() {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    this.zoom = Math.min(1.15, width / (this.size.width + 40), height / (this.size.height + 30));
    this.left = 24 / this.zoom;
    this.top = Math.max(15, (height / this.zoom - this.size.height + ROW) / 2);
    this.draw();
  }

  /** Zoom around a point of the canvas, its middle unless told otherwise. */
  zoomBy(factor, x = this.canvas.clientWidth / 2, y = this.canvas.clientHeight / 2) {
    if (!this.root) return;
    const zoom = Math.min(ZOOM.most, Math.max(ZOOM.least, this.zoom * factor));
    this.left += x / zoom - x / this.zoom;
    this.top += y / zoom - y / this.zoom;
    this.zoom = zoom;
    this.wasTouched = true;
    this.draw();
  }

  choose(node) {
    this.chosen = node;
    this.canvas.dataset.chosen = label(node);
    this.onChoose(node);
    this.draw();
  }

  /** Open or close a node, which stays where it is on the screen. */
  toggle(node) {
    if (node.kind === "others") return this.#showAll(node.parent);
    if (node.load) return this.#load(node);
    if (!node.children.length) return;
    const before = node.y;
    node.isOpen = !node.isOpen;
    this.#arrange();
    this.top += before - node.y;
  }

  async #load(node) {
    const read = await node.load();
    if (!read || !this.root.children.includes(node)) return;
    replace(node, read);
    openFirst(read);
    this.choose(read);
    this.#arrange();
  }

  #showAll(node) {
    node.showsAll = true;
    this.#arrange();
  }

  #arrange() {
    this.size = layout(this.root);
    this.canvas.dataset.shown = this.size.shown.length;
    this.draw();
  }

  #listen() {
    const { canvas } = this;
    let grip = null;
    canvas.addEventListener("pointerdown", (event) => {
      grip = { x: event.offsetX, y: event.offsetY, moved: false };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!grip || !this.root) return;
      const [dx, dy] = [event.offsetX - grip.x, event.offsetY - grip.y];
      if (!grip.moved && Math.hypot(dx, dy) < 4) return;
      grip = { x: event.offsetX, y: event.offsetY, moved: true };
      this.#move(dx, dy);
    });
    canvas.addEventListener("pointerup", (event) => {
      if (grip && !grip.moved) this.#click(event.offsetX, event.offsetY);
      grip = null;
    });
    canvas.addEventListener("pointercancel", () => (grip = null));
    canvas.addEventListener("wheel", (event) => {
      if (document.activeElement !== canvas && !event.ctrlKey) return; // the page scrolls
      event.preventDefault();
      this.zoomBy(Math.exp(-event.deltaY / 400), event.offsetX, event.offsetY);
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => this.#key(event));
  }

  #move(dx, dy) {
    this.left += dx / this.zoom;
    this.top += dy / this.zoom;
    this.wasTouched = true;
    this.draw();
  }

  #click(x, y) {
    const node = this.nodeAt(x, y);
    if (!node) return;
    this.wasTouched = true;
    this.toggle(node);
    if (node.kind !== "others" && !node.load) this.choose(node);
  }

  /** The shown node at a point of the canvas; those on the same row lie side by side. */
  nodeAt(x, y) {
    const [atX, atY] = [x / this.zoom - this.left, y / this.zoom - this.top];
    const reach = Math.max(ROW / 2, 8 / this.zoom);
    const near = (node) => Math.abs(node.y - atY) <= reach && atX >= node.x - 2 * RADIUS && atX < node.x + COLUMN * 0.8;
    const found = this.root ? this.size.shown.filter(near) : [];
    return found.sort((a, b) => Math.abs(a.y - atY) - Math.abs(b.y - atY))[0];
  }

  #key(event) {
    if (!this.root || !KEYS.includes(event.key)) return;
    event.preventDefault();
    this.wasTouched = true;
    const at = this.chosen ?? this.root;
    if (event.key === "Enter" || event.key === " ") this.toggle(at);
    const next = this.#next(at, event.key);
    if (!next || next.kind === "others") return;
    this.choose(next);
    this.#reveal(next);
  }

  #next(at, key) {
    if (key === "ArrowLeft") return at.parent;
    if (key === "ArrowRight") {
      if (!at.isOpen) this.toggle(at);
      return at.shown?.[0];
    }
    const siblings = at.parent?.shown ?? [at];
    const step = { ArrowUp: -1, ArrowDown: 1 }[key] ?? 0;
    return siblings[siblings.indexOf(at) + step] ?? at;
  }

  #reveal(node) {
    const { clientWidth: width, clientHeight: height } = this.canvas;
    const [x, y] = [(node.x + this.left) * this.zoom, (node.y + this.top) * this.zoom];
    const [dx, dy] = [Math.min(Math.max(x, 30), width - 140) - x, Math.min(Math.max(y, 20), height - 20) - y];
    if (dx || dy) this.#move(dx, dy);
  }

  #draw() {
    const { context, width, height } = sharp(this.canvas);
    if (!this.root) return;
    context.scale(this.zoom, this.zoom);
    context.translate(this.left, this.top);
    const view = {
      x0: -this.left - COLUMN, x1: width / this.zoom - this.left + RADIUS,
      y0: -this.top - ROW, y1: height / this.zoom - this.top + ROW,
    };
    const theme = colours();
    const pens = Object.fromEntries(["line", "grey", "blue", "violet", "teal", "red", "text", "quiet", "card", "grid", "amber"].map((name) => [name, theme[name]]));
    const drawing = new Drawing(context, pens, this.zoom, view, this.chosen);
    for (const node of this.size.shown) drawing.edges(node);
    this.canvas.dataset.drawn = this.size.shown.filter((node) => drawing.node(node)).length;
  }
}

/** What a node is called. */
export function label(node) {
  if (node.kind === "others") return `${node.hidden} more`;
  if (node.kind === "worker") return node.title;
  if (!isLeaf(node)) return node.title ?? { sum: "sum", product: "product" }[node.kind];
  const [first, second] = node.fields;
  const rest = node.fields.length > 2 ? ` + ${node.fields.length - 2}` : "";
  return node.fields.length === 1 ? `${first} ${number(node.mean[0], 3)}` : `${first}, ${second}${rest}`;
}

class Drawing {
  constructor(context, pens, zoom, view, chosen) {
    Object.assign(this, { context, pens, zoom, view, chosen, hasText: zoom >= ZOOM.text });
    context.font = "12px system-ui, 'DejaVu Sans', sans-serif";
    context.textBaseline = "middle";
  }

  edges(node) {
    const { context, view } = this;
    if (!node.shown.length || node.x > view.x1 || node.x + 2 * COLUMN < view.x0) return;
    context.strokeStyle = this.pens.grey;
    for (const child of node.shown) {
      const [top, bottom] = child.y < node.y ? [child.y, node.y] : [node.y, child.y];
      if (bottom < view.y0 || top > view.y1) continue;
      const middle = (node.x + child.x) / 2 - 20;
      context.globalAlpha = 0.75;
      context.lineWidth = Math.max(child.weight === null ? 1 : 0.6 + 6 * child.weight, 0.7 / this.zoom);
      context.beginPath();
      context.moveTo(node.x + RADIUS, node.y);
      if (this.hasText) context.bezierCurveTo(middle + 20, node.y, middle, child.y, child.x - RADIUS, child.y);
      else context.lineTo(child.x - RADIUS, child.y);
      context.stroke();
    }
    context.globalAlpha = 1;
  }

  /** Draw a node; tell whether it is in view. */
  node(node) {
    const { view } = this;
    if (node.x < view.x0 || node.x > view.x1 || node.y < view.y0 || node.y > view.y1) return false;
    const colour = this.#colour(node);
    if (!this.hasText) this.#dot(node, colour);
    else if (node.kind === "others") this.#text(node, `… ${label(node)}`, this.pens.quiet);
    else this.#full(node, colour);
    return true;
  }

  #colour({ kind }) {
    return this.pens[{ sum: "blue", product: "violet", leaf: "teal", multivariate_leaf: "amber" }[kind] ?? "grey"];
  }

  #dot(node, colour) {
    const size = Math.max(2 * RADIUS, 2 / this.zoom);
    this.context.fillStyle = node === this.chosen ? this.pens.red : colour;
    this.context.fillRect(node.x - size / 2, node.y - size / 2, size, Math.min(size, Math.max(ROW - 4, 1 / this.zoom)));
  }

  #full(node, colour) {
    const { context, pens } = this;
    const hidden = node.size > 1 && !node.isOpen;
    context.beginPath();
    if (isLeaf(node)) context.roundRect(node.x - RADIUS, node.y - 7, 2 * RADIUS, 14, 4);
    else context.arc(node.x, node.y, RADIUS, 0, 7);
    context.fillStyle = colour;
    context.fill();
    if (node === this.chosen) {
      context.strokeStyle = pens.text;
      context.lineWidth = 2;
      context.stroke();
    }
    context.fillStyle = pens.card;
    context.textAlign = "center";
    const sign = SIGNS[node.kind] ?? (node.fields.length > 1 ? String(node.fields.length) : "");
    context.fillText(sign, node.x, node.y + 0.5);
    const texts = [isLeaf(node) || node.title ? label(node) : "", hidden ? `▸ ${count(node.size - 1)} nodes` : ""];
    if (!node.isOpen || node.title) this.#text(node, texts.filter(Boolean).join("  "), hidden && !node.title ? pens.quiet : pens.text);
    if (node.weight !== null && node.weight !== undefined) this.#weight(node);
  }

  #text(node, text, colour) {
    const { context } = this;
    if (!text) return;
    context.textAlign = "left";
    context.lineWidth = 3;
    context.strokeStyle = this.pens.card;
    context.strokeText(text, node.x + RADIUS + 6, node.y + 0.5);
    context.fillStyle = colour;
    context.fillText(text, node.x + RADIUS + 6, node.y + 0.5);
  }

  #weight(node) {
    const { context } = this;
    context.textAlign = "right";
    context.lineWidth = 3;
    context.strokeStyle = this.pens.card;
    context.strokeText(percent(node.weight), node.x - RADIUS - 5, node.y + 0.5);
    context.fillStyle = this.pens.quiet;
    context.fillText(percent(node.weight), node.x - RADIUS - 5, node.y + 0.5);
  }
}
