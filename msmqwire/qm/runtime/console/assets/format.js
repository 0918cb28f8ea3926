// Numbers, sizes and times as people read them.

const whole = new Intl.NumberFormat("en");
const short = new Intl.NumberFormat("en", { maximumFractionDigits: 1 });
const UNITS = ["bytes", "KiB", "MiB", "GiB", "TiB"];

export const count = (number) => whole.format(number);

export function bytes(number) {
  let unit = 0;
  while (number >= 1024 && unit < UNITS.length - 1) {
    number /= 1024;
    unit += 1;
  }
  return `${short.format(number)} ${UNITS[unit]}`;
}

export const rate = (number) => (number === null || number === undefined ? "" : `${short.format(number)}/s`);

/** A time in UTC. */
export function time(text) {
  if (!text) return "";
  const at = new Date(text);
  return Number.isNaN(at.getTime()) ? String(text) : at.toISOString().replace("T", " ").slice(0, 19);
}

export const ofSeconds = (seconds) => time(seconds * 1000);

export function duration(seconds) {
  if (seconds === null) return "no limit";
  const parts = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
  const texts = [];
  for (const [name, size] of parts) {
    if (seconds >= size && texts.length < 2) {
      texts.push(`${Math.floor(seconds / size)} ${name}`);
      seconds %= size;
    }
  }
  return texts.join(" ") || "0 s";
}

export const plural = (number, one, many = `${one}s`) => `${count(number)} ${number === 1 ? one : many}`;

/** "WAITING_CP_MSG" and "NeedValidation" as words. */
export const words = (name) => name.replace(/_/g, " ").replace(/([a-z])([A-Z])/g, "$1 $2").toLowerCase();

/** Rows of a dump: offset, bytes in hex, characters. */
export function dump(hex) {
  const lines = [];
  for (let at = 0; at < hex.length; at += 32) {
    const row = hex.slice(at, at + 32).match(/../g);
    const characters = row.map((pair) => {
      const code = parseInt(pair, 16);
      return code >= 0x20 && code < 0x7f ? String.fromCharCode(code) : "·";
    });
    lines.push(`${(at / 2).toString(16).padStart(6, "0")}  ${row.join(" ").padEnd(47)}  ${characters.join("")}`);
  }
  return lines.join("\n");
}
