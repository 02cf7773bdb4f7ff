// The charts of the page, all of the same seconds.

import { TimeChart } from "./chart.js";
import { byId } from "./dom.js";
import { count, likelihood, number, short } from "./format.js";

// So that an idle worker's axis counts whole records.
const LEAST_TOP = 5;
// The share of seconds whose low scores may lie below the axis.
const OUTLIERS = 0.02;
// Room below and above the usual scores, as shares of their span.
const ROOM = { below: 0.6, above: 0.1 };

const most = (rows, of) => Math.max(LEAST_TOP, ...rows.map(of).filter((value) => value !== null));

export function throughputChart() {
  const [scored, rejected, replayed] = ["scored", "rejected", "replayed"].map((name) => (row) => row[name]);
  const two = (row) => scored(row) + rejected(row);
  const all = (row) => two(row) + replayed(row);
  return new TimeChart(byId("throughput"), {
    legend: [["blue", "scored"], ["amber", "rejected"], ["grey", "replayed"]],
    range: (rows) => [0, most(rows, all)],
    tick: short,
    draw(plot) {
      const { blue, amber, grey } = plot.theme;
      plot.area(() => 0, scored, blue);
      plot.area(scored, two, amber);
      plot.area(two, all, grey);
    },
    tip: (row) => [["scored", count(row.scored)], ["rejected", count(row.rejected)], ["replayed", count(row.replayed)]],
  });
}

const lag = (row) => row.lag;

export function lagChart() {
  return new TimeChart(byId("waiting"), {
    legend: [],
    range: (rows) => [0, most(rows, lag)],
    tick: short,
    draw(plot) {
      plot.area(() => 0, lag, plot.theme["blue-soft"]);
      plot.line(lag, plot.theme.blue);
    },
    tip: (row) => [["waiting", count(row.lag)]],
  });
}

export function likelihoodChart() {
  const [low, median, high] = ["low", "median", "high"].map((name) => (row) => row[name]);
  return new TimeChart(byId("likelihood"), {
    legend: [["blue", "median"], ["soft", "5 to 95 % of a second's records, from a sample"], ["red dot", "lowest of a second with anomalies"]],
    range: usualRange,
    tick: short,
    draw(plot) {
      plot.area(low, high, plot.theme["blue-soft"]);
      plot.line(median, plot.theme.blue);
      plot.dots((row) => (row.anomalies ? row.lowest : null), plot.theme.red);
    },
    tip: (row) => [
      ["95 %", likelihood(row.high)], ["median", likelihood(row.median)], ["5 %", likelihood(row.low)],
      ["lowest", likelihood(row.lowest)], ["anomalies", count(row.anomalies)],
    ],
  });
}

const value = (row) => row.course?.value ?? null;

export function fieldChart() {
  const [low, high] = ["low", "high"].map((name) => (row) => row.course?.[name] ?? null);
  return new TimeChart(byId("field"), {
    legend: [["blue", "value, one record a second"], ["soft", "what was expected"], ["red dot", "anomaly"]],
    range: courseRange,
    shaded: (row) => row.ofField,
    tick: short,
    draw(plot) {
      plot.area(low, high, plot.theme["blue-soft"]);
      plot.line(value, plot.theme.blue);
      plot.dots((row) => (row.course?.unusual ? value(row) : null), plot.theme.red);
    },
    tip: (row) => [["value", number(value(row))], ["expected", `${number(low(row))} to ${number(high(row))}`]],
  });
}

function courseRange(rows) {
  const known = rows.flatMap(({ course }) => (course ? [course.value, course.low, course.high] : [])).filter((each) => each !== null);
  if (!known.length) return [0, 1];
  const [low, high] = [Math.min(...known), Math.max(...known)];
  const room = ROOM.above * (high - low || Math.abs(high) || 1);
  return [low - room, high + room];
}

/** From below the usual scores to above them: what lies far below must not flatten them. */
function usualRange(rows) {
  const known = rows.filter((row) => row.low !== null);
  if (!known.length) return [-1, 0];
  const lows = known.map((row) => row.low).toSorted((a, b) => a - b);
  const low = lows[Math.floor(OUTLIERS * lows.length)];
  const high = Math.max(...known.map((row) => row.high));
  const span = high - low || Math.abs(high) || 1;
  return [low - ROOM.below * span, high + ROOM.above * span];
}
