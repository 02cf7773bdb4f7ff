// The last incidents as cards, the open ones on top: how severe, since when, and in which fields.

import { bars, contributions } from "./anomalies.js";
import { element } from "./dom.js";
import { count, number, partitionName, time } from "./format.js";

const CARDS = 6;
const FIELDS = 3;
const P_DIGITS = 2;

export class Incidents {
  #latest = new Map(); // the newest event of each incident, by its id

  constructor(place) {
    this.place = place;
    this.clear();
  }

  clear() {
    this.#latest.clear();
    this.#show();
  }

  /** Add events, oldest first; those of other kinds are left out. */
  add(events) {
    const fresh = events.filter(({ event, incident, offset }) => event === "incident" && !(this.#latest.get(incident)?.offset >= offset));
    if (!fresh.length) return;
    for (const event of fresh) {
      this.#latest.delete(event.incident); // so that the newest is last
      this.#latest.set(event.incident, event);
    }
    this.#show();
  }

  #show() {
    const newestFirst = [...this.#latest.values()].toReversed();
    const shown = newestFirst.toSorted((a, b) => isOpen(b) - isOpen(a)).slice(0, CARDS);
    for (const id of this.#latest.keys()) if (!shown.some(({ incident }) => incident === id)) this.#latest.delete(id);
    const none = element("p", { class: "quiet" }, "None in the last minutes.");
    this.place.replaceChildren(...(shown.length ? shown.map(card) : [none]));
  }
}

const isOpen = ({ state }) => Number(state !== "closed");

function card(event) {
  const title = `${partitionName(event)} offset ${event.opened_offset}`;
  const state = isOpen(event) ? "open" : "closed";
  const since = event.start_timestamp === null ? `offset ${event.start_offset}` : time(event.start_timestamp / 1000);
  const size = `${count(event.length)} records, ${count(event.anomalies)} anomalies`;
  return element("article", { class: "anomaly incident", "data-state": state, "data-severity": event.severity_name },
    element("h3", {}, `${event.severity_name} (${number(event.severity)}), ${state} · ${title}`),
    element("p", { class: "quiet" }, `since ${since} · ${size} · lowest p = ${number(event.peak_p_value, P_DIGITS)}`),
    bars(contributions(event).slice(0, FIELDS)));
}
