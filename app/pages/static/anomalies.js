// The last anomalies as cards: when, how unlikely, and which fields are to blame.

import { bars, contributions } from "./blame.js";
import { element } from "./dom.js";
import { moment, odds, partitionName } from "./format.js";

const CARDS = 6;
const KEPT = 50;
const FIELDS = 3;

export class Anomalies {
  #kept = []; // the newest first
  #matches = () => true;

  constructor(place) {
    this.place = place;
    this.clear();
  }

  clear() {
    this.#kept = [];
    this.#show();
  }

  /** Add anomalies, oldest first. */
  add(anomalies) {
    // Answers may overlap, as one is asked for while another is under way.
    const known = new Set(this.#kept.map(identity));
    const fresh = anomalies.filter((anomaly) => !known.has(identity(anomaly)));
    if (!fresh.length) return;
    this.#kept = [...fresh.toReversed(), ...this.#kept].slice(0, KEPT);
    this.#show();
  }

  /** Show those alone for which `matches` their fields' names. */
  filter(matches) {
    this.#matches = matches;
    this.#show();
  }

  #show() {
    const shown = this.#kept.filter((anomaly) => this.#matches(anomaly)).slice(0, CARDS);
    const none = this.#kept.length ? "None that match." : "None in the last minutes.";
    this.place.replaceChildren(...(shown.length ? shown.map(card) : [element("p", { class: "quiet" }, none)]));
  }
}

const identity = (anomaly) => `${partitionName(anomaly)}/${anomaly.offset}`;

function card(anomaly) {
  const where = `${partitionName(anomaly)} offset ${anomaly.offset}`;
  const key = anomaly.key === null ? "" : ` · key ${anomaly.key}`;
  const made = element("article", { class: "anomaly" },
    element("h3", {}, where + key),
    element("p", { class: "quiet" }, `${moment(when(anomaly))} · ${odds(anomaly.p_value)}`),
    bars(contributions(anomaly), FIELDS));
  if (anomaly.record) made.append(whole(anomaly.record));
  return made;
}

const when = (anomaly) => (anomaly.timestamp === null ? anomaly.noted : anomaly.timestamp / 1000);

function whole(record) {
  const made = element("details", {}, element("summary", {}, "the record"));
  made.append(element("pre", {}, JSON.stringify(record, null, 1)));
  return made;
}
