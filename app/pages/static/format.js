// Numbers, times and names as people read them. The minus sign is a real one.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const day = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
const dayOfYear = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", year: "numeric" });
const minute = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });

const UNITS = { T: 1e12, G: 1e9, M: 1e6, k: 1e3 };
const SUPERSCRIPTS = "⁰¹²³⁴⁵⁶⁷⁸⁹";
const AXIS_DIGITS = 3;
const NUMBER_DIGITS = 4;
// Outside of these, numbers are written with a power of ten.
const PLAIN = { least: 1e-4, most: 1e9 };
const SMALL_SHARE = 0.1;
// Of a probability that is written: smaller ones are guesses.
const LEAST_SHARE = 1e-6;
// oxlint-disable-next-line no-magic-numbers -- seconds of each unit
const DURATIONS = [["s", 1], ["min", 60], ["h", 3600], ["days", 86_400]];
const MOST_OF_A_UNIT = 100;

const isNumber = (value) => typeof value === "number" && Number.isFinite(value);
const minus = (text) => text.replace("-", "−");

/** 12,345 */
export const count = (value) => (isNumber(value) ? minus(whole.format(value)) : "–");

/** A rate: one decimal where it is small. */
export const rate = (value) => (value < 10 ? String(Number(value.toFixed(1))) : count(value));

/** 12.3k, 4.5M: for axes. */
export function short(value) {
  const size = Math.abs(value);
  for (const [letter, unit] of Object.entries(UNITS)) {
    if (size >= unit) return minus(`${Number((value / unit).toPrecision(AXIS_DIGITS))}${letter}`);
  }
  return minus(String(Number(value.toPrecision(AXIS_DIGITS))));
}

/** So many significant digits, whatever the size; integers keep all of theirs. */
export function number(value, digits = NUMBER_DIGITS) {
  if (!isNumber(value)) return "–";
  const size = Math.abs(value);
  if (size >= 10 ** digits && size < PLAIN.most) return count(value);
  if (size !== 0 && (size >= PLAIN.most || size < PLAIN.least)) return power(value, digits);
  return minus(String(Number(value.toPrecision(digits))));
}

/** 1.2 × 10⁻⁹ */
function power(value, digits) {
  const [factor, exponent] = value.toExponential(Math.max(0, digits - 2)).split("e");
  const raised = [...String(Number(exponent))].map((sign) => (sign === "-" ? "⁻" : SUPERSCRIPTS[sign])).join("");
  return minus(`${factor} × 10${raised}`);
}

/** Whole up to a million, then 12.3 M: for large type. */
export const figure = (value) => (isNumber(value) && Math.abs(value) >= UNITS.M ? short(value).replace(/(?=[a-zA-Z])/, " ") : count(value));

/** A log-likelihood, with one decimal. */
export function likelihood(value) {
  if (!isNumber(value) || Math.abs(value) >= 1000) return count(value);
  return minus((Math.round(10 * value) / 10 || 0).toFixed(1)); // no minus zero
}

/** A p-value as how rarely one expects this: once in 25,000 records. */
export function odds(value, among = "records") {
  if (!isNumber(value)) return "–";
  if (value < 1 / PLAIN.most) return `more rarely than once in a billion ${among}`;
  return `once in ${count(Number((1 / value).toPrecision(2)))} ${among}`;
}

/** 12 %, 0.4 % */
export const percent = (share) => `${Number((100 * share).toPrecision(share < SMALL_SHARE ? 1 : 2))} %`;

/** A probability by its nats: 12 %, 0.4 % */
export function chance(nats) {
  const share = Math.exp(-Math.max(nats, 0));
  return share < LEAST_SHARE ? "under 0.0001 %" : percent(share);
}

/** 14:03:59 of seconds since 1970, in the reader's own time. */
export const time = (seconds) => clock.format(1000 * seconds);

/** 23 Nov 14:03:59, with the year unless it is this one; a record may have a timestamp beyond all dates. */
export function moment(seconds) {
  const date = new Date(1000 * seconds);
  if (!isNumber(seconds) || !isNumber(date.getTime())) return "–"; // beyond the calendar
  const names = date.getFullYear() === new Date().getFullYear() ? day : dayOfYear;
  return `${names.format(date)} ${clock.format(date)}`;
}

/** 42 s, 3 min, 5 h, 2 days */
export function duration(seconds) {
  const [unit, size] = DURATIONS.find(([, each]) => seconds < MOST_OF_A_UNIT * each) ?? DURATIONS.at(-1);
  return `${count(seconds / size)} ${unit}`;
}

/** 14:03 */
export const timeOfDay = (seconds) => minute.format(1000 * seconds);

/** 1 record, 2 records */
export const several = (size, one, many = `${one}s`) => `${count(size)} ${size === 1 ? one : many}`;

/** machines/3 */
export const partitionName = ({ topic, partition }) => `${topic}/${partition}`;
