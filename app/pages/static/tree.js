// A network as a tree that is partly open: what is shown of it, and where.

/** Height of a row in CSS pixels, before any zoom. */
export const ROW = 26;
// Of more children the heaviest are shown, until somebody asks for the others.
const MOST_CHILDREN = 24;
const FIRST_NODES = 40;

/** A closed node without parent and children, but for what is `known` of it. */
const newNode = (known) => ({ fields: [], children: [], parent: null, weight: null, share: 1, size: 1, isOpen: false, showsAll: false, ...known });

/** Nodes of a partition from the worker's columns, parents before children. */
export function readNetwork(columns) {
  const nodes = columns.kind.map((_, i) => readNode(columns, i));
  for (const [i, parent] of columns.parent.entries()) {
    if (parent < 0) continue;
    nodes[i].parent = nodes[parent];
    nodes[parent].children.push(nodes[i]);
  }
  for (const node of nodes.toReversed()) {
    if (node.parent) node.parent.size += node.size;
    if (node.kind === "sum") node.children.sort((a, b) => b.weight - a.weight);
  }
  for (const node of nodes) node.share = (node.parent?.share ?? 1) * (node.weight ?? 1);
  return nodes[0];
}

function readNode(columns, i) {
  return newNode({
    kind: columns.kind[i],
    weight: columns.weight[i],
    count: columns.count[i],
    fields: columns.scope[i].map((field) => columns.fields[field]),
    mean: columns.mean[i],
    deviation: columns.deviation[i],
    correlation: columns.correlation[i],
  });
}

/** A network of `size` nodes that `load` reads. */
export const unread = (title, size, load) => newNode({ kind: "sum", title, size, load });

/** Put what was read in the place of a node. */
export function replace(node, read) {
  read.parent = node.parent;
  node.parent.children[node.parent.children.indexOf(node)] = read;
}

/** Join partitions below one node. */
export function forest(roots, title) {
  const size = 1 + roots.reduce((sum, root) => sum + root.size, 0);
  const top = newNode({ kind: "worker", title, size, children: roots, isOpen: true, showsAll: true });
  for (const root of roots) root.parent = top;
  return top;
}

export const isLeaf = (node) => node.kind === "leaf" || node.kind === "multivariate_leaf";

/** All nodes below and with this one, parents first. */
export function* walk(node) {
  yield node;
  for (const child of node.children) yield* walk(child);
}

/** Open nodes level by level, the heaviest first, while few enough are shown. */
export function openFirst(root) {
  for (const node of walk(root)) Object.assign(node, { isOpen: node.kind === "worker", showsAll: node.kind === "worker" });
  let shown = 1 + (root.isOpen ? root.children.length : 0);
  const waiting = [root];
  while (waiting.length) {
    const node = waiting.shift();
    const more = Math.min(node.children.length, MOST_CHILDREN);
    if (!node.isOpen && (!more || shown + more > FIRST_NODES)) continue;
    if (!node.isOpen) shown += more;
    node.isOpen = true;
    waiting.push(...shownChildren(node).filter((child) => child.children.length));
  }
}

/** Open everything. */
export function openAll(root) {
  for (const node of walk(root)) Object.assign(node, { isOpen: true, showsAll: true });
}

/** The children that are drawn: of many the heaviest, and one that stands for the others. */
export function shownChildren(node) {
  if (!node.isOpen) return [];
  if (node.showsAll || node.children.length <= MOST_CHILDREN + 1) return node.children;
  return [...node.children.slice(0, MOST_CHILDREN), theOthers(node)];
}

function theOthers(parent) {
  const hidden = parent.children.slice(MOST_CHILDREN);
  const sum = (of) => hidden.reduce((total, child) => total + of(child), 0);
  const weight = parent.kind === "sum" ? sum((child) => child.weight) : null;
  return newNode({ kind: "others", parent, hidden: hidden.length, size: sum((child) => child.size), weight });
}

/** The way to a node by positions among children, to find it again in a newer network. */
export function wayTo(node) {
  const way = [];
  for (let at = node; at.parent; at = at.parent) way.unshift(at.parent.children.indexOf(at));
  return way;
}

/** The node at the end of a way, or as far as it goes. */
export const follow = (root, way) => way.reduce((node, place) => node.children[place] ?? node, root);

/** Open in a newer network what was open in an older one. */
export function openAlike(older, newer) {
  Object.assign(newer, { isOpen: older.isOpen, showsAll: older.showsAll });
  if (!older.isOpen) return;
  for (const [i, child] of older.children.entries()) if (newer.children[i]) openAlike(child, newer.children[i]);
}

/** Place what is shown: a column for each depth, a parent in the middle of its children's rows. */
export function layout(root) {
  const shown = [];
  let [rows, deepest] = [0, 0];
  const place = (node, depth) => {
    shown.push(node);
    deepest = Math.max(deepest, depth);
    node.depth = depth;
    node.shown = shownChildren(node);
    for (const child of node.shown) place(child, depth + 1);
    node.row = node.shown.length ? (node.shown[0].row + node.shown.at(-1).row) / 2 : rows++;
  };
  place(root, 0);
  return { shown, rows, depth: Math.max(1, deepest) };
}
