// The learned network on a canvas: open and close, move, zoom, choose. Only what is in view is drawn.

import { beforeNextFrame, sharp } from "./canvas.js";
import { colours, onThemeChange } from "./dom.js";
import { Drawing, label, TEXT_WIDTH } from "./drawing.js";
import { follow, layout, openAlike, openAll, openFirst, replace, ROW, wayTo } from "./tree.js";

const COLUMN = { least: 90, most: 170 };
const MARGIN = 24;
// A pointer that moves less while it is down clicks, it does not drag.
const DRAG_PIXELS = 4;
// The zoom changes by a factor of e.
const WHEEL_PIXELS = 400;
// How far from a node a click may be: above and below, left, and before the next column.
const REACH = { row: 8, left: 20, column: 40 };
// Distances from the canvas's edges of a node that keys have chosen; its text is on the right.
const REVEAL = { left: 30, right: 140 };
const ZOOM = { least: 0.002, readable: 0.54, usual: 1, most: 2 };
const KEYS = ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Enter", " "];

/** By how much a value must move to lie between two others. */
const inside = (value, low, high) => Math.min(Math.max(value, low), high) - value;

/** Where nodes are on the canvas, in CSS pixels. */
class Camera {
  left = 0;
  top = 0;
  zoom = 1;
  column = COLUMN.most;
  x = (node) => this.left + node.depth * this.column;
  y = (node) => this.top + node.row * ROW * this.zoom;
}

export class NetworkView {
  /** @param onChoose called with the node that is chosen */
  constructor(canvas, onChoose) {
    this.canvas = canvas;
    this.onChoose = onChoose;
    this.root = null;
    this.wasTouched = false;
    this.camera = new Camera();
    this.draw = beforeNextFrame(() => this.#draw());
    this.#listen();
    new ResizeObserver(this.draw).observe(canvas);
    onThemeChange(this.draw);
  }

  /** Show a network; with `isNewer` the same one, later: what is open and in view stays so. */
  show(root, isNewer) {
    const older = this.root;
    const way = this.chosen && isNewer ? wayTo(this.chosen) : null;
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
    this.root = this.chosen = null;
    this.canvas.dataset.shown = 0;
    this.draw();
  }

  /** Open a few levels, as at first. */
  collapse() {
    this.wasTouched = false;
    openFirst(this.root);
    this.#arrange();
    this.#fit(ZOOM.readable);
  }

  /** Open everything. */
  expand() {
    this.wasTouched = true;
    openAll(this.root);
    this.#arrange();
    this.fit();
  }

  /** Show all that is open. */
  fit() {
    this.#fit(ZOOM.least);
  }

  #fit(least) {
    const { camera, canvas, size } = this;
    const whole = (canvas.clientHeight - 2 * ROW) / (ROW * Math.max(1, size.rows - 1));
    camera.zoom = Math.min(ZOOM.usual, Math.max(least, whole));
    const isReadable = camera.zoom >= ZOOM.readable;
    const column = (canvas.clientWidth - MARGIN - (isReadable ? TEXT_WIDTH : MARGIN)) / size.depth;
    camera.column = Math.min(COLUMN.most, Math.max(isReadable ? COLUMN.least : 0, column));
    camera.left = MARGIN;
    camera.top = whole < least ? ROW : (canvas.clientHeight - (size.rows - 1) * ROW * camera.zoom) / 2;
    this.draw();
  }

  /** Spread the rows, around a height of the canvas. */
  zoomBy(factor, y = this.canvas.clientHeight / 2) {
    if (!this.root) return;
    const { camera } = this;
    const zoom = Math.min(ZOOM.most, Math.max(ZOOM.least, camera.zoom * factor));
    camera.top = y - ((y - camera.top) * zoom) / camera.zoom;
    camera.zoom = zoom;
    if (zoom >= ZOOM.readable) camera.column = Math.max(COLUMN.least, camera.column);
    this.wasTouched = true;
    this.draw();
  }

  choose(node) {
    this.chosen = node;
    this.canvas.dataset.chosen = label(node);
    this.onChoose(node);
    this.draw();
  }

  /** Open or close a node, which stays where it is on the canvas. */
  toggle(node) {
    if (node.load) return this.#load(node);
    const before = this.camera.y(node);
    if (node.kind === "others") node.parent.showsAll = true;
    else if (node.children.length) node.isOpen = !node.isOpen;
    this.#arrange();
    if (node.kind !== "others") this.camera.top += before - this.camera.y(node);
  }

  async #load(node) {
    const read = await node.load();
    if (!read || !this.root?.children.includes(node)) return;
    replace(node, read);
    openFirst(read);
    this.#arrange();
    this.choose(read);
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
      if (!grip.moved && Math.hypot(dx, dy) < DRAG_PIXELS) return;
      grip = { x: event.offsetX, y: event.offsetY, moved: true };
      this.#move(dx, dy);
    });
    canvas.addEventListener("pointerup", (event) => {
      if (grip && !grip.moved) this.#click(event.offsetX, event.offsetY);
      grip = null;
    });
    canvas.addEventListener("pointercancel", () => {
      grip = null;
    });
    canvas.addEventListener("wheel", (event) => this.#wheel(event), { passive: false });
    canvas.addEventListener("keydown", (event) => this.#key(event));
  }

  #wheel(event) {
    if (document.activeElement !== this.canvas && !event.ctrlKey) return; // the page scrolls
    event.preventDefault();
    this.zoomBy(Math.exp(-event.deltaY / WHEEL_PIXELS), event.offsetY);
  }

  #move(dx, dy) {
    this.camera.left += dx;
    this.camera.top += dy;
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

  /** The shown node next to a point of the canvas, with its text. */
  nodeAt(x, y) {
    const { camera } = this;
    const reach = Math.max(REACH.row, (ROW * camera.zoom) / 2);
    const away = (node) => Math.abs(camera.y(node) - y);
    const isNear = (node) => away(node) <= reach && x > camera.x(node) - REACH.left && x < camera.x(node) + camera.column - REACH.column;
    return this.root ? this.size.shown.filter(isNear).toSorted((a, b) => away(a) - away(b))[0] : undefined;
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
    const { camera, canvas } = this;
    const dx = inside(camera.x(node), REVEAL.left, canvas.clientWidth - REVEAL.right);
    const dy = inside(camera.y(node), ROW, canvas.clientHeight - ROW);
    if (dx || dy) this.#move(dx, dy);
  }

  #draw() {
    const { context, width, height } = sharp(this.canvas);
    const theme = colours();
    context.fillStyle = theme.card;
    context.fillRect(0, 0, width, height);
    if (!this.root) return;
    const drawing = new Drawing(context, theme, this.camera, width, height, this.chosen);
    for (const node of this.size.shown) drawing.edges(node);
    this.canvas.dataset.drawn = this.size.shown.filter((node) => drawing.node(node)).length;
  }
}
