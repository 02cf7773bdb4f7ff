// Numbers and times as people read them. The minus sign is a real one.

const whole = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });
const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
const minute = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", hourCycle: "h23" });

const isNumber = (value) => typeof value === "number" && Number.isFinite(value);
const minus = (text) => text.replace("-", "−");

/** 12,345 */
export const count = (value) => (isNumber(value) ? minus(whole.format(value)) : "–");

/** 12.3k, 4.5M: for axes. */
export function short(value) {
  const size = Math.abs(value);
  for (const [unit, letter] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]]) {
    if (size >= unit) return minus(`${Number((value / unit).toPrecision(3))}${letter}`);
  }
  return minus(String(Number(value.toPrecision(3))));
}

/** Three or four significant digits, whatever the size. */
export function number(value, digits = 4) {
  if (!isNumber(value)) return "–";
  const size = Math.abs(value);
  if (size >= 10 ** digits && size < 1e9) return count(value);
  if (size !== 0 && (size >= 1e9 || size < 1e-4)) return minus(value.toExponential(digits - 2));
  return minus(String(Number(value.toPrecision(digits))));
}

/** One decimal: log-likelihoods. */
export function nats(value) {
  if (!isNumber(value) || Math.abs(value) >= 1000) return count(value);
  return minus((Math.round(10 * value) / 10 || 0).toFixed(1)); // no minus zero
}

/** 12 %, 0.4 % */
export const percent = (share) => `${Number((100 * share).toPrecision(share < 0.1 ? 1 : 2))} %`;

/** 14:03:59 of seconds since 1970, in the reader's own time. */
export const time = (seconds) => clock.format(1000 * seconds);

/** 14:03 */
export const timeOfDay = (seconds) => minute.format(1000 * seconds);
