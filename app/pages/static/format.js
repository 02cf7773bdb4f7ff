// Numbers, times and names as people read them. The minus sign is a real one.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const minute = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });

const UNITS = { G: 1e9, M: 1e6, k: 1e3 };
const AXIS_DIGITS = 3;
const NUMBER_DIGITS = 4;
// Outside of these, numbers are written with a power of ten.
const PLAIN = { least: 1e-4, most: 1e9 };
const SMALL_SHARE = 0.1;

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
  if (size !== 0 && (size >= PLAIN.most || size < PLAIN.least)) return minus(value.toExponential(digits - 2));
  return minus(String(Number(value.toPrecision(digits))));
}

/** One decimal: log-likelihoods. */
export function nats(value) {
  if (!isNumber(value) || Math.abs(value) >= 1000) return count(value);
  return minus((Math.round(10 * value) / 10 || 0).toFixed(1)); // no minus zero
}

/** 12 %, 0.4 % */
export const percent = (share) => `${Number((100 * share).toPrecision(share < SMALL_SHARE ? 1 : 2))} %`;

/** 14:03:59 of seconds since 1970, in the reader's own time. */
export const time = (seconds) => clock.format(1000 * seconds);

/** 14:03 */
export const timeOfDay = (seconds) => minute.format(1000 * seconds);

/** machines/3 */
export const partitionName = ({ topic, partition }) => `${topic}/${partition}`;
