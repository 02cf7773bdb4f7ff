// The fields to blame for an anomaly or an incident, as bars with what was expected.

import { element } from "./dom.js";
import { chance, number } from "./format.js";

const SPREAD_DIGITS = 2;
// The scale of the bars where no field is to blame.
const LEAST_NATS = 1e-9;

/**
 * The fields, the most to blame first: `name`, `nats` beyond the usual, its `own` nats, and what was expected
 * where the worker says so.
 */
export function contributions({ contributions: given, record }) {
  if (Array.isArray(given)) {
    return given.map((entry) => ({ ...entry, name: String(entry.field), own: entry.nats, nats: entry.nats - (entry.usual ?? 0) }));
  }
  const named = Object.entries(given ?? {}).filter(([, size]) => size !== null);
  return named.map(([name, size]) => ({ name, nats: size, value: valueAt(record, name) })).toSorted((a, b) => b.nats - a.nats);
}

/** The value at a dotted path; a field's own name may hold dots. */
function valueAt(record, path) {
  if (record === null || typeof record !== "object") return undefined;
  if (Object.hasOwn(record, path)) return record[path];
  for (let dot = path.indexOf("."); dot > 0; dot = path.indexOf(".", dot + 1)) {
    const head = path.slice(0, dot);
    const found = Object.hasOwn(record, head) ? valueAt(record[head], path.slice(dot + 1)) : undefined;
    if (found !== undefined) return found;
  }
  return undefined;
}

/** The first fields as bars, and how many more there are. */
export function bars(blamed, most) {
  const [first, others] = [blamed.slice(0, most), blamed.length - most];
  const high = Math.max(LEAST_NATS, ...first.map((entry) => entry.nats));
  const low = Math.min(0, ...first.map((entry) => entry.nats));
  const list = element("ol", { "aria-label": "Fields to blame, the most unusual first" }, ...first.map((entry) => row(entry, low, high)));
  if (others > 0) list.append(element("li", { class: "value" }, `and ${others} more`));
  return list;
}

function row(entry, low, high) {
  const bar = element("span", { class: "bar" });
  const [from, to] = [Math.min(0, entry.nats), Math.max(0, entry.nats)];
  bar.style.left = `${(100 * (from - low)) / (high - low)}%`;
  bar.style.width = `${(100 * (to - from)) / (high - low)}%`;
  const made = element("li", { title: entry.name },
    element("span", { class: "name" }, entry.name),
    element("span", { class: "track" }, bar));
  const said = sentence(entry);
  if (said) made.append(element("span", { class: "value" }, said));
  return made;
}

function sentence({ value, expected, deviation, extrapolated, category, own, expected_category: suggested, usual }) {
  if (typeof category === "string") return `is ${category}${likely(own)}, the other fields suggest ${suggested ?? "another"}${likely(usual)}`;
  if (typeof value === "boolean") return `is ${value}`;
  if (typeof value !== "number") return "";
  if (typeof expected !== "number") return `is ${number(value)}`;
  const spread = typeof deviation === "number" ? ` ± ${number(deviation, SPREAD_DIGITS)}` : "";
  const beyond = extrapolated ? ", outside the values seen so far" : "";
  return `is ${number(value)}, expected ${number(expected)}${spread}${beyond}`;
}

/** The probability of a category, where its nats are known. */
const likely = (nats) => (typeof nats === "number" ? ` (${chance(nats)})` : "");
