// The course of a field: of the last minutes, one record a second, as the worker knows it; of an
// earlier incident, what its events say.

import { ask } from "./worker.js";

// Seconds before an incident that show what is usual.
const BEFORE = 30;
const AFTER = 15;
const LEAST_POINTS = 3;
// Half the width of the band, in deviations, as in the worker's answer without forecasts.
const HALF_WIDTH = 2;
// The time before and after an incident in its picture, as a share of the incident.
const MARGIN = 0.5;
const NO_BAND = { low: null, high: null };

/**
 * The worker's answer with its columns as rows: when, value, and the band that was expected.
 * With the name of an entity, these are its own.
 */
export async function askCourse({ topic, partition }, field, since = 0, entity = null) {
  const parameters = { topic, partition, since, ...(field && { field }), ...(entity !== null && { entity }) };
  const answer = await ask("field", parameters);
  if (!answer) return null;
  const { times = [], values, expected_low: low, expected_high: high, is_anomaly: unusual } = answer;
  const rows = times.map((time, i) => ({ time, value: values[i], low: low[i], high: high[i], unusual: unusual[i] }));
  return { ...answer, rows };
}

/**
 * The course of a field to blame around an incident, of its own entity if it has one; empty if it is too long
 * ago.
 */
export async function courseOf(event, entry) {
  if (typeof event.since !== "number") return [];
  const found = await askCourse(event, entry.name, Math.floor(event.since - BEFORE), event.entity ?? null);
  const until = event.state === "closed" ? event.noted + AFTER : Infinity;
  const rows = found ? found.rows.filter((row) => row.value !== null && row.time <= until) : [];
  if (rows.length < LEAST_POINTS) return [];
  return found.is_of_next ? withBand(rows, bandOf(entry), event) : rows;
}

/** The rows with the band of an incident from its start to its latest record, in place of that of the next record. */
function withBand(rows, band, { since, start_timestamp: start, opened_timestamp: opened, latest_timestamp: latest }) {
  const isTimed = [start, opened, latest].every(Number.isFinite);
  // Rows lie where they were read, as the opening did at `since`.
  const read = (timestamp) => Math.floor(since + (isTimed ? (timestamp - opened) / 1000 : 0));
  const [from, until] = [Math.max(read(start), rows[0].time) - 0.5, Math.min(read(latest), rows.at(-1).time) + 0.5];
  const ends = [from, until].map((time) => ({ ...band, time, value: null, unusual: false }));
  return [...rows.map((row) => ({ ...row, ...NO_BAND })), ...ends].toSorted((one, other) => one.time - other.time);
}

/** The band in which an incident says that a field was expected. */
function bandOf({ expected, deviation }) {
  if (![expected, deviation].every(Number.isFinite)) return NO_BAND;
  return { low: expected - HALF_WIDTH * deviation, high: expected + HALF_WIDTH * deviation };
}

/** An incident as its events tell: a field's average value, and the band that was expected. */
export function averageCourse({ start_timestamp: start, latest_timestamp: latest }, entry) {
  const { value, expected, deviation } = entry;
  if (![start, latest, value, expected, deviation].every(Number.isFinite)) return [];
  const margin = MARGIN * Math.max(1, (latest - start) / 1000);
  const [from, until] = [start / 1000, latest / 1000];
  const band = { ...bandOf(entry), value: null, unusual: false };
  const within = [from, until].map((time) => ({ ...band, time, value, unusual: true }));
  return [{ ...band, time: from - margin }, ...within, { ...band, time: until + margin }];
}
