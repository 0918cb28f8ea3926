// The queue manager at a glance: figures, charts of the last half hour, what was refused.
import { get } from "./api.js";
import { Chart } from "./chart.js";
import { el, fill, properties, table } from "./dom.js";
import { bytes, count, plural, rate, time } from "./format.js";

const REFUSED_SHOWN = 100;

const GROUPS = [
  ["application", "Queues", "#/queues"], ["outgoing", "Outgoing", "#/outgoing"],
  ["system", "Of the computer", "#/journals"], ["journals", "Journals of queues", "#/journals"],
];

const CHARTS = [
  { title: "Messages a second", lines: [["Put into queues", "put", "one"], ["Taken out", "taken", "two"]], text: rate, rates: true },
  { title: "Messages in queues", lines: [["Messages", "messages", "one"]], text: count },
  { title: "Bytes a second over TCP", lines: [["Received", "bytes_received", "one"], ["Sent", "bytes_sent", "two"]], text: (value) => `${bytes(value)}/s`, rates: true, steps: Array.from({ length: 40 }, (_, power) => 2 ** power) },
];

export const page = {
  title: () => "Overview",
  mount(content, parameters, signal) {
    const cards = el("div", { class: "cards" });
    const groups = table("Queues by kind", [
      { title: "Kind", class: "name", cell: ([name, title, href]) => el("a", { href, "data-focus": name }, title) },
      { title: "Queues", class: "number", cell: ([, , , figures]) => count(figures.queues) },
      { title: "Messages", class: "number", cell: ([, , , figures]) => count(figures.messages) },
      { title: "Size", class: "number", cell: ([, , , figures]) => bytes(figures.bytes) },
    ]);
    const memory = el("div"), origins = el("div");
    const troubles = table("Trouble with messages of others", [
      { title: "Kind", class: "name", cell: ([name]) => name.replaceAll("_", " ") },
      { title: "Times", class: "number", cell: ([, times]) => count(times) },
    ]);
    const refused = table("Messages refused, dropped or expired, the latest first", [
      { title: "From", class: "name", cell: (one) => one.peer || "this computer" },
      { title: "Queue", class: "name", cell: (one) => one.queue },
      { title: "Reason", class: "code", cell: (one) => one.reason },
      { title: "Messages", class: "number", cell: (one) => count(one.count) },
      { title: "Last (UTC)", class: "time", cell: (one) => time(one.last) },
      { title: "Label of the last", class: "name", cell: (one) => one.label },
      { title: "Identifier of the last", class: "code", cell: (one) => one.identifier },
    ]);
    const more = el("p", { class: "hint", hidden: true });
    const charts = CHARTS.map((chart) => new Chart(chart));
    content.append(
      cards, el("section", {}, el("h2", {}, "Last half hour"), el("div", { class: "charts" }, charts.map((chart) => chart.element))),
      el("div", { class: "columns" },
        el("section", {}, el("h2", {}, "Queues"), groups.element),
        el("section", {}, el("h2", {}, "Trouble"), troubles.element),
        el("section", {}, el("h2", {}, "Messages by origin"), origins),
        el("section", {}, el("h2", {}, "Memory for others"), memory)),
      el("section", {}, el("h2", {}, "Refused"), refused.element, more));
    let samples = null;
    signal.addEventListener("abort", () => charts.forEach((chart) => chart.end()));
    return async (sample) => {
      const status = await get("/status", {}, signal);
      if (samples === null || (sample && sample.time - samples.time.at(-1) > 60)) samples = await get("/samples", {}, signal);
      else if (sample && sample.time > samples.time.at(-1)) {
        for (const name of Object.keys(samples)) {
          samples[name].push(sample[name]);
          if (samples[name].length > 900) samples[name].shift();
        }
      }
      if (signal.aborted) return;
      fill(cards, status, () => ofStatus(status));
      groups.show(GROUPS.map(([name, title, href]) => [name, title, href, status.groups[name]]), "");
      refused.show(status.refused.slice(0, REFUSED_SHOWN), "No message has been refused, dropped or has expired.");
      more.hidden = status.refused.length <= REFUSED_SHOWN;
      more.textContent = `The latest ${count(REFUSED_SHOWN)} of ${count(status.refused.length)}; msmqwire top --json has all.`;
      troubles.show(Object.entries(status.troubles), "Nothing so far.");
      fill(origins, status.shares, () => properties(ofShares(status.shares)));
      fill(memory, status.memory, () => properties(Object.entries(status.memory).filter(([name]) => name !== "limit")
        .map(([name, used]) => [name[0].toUpperCase() + name.slice(1), bytes(used)]).concat([["Limit", bytes(status.memory.limit)]])));
      charts.forEach((chart) => chart.show(samples));
    };
  },
};

function card(title, value, more, kind = "") {
  return el("div", { class: `card ${kind}` }, el("h2", {}, title), el("p", { class: "figure" }, value), el("p", { class: "hint" }, more));
}

function ofShares(shares) {
  return [
    ["Applications of this computer", bytes(shares.owner)],
    ["Known computers", bytes(shares.known)],
    ["Unknown senders", bytes(shares.unknown)],
    ["Limit of each unknown sender", bytes(shares.per_origin)],
    ["Messages refused beyond it", count(shares.refused)],
  ];
}

function ofStatus(status) {
  const disk = status.disk;
  return [
    card("Messages", count(status.messages), `in ${plural(status.queues, "queue")}`),
    card("Size of messages", bytes(status.used), `of ${bytes(status.quota)}`),
    card("Open sessions", count(status.sessions), "with other queue managers"),
    disk.accepts
      ? card("New messages", "Accepted", disk.free === null ? "" : `${bytes(disk.free)} free on the disk`)
      : card("New messages", "Refused", `the disk is full, or almost: ${bytes(disk.free ?? 0)} free`, "bad"),
  ];
}
