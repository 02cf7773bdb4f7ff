// The course of a field over the last minutes, one record a second, as the worker knows it.

import { ask } from "./worker.js";

// Seconds before an incident that show what is usual.
const BEFORE = 30;
const AFTER = 15;
const LEAST_POINTS = 3;

/** The worker's answer with its columns as rows: when, value, and the band that was expected. */
export async function askCourse({ topic, partition }, field, since = 0) {
  const parameters = { topic, partition, since, ...(field && { field }) };
  const answer = await ask("field", parameters);
  if (!answer) return null;
  const { times = [], values, expected_low: low, expected_high: high, is_anomaly: unusual } = answer;
  const rows = times.map((time, i) => ({ time, value: values[i], low: low[i], high: high[i], unusual: unusual[i] }));
  return { ...answer, rows };
}

/** The course around an incident; empty if it is too long ago. */
export async function courseOf(event, field) {
  if (typeof event.since !== "number") return [];
  const found = await askCourse(event, field, Math.floor(event.since - BEFORE));
  const until = event.state === "closed" ? event.noted + AFTER : Infinity;
  const rows = found ? found.rows.filter((row) => row.value !== null && row.time <= until) : [];
  return rows.length < LEAST_POINTS ? [] : rows;
}
