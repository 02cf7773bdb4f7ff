// The incidents as cards, the open ones on top: how severe, since when, and in which fields.

import { bars, contributions } from "./blame.js";
import { element } from "./dom.js";
import { count, duration, moment, number, odds, partitionName, several } from "./format.js";
import { Sparkline } from "./sparkline.js";

const CARDS = 6; // at first, and that many more each time
const KEPT = 500;
const FIELDS = 3;
const SEVERITY_DIGITS = 2;
// A partition that has been silent for longer leaves its incident open without news.
const STALE_SECONDS = 60;

export class Incidents {
  #latest = new Map(); // the newest event of each incident, by its id
  #cards = new Map(); // by incident, while nothing about it has changed
  #silence = new Map(); // seconds without a record, by partition
  #matches = () => true;
  #most = CARDS;

  /**
   * @param place the element of the cards
   * @param button what shows more of them
   */
  constructor(place, button) {
    Object.assign(this, { place, button });
    button.addEventListener("click", () => {
      this.#most += CARDS;
      this.#show();
    });
    this.clear();
  }

  clear() {
    this.#latest.clear();
    this.#cards.clear();
    this.#most = CARDS;
    this.#show();
  }

  /** Add what is new, and tell how the worker's partitions are; those of others are dropped. */
  add(events, partitions, now) {
    this.#silence = new Map(partitions.map((each) => [partitionName(each), now - (each.last_active ?? 0)]));
    for (const [id, event] of this.#latest) if (!this.#silence.has(partitionName(event))) this.#latest.delete(id);
    for (const event of events) {
      if (!isNews(event, this.#latest.get(event.incident))) continue;
      this.#latest.set(event.incident, event);
      this.#cards.delete(event.incident);
    }
    this.#show();
  }

  /** Show those alone that `matches`. */
  filter(matches) {
    this.#matches = matches;
    this.#most = CARDS;
    this.#show();
  }

  /** All incidents that are known, the most urgent first. */
  get known() {
    return [...this.#latest.values()].toSorted((a, b) => isOpen(b) - isOpen(a) || opened(b) - opened(a) || b.offset - a.offset);
  }

  get open() {
    return this.known.filter(isOpen);
  }

  #show() {
    const known = this.known;
    for (const { incident } of known.slice(KEPT)) this.#latest.delete(incident);
    const matching = known.filter((event) => this.#matches(event));
    const shown = matching.slice(0, this.#most);
    const cards = shown.map((event) => this.#card(event));
    const none = element("p", { class: "quiet" }, known.length ? "None that match." : "None so far.");
    replace(this.place, cards.length ? cards : [none]);
    this.button.hidden = matching.length <= this.#most;
    this.button.textContent = `Show more of ${count(matching.length)}`;
    this.#cards = new Map(shown.map(({ incident }, i) => [incident, cards[i]]));
  }

  #card(event) {
    const made = this.#cards.get(event.incident) ?? card(event);
    const silence = this.#silence.get(partitionName(event));
    made.querySelector(".state").textContent = stateOf(event, silence);
    made.classList.toggle("stale", isStale(event, silence));
    return made;
  }
}

/** Replace children where they differ: what somebody reads or has opened stays. */
function replace(place, children) {
  if (children.length === place.children.length && children.every((child, i) => child === place.children[i])) return;
  place.replaceChildren(...children);
}

export const isOpen = ({ state }) => state !== "closed";
/** Whether an event tells more than the known one; what closes with its model is else as it was. */
const isNews = (event, known) => !known || event.offset > known.offset || (event.offset === known.offset && isOpen(known) && !isOpen(event));
const isStale = (event, silence) => isOpen(event) && silence > STALE_SECONDS;
const opened = ({ opened_timestamp: at, noted }) => (at === null ? 1000 * noted : at);

function stateOf(event, silence) {
  if (isStale(event, silence)) return "open, but no records for a minute";
  const seconds = lasted(event);
  const length = seconds >= 1 ? `, unusual for ${duration(seconds)}` : "";
  return `${isOpen(event) ? "open" : "closed"}${length}`;
}

/** For how long records have been unusual, by their own timestamps. */
function lasted({ start_timestamp: from, latest_timestamp: to }) {
  return from === null || to === null ? null : (to - from) / 1000;
}

/** An incident as it stands after an event. */
export function card(event) {
  const since = event.start_timestamp === null ? `offset ${event.start_offset}` : moment(event.start_timestamp / 1000);
  const anomalies = several(event.anomalies, "anomaly", "anomalies");
  const size = event.entity ? anomalies : `${several(event.length, "record")}, ${anomalies} among them`;
  const entity = event.entity ? `${event.entity} · ` : "";
  const blamed = contributions(event);
  const made = element("article", { class: "anomaly incident", "data-state": isOpen(event) ? "open" : "closed", "data-severity": event.severity_name },
    element("h3", {}, element("span", { class: "severity" }, event.severity_name), " ", element("span", { class: "state" }, stateOf(event))),
    element("p", { class: "quiet" }, `since ${since} · ${entity}${partitionName(event)} · ${size}`));
  if (blamed.length) made.append(new Sparkline(event, blamed[0]).element);
  made.append(bars(blamed, FIELDS), more(event));
  return made;
}

function more(event) {
  const lines = [
    ["incident", link(event)],
    ["opened", place(event.opened_offset, event.opened_timestamp)],
    ["most unusual", `${place(event.peak_offset, event.peak_timestamp)}, ${odds(event.peak_p_value)}`],
    ["last unusual", place(event.latest_offset, event.latest_timestamp)],
    ["severity", `${number(event.severity, SEVERITY_DIGITS)} of 100`],
  ];
  const list = lines.flatMap(([name, text]) => [element("dt", {}, name), element("dd", {}, text)]);
  return element("details", {}, element("summary", {}, "details"), element("dl", {}, ...list));
}

/** The address of an incident's own page. */
function link(event) {
  const parts = [event.topic, event.partition, event.opened_offset];
  return element("a", { href: `incidents/${parts.map(encodeURIComponent).join("/")}` }, event.incident);
}

const place = (offset, timestamp) => `offset ${offset}${timestamp === null ? "" : `, ${moment(timestamp / 1000)}`}`;
