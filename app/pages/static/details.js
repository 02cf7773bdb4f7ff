// What is known of the chosen node, in words and numbers.

import { colours, element } from "./dom.js";
import { count, number, percent } from "./format.js";
import { label } from "./drawing.js";

const KINDS = {
  worker: ["This worker", "Each of its partitions has a network of its own."],
  sum: ["Sum node", "A mixture: its density is the weighted sum of its children's, which describe the same fields."],
  product: ["Product node", "Independent parts: its density is the product of its children's, each with its own fields."],
  leaf: ["Leaf", "A Gaussian of one field."],
  multivariate_leaf: ["Multivariate leaf", "A Gaussian of several fields with their correlations."],
};
const MOST_ROWS = 60;
const DEVIATION_DIGITS = 3;
const MATRIX_PIXELS = 200;
const PERCENT = 100; // correlations come as whole percents

/** Describe a node in `place`; without one, say how to get there. */
export function describe(place, node) {
  place.replaceChildren(...(node ? parts(node) : [element("p", { class: "quiet" }, "Choose a node to see its fields and parameters.")]));
}

function* parts(node) {
  const [title, words] = KINDS[node.kind];
  yield element("h3", {}, node.title ? `${node.title} · ${title.toLowerCase()}` : title);
  yield element("p", { class: "quiet" }, words);
  yield facts(node);
  if (node.mean) yield* gaussian(node);
  else if (node.children.length) yield* children(node);
}

function facts(node) {
  const list = element("dl");
  const add = (name, text) => list.append(element("dt", {}, name), element("dd", {}, text));
  if (node.weight !== null) add("weight", percent(node.weight));
  if (node.share < 1) add("share of all records", percent(node.share));
  if (node.count !== undefined) add("records seen", count(node.count));
  if (node.fields.length > 1) add("fields", count(node.fields.length));
  if (node.size > 1) add("nodes, with all below it", count(node.size));
  return list;
}

function* gaussian(node) {
  const rows = node.fields.slice(0, MOST_ROWS).map((field, i) => [field, number(node.mean[i]), number(node.deviation[i], DEVIATION_DIGITS)]);
  yield table(["field", "mean", "± sd"], rows);
  if (node.fields.length <= 1 || !node.correlation) return;
  yield element("h4", {}, "Correlations");
  yield matrix(node);
  yield element("p", { class: "quiet" }, "Rows and columns in the order of the table. Blue is positive, red negative, and pale weak.");
}

function* children(node) {
  const shown = node.children.slice(0, MOST_ROWS);
  const isSum = node.kind === "sum";
  const rows = shown.map((child) => [name(child), isSum ? percent(child.weight) : count(child.fields.length)]);
  yield table(["child", isSum ? "weight" : "fields"], rows);
  if (node.children.length > MOST_ROWS) yield element("p", { class: "quiet" }, `and ${node.children.length - MOST_ROWS} more`);
  if (!isSum && node.fields.length) yield element("p", { class: "quiet" }, `Fields: ${node.fields.slice(0, MOST_ROWS).join(", ")}`);
}

const name = (child) => (child.title || child.mean ? label(child) : `${label(child)} of ${count(child.size)} nodes`);

function table(heads, rows) {
  const head = element("thead", {}, line("th", heads, { scope: "col" }));
  return element("table", {}, head, element("tbody", {}, ...rows.map((texts) => line("td", texts))));
}

const line = (cell, texts, attributes) => element("tr", {}, ...texts.map((text) => element(cell, attributes, text)));

/** The correlation matrix as squares. */
function matrix({ fields, correlation }) {
  const size = fields.length;
  const cell = Math.max(1, Math.floor(MATRIX_PIXELS / size));
  const canvas = element("canvas", { class: "matrix", width: cell * size, height: cell * size, role: "img", "aria-label": "correlation matrix" });
  const [context, theme] = [canvas.getContext("2d"), colours()];
  const paint = (row, column, value) => {
    context.globalAlpha = Math.abs(value);
    context.fillStyle = value < 0 ? theme.red : theme.blue;
    context.fillRect(column * cell, row * cell, cell, cell);
  };
  let place = 0;
  for (let row = 0; row < size; row++) {
    paint(row, row, 1);
    for (let column = row + 1; column < size; column++, place++) {
      paint(row, column, correlation[place] / PERCENT);
      paint(column, row, correlation[place] / PERCENT);
    }
  }
  return canvas;
}
