"use strict";
// Numbers, sizes and times as text.

const WHOLE = new Intl.NumberFormat("en-US");
const UNITS = ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB"];

function formatCount(number) {
  return WHOLE.format(number);
}

/** Return "1 packet", "2,000 packets". */
function counted(number, one, many = `${one}s`) {
  return `${formatCount(number)} ${number === 1 ? one : many}`;
}

function formatBytes(number) {
  let unit = 0;
  let value = number;
  while (value >= 1024 && unit < UNITS.length - 1) {
    value /= 1024;
    unit += 1;
  }
  if (unit === 0) return counted(number, "byte");
  return `${value.toFixed(value < 10 ? 2 : value < 100 ? 1 : 0)} ${UNITS[unit]}`;
}

function pad(number, length) {
  return String(number).padStart(length, "0");
}

/** Return a date of UTC, "2026-03-01"; null outside of the calendar. */
function dayOf(seconds) {
  const date = new Date(seconds * 1000);
  return Number.isNaN(date.getTime()) ? null : date.toISOString().slice(0, date.toISOString().indexOf("T"));
}

/** In place of a time that the capture can't say; only this has negative nanoseconds. */
const NO_TIME = [-1, -1];

/** Return a time of UTC: "12:00:01.002033469"; the seconds as they are outside of the calendar; nothing for none. */
function formatClock(seconds, nanoseconds, digits = 9) {
  if (nanoseconds < 0) return "";
  const fraction = digits ? `.${pad(nanoseconds, 9).slice(0, digits)}` : "";
  if (dayOf(seconds) === null) return `${seconds}${fraction}`;
  const inDay = ((seconds % 86400) + 86400) % 86400;
  return `${pad(Math.floor(inDay / 3600), 2)}:${pad(Math.floor(inDay / 60) % 60, 2)}:${pad(inDay % 60, 2)}${fraction}`;
}

/** Return a whole time: "2026-03-01 12:00:01.002033469 UTC". */
function formatTime([seconds, nanoseconds], digits = 9) {
  if (nanoseconds < 0) return "no time";
  const day = dayOf(seconds);
  const clock = formatClock(seconds, nanoseconds, digits);
  return day === null ? `${clock} s` : `${day} ${clock} UTC`;
}

/** Return the seconds between two times, as exact as a double is; NaN if one is unknown. */
function between([seconds, nanoseconds], [laterSeconds, laterNanoseconds]) {
  if (nanoseconds < 0 || laterNanoseconds < 0) return NaN;
  return laterSeconds - seconds + (laterNanoseconds - nanoseconds) / 1e9;
}

/** Return the span between two times behind some words: ", after 1.20 ms"; nothing if it is unknown. */
function spanAfter(words, time, later) {
  const span = between(time, later);
  return Number.isNaN(span) ? "" : words + formatSpan(span);
}

/** Return a span of time in the unit that suits it: "1.20 ms", "3 min 5 s"; "?" for NaN. */
function formatSpan(seconds) {
  if (Number.isNaN(seconds)) return "?";
  const size = Math.abs(seconds);
  const sign = seconds < 0 ? "-" : "";
  if (size === 0) return "0 s";
  if (size < 1e-6) return `${sign}${Math.round(size * 1e9)} ns`;
  if (size < 1e-3) return `${sign}${threeDigits(size * 1e6)} µs`;
  if (size < 1) return `${sign}${threeDigits(size * 1e3)} ms`;
  if (size < 60) return `${sign}${threeDigits(size)} s`;
  if (size < 3600) return `${sign}${Math.floor(size / 60)} min ${Math.floor(size % 60)} s`;
  if (size < 86400) return `${sign}${Math.floor(size / 3600)} h ${Math.floor((size % 3600) / 60)} min`;
  return `${sign}${formatCount(Math.floor(size / 86400))} d ${Math.floor((size % 86400) / 3600)} h`;
}

function threeDigits(value) {
  return value.toFixed(value < 10 ? 2 : value < 100 ? 1 : 0);
}

/** Return a width that is round: "20 ms", "1 min". */
function formatWidth(seconds) {
  return formatSpan(seconds).replace(/\.0+(?= )/, "").replace(/ 0 (s|min|h)$/, "");
}

/** Return seconds and nanoseconds of what a person typed: ISO 8601 (UTC by default) or seconds; null for neither. */
function parseTime(text) {
  const typed = text.trim();
  const plain = /^(\d{1,15})(?:\.(\d{1,9})\d*)?$/.exec(typed);
  if (plain) return [Number(plain[1]), Number((plain[2] || "").padEnd(9, "0"))];
  const parts = /^(\d{4}-\d\d-\d\d)(?:[T ](\d\d:\d\d(?::\d\d)?)(?:[.,](\d{1,9})\d*)?)?\s*(Z|UTC|[+-]\d\d:\d\d)?$/i.exec(typed);
  if (!parts) return null;
  const zone = !parts[4] || /^(z|utc)$/i.test(parts[4]) ? "Z" : parts[4];
  const clock = (parts[2] || "00:00").padEnd(8, ":00");
  const milliseconds = Date.parse(`${parts[1]}T${clock}${zone}`);
  return Number.isNaN(milliseconds) ? null : [milliseconds / 1000, Number((parts[3] || "").padEnd(9, "0"))];
}
