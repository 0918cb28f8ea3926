// The log: its latest lines, and new ones as they come.
import { get } from "./api.js";
import { chip, el, table } from "./dom.js";
import { time } from "./format.js";

const KINDS = { error: "bad", critical: "bad", warning: "warn" };
const KEPT = 500;
const OWN = new Set(["number", "time", "level", "event"]);

export const page = {
  title: () => "Log",
  mount(content, parameters, signal) {
    let lines = [];
    let last = 0;
    let level = "info";
    let paused = false;
    const choices = ["debug", "info", "warning", "error"].map((name) => el("option", { value: name, selected: name === level }, name));
    const chosen = el("select", {
      id: "level",
      onchange() {
        level = chosen.value;
        lines = [];
        last = 0;
        document.dispatchEvent(new Event("refresh"));
      },
    }, choices);
    const pause = el("button", {
      type: "button", "aria-pressed": "false",
      onclick() {
        paused = !paused;
        pause.setAttribute("aria-pressed", String(paused));
        document.dispatchEvent(new Event("refresh"));
      },
    }, "Pause");
    const shown = table("The latest lines, newest first", [
      { title: "Time (UTC)", class: "time", cell: (line) => time(line.time) },
      { title: "Level", cell: (line) => chip(line.level, KINDS[line.level] || "") },
      { title: "Event", class: "event", cell: (line) => line.event },
      { title: "More", class: "more", cell: (line) => details(line) },
    ]);
    content.append(el("section", {}, el("div", { class: "bar" }, el("label", { for: "level" }, "Level and above"), chosen, pause), shown.element));
    return async (sample) => {
      if (paused || (sample && sample.log === last)) return;
      const asked = level;
      const told = await get("/log", { after: last, level }, signal);
      if (asked !== level) return; // the lines of the other level are on their way
      lines = [...lines, ...told.lines].slice(-KEPT);
      last = told.last;
      shown.show(lines.toReversed(), "There are no lines of this level.");
    };
  },
};

function details(line) {
  const rest = Object.entries(line).filter(([name]) => !OWN.has(name));
  return rest.length ? el("dl", { class: "inline" }, rest.map(([name, value]) => el("div", {}, el("dt", {}, `${name}:`), " ", el("dd", {}, String(value))))) : null;
}
