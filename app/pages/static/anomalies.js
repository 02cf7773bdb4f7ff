// The last anomalies as cards: when, how unlikely, and which fields are to blame.

import { element } from "./dom.js";
import { nats, number, partitionName, time } from "./format.js";

const CARDS = 6;
const FIELDS = 5;
const P_DIGITS = 2;
const SPREAD_DIGITS = 2;
// The scale of the bars where no field is to blame.
const LEAST_NATS = 1e-9;

export class Anomalies {
  constructor(place) {
    this.place = place;
    this.clear();
  }

  clear() {
    this.shown = [];
    this.place.replaceChildren(element("p", { class: "quiet" }, "None in the last minutes."));
  }

  /** Add anomalies, oldest first; each becomes a card at the top. */
  add(anomalies) {
    // Answers may overlap, as one is asked for while another is under way.
    const fresh = anomalies.slice(-CARDS).filter((anomaly) => !this.shown.includes(identity(anomaly)));
    if (!fresh.length) return;
    if (!this.shown.length) this.place.replaceChildren();
    for (const anomaly of fresh) this.place.prepend(card(anomaly));
    while (this.place.children.length > CARDS) this.place.lastChild.remove();
    this.shown = [...this.shown, ...fresh.map(identity)].slice(-CARDS);
  }
}

const identity = (anomaly) => `${partitionName(anomaly)}/${anomaly.offset}`;

function card(anomaly) {
  const blamed = contributions(anomaly);
  const where = `${partitionName(anomaly)} offset ${anomaly.offset}`;
  const key = anomaly.key === null ? "" : ` · key ${anomaly.key}`;
  const score = `p = ${number(anomaly.p_value, P_DIGITS)} · log-likelihood ${nats(anomaly.log_likelihood)} nats`;
  const made = element("article", { class: "anomaly" },
    element("h3", {}, where + key),
    element("p", { class: "quiet" }, `${time(when(anomaly))} · ${score}`),
    bars(blamed.slice(0, FIELDS)));
  if (anomaly.record) made.append(whole(anomaly.record));
  return made;
}

const when = (anomaly) => (anomaly.timestamp === null ? anomaly.noted : anomaly.timestamp / 1000);

/**
 * The fields, the most to blame first: `name`, `nats` beyond the usual, and what was expected
 * where the worker says so.
 */
export function contributions({ contributions: given, record }) {
  if (Array.isArray(given)) {
    return given.map((entry) => ({ ...entry, name: entry.field, nats: entry.nats - (entry.usual ?? 0) }));
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

export function bars(blamed) {
  const high = Math.max(LEAST_NATS, ...blamed.map((entry) => entry.nats));
  const low = Math.min(0, ...blamed.map((entry) => entry.nats));
  return element("ol", { "aria-label": "Fields to blame, in nats" }, ...blamed.map((entry) => row(entry, low, high)));
}

function row(entry, low, high) {
  const bar = element("span", { class: "bar" });
  const [from, to] = [Math.min(0, entry.nats), Math.max(0, entry.nats)];
  bar.style.left = `${(100 * (from - low)) / (high - low)}%`;
  bar.style.width = `${(100 * (to - from)) / (high - low)}%`;
  const made = element("li", { title: entry.name },
    element("span", { class: "name" }, entry.name),
    element("span", { class: "track" }, bar),
    element("span", { class: "nats" }, nats(entry.nats)));
  const said = sentence(entry);
  if (said) made.append(element("span", { class: "value" }, said));
  return made;
}

function sentence({ value, expected, deviation, extrapolated }) {
  if (typeof value === "boolean") return `is ${value}`;
  if (typeof value !== "number") return "";
  if (typeof expected !== "number") return `is ${number(value)}`;
  const spread = typeof deviation === "number" ? ` ± ${number(deviation, SPREAD_DIGITS)}` : "";
  const beyond = extrapolated ? ", outside the values seen so far" : "";
  return `is ${number(value)}, the other fields suggest ${number(expected)}${spread}${beyond}`;
}

function whole(record) {
  const made = element("details", {}, element("summary", {}, "the record"));
  made.append(element("pre", {}, JSON.stringify(record, null, 1)));
  return made;
}
