// What the worker did in the last minutes, one row a second.

import { duration, several } from "./format.js";

const SECONDS = 300;
const LEAST_SECONDS = 60;
// The figures of now are those of so many seconds.
const NOW_SECONDS = 10;
// Records that are read sooner are no backlog.
const BACKLOG_SECONDS = 5;

export class History {
  #rows = new Map(); // by seconds since 1970
  /** Up to when it is known, in seconds since 1970. */
  until = 0;

  /**
   * Add an answer of the worker; of its columns each second makes a row.
   * @param concerns whether an incident is of the field that is plotted
   */
  add({ since, until, seconds, events }, incidents, concerns) {
    const columns = Object.entries(seconds);
    for (let i = 0; i < until - since; i++) {
      this.#rows.set(since + i, Object.fromEntries(columns.map(([name, values]) => [name, values[i]])));
    }
    this.until = until;
    for (const second of this.#rows.keys()) if (second < until - SECONDS) this.#rows.delete(second);
    for (const { noted } of events) this.#mark("drift", Math.floor(noted), Math.floor(noted));
    for (const row of this.#rows.values()) row.ofField = false; // there may be another field
    for (const incident of incidents) this.#markIncident(incident, concerns(incident) ? ["incident", "ofField"] : ["incident"]);
  }

  #markIncident({ since, state, noted }, names) {
    if (since === null) return;
    for (const name of names) this.#mark(name, Math.floor(since), state === "closed" ? Math.floor(noted) : this.until);
  }

  /** Add the course of a field, or none for another one. */
  setCourse(rows) {
    for (const row of this.#rows.values()) row.course = null;
    for (const course of rows) {
      const row = this.#rows.get(course.time);
      if (row) row.course = course;
    }
  }

  /** Mark the seconds from the first to the last one. */
  #mark(name, first, last) {
    for (let second = Math.max(first, this.until - SECONDS); second <= last; second++) {
      const row = this.#rows.get(second);
      if (row) row[name] = true;
    }
  }

  /** The rows worth a picture, undefined in a gap, and the second of the first one. */
  shown() {
    const from = Math.max(this.until - SECONDS, Math.min(this.until - LEAST_SECONDS, ...this.#busySeconds()));
    return { from, rows: Array.from({ length: this.until - from }, (_, i) => this.#rows.get(from + i)) };
  }

  /** The seconds in which something was done: a worker's idle start is not worth a picture. */
  *#busySeconds() {
    for (const [second, row] of this.#rows) if (handled(row) > 0) yield second;
  }
}

/** The figures of some rows: sums of all, and how it is now. */
export function figures(rows) {
  const known = rows.filter(Boolean);
  const now = rows.slice(-NOW_SECONDS).filter(Boolean);
  return {
    rate: sum(now, handled) / Math.max(1, now.length),
    lag: known.at(-1)?.lag ?? null,
    median: middle(now.map((row) => row.median).filter((value) => value !== null)),
    anomalies: sum(known, (row) => row.anomalies),
    rejected: sum(known, (row) => row.rejected),
  };
}

/** What the charts show while records of before are read; empty while the worker keeps up. */
export function backlog({ lag, rate }) {
  if (lag <= BACKLOG_SECONDS * Math.max(rate, 1)) return "";
  const left = rate > 0 ? `, about ${duration(lag / rate)} at the present rate` : "";
  return `Reading a backlog: ${several(lag, "record")} to go${left}. Until then, the charts show when records were read, not when they happened.`;
}

const handled = (row) => row.scored + row.rejected + row.replayed;
const sum = (rows, of) => rows.reduce((before, row) => before + of(row), 0);
const middle = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];
