// The queue manager at a glance: figures, charts of the last half hour, what was refused.
import { get } from "./api.js";
import { el, fill, properties, table } from "./dom.js";
import { bytes, count, plural, rate, time } from "./format.js";

const REFUSED_SHOWN = 100;

const GROUPS = [
  ["application", "Queues", "#/queues"], ["outgoing", "Outgoing", "#/outgoing"],
  ["system", "Of the computer", "#/journals"], ["journals", "Journals of queues", "#/journals"],
];

/** How much a counter has grown a second between two samples. */
const growth = (times, counts) => counts.map((value, at) => (at ? Math.max(0, (value - counts[at - 1]) / (times[at] - times[at - 1])) : null));

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
      const status = await get("status", {}, signal);
      if (samples === null || (sample && sample.time - samples.time.at(-1) > 60)) samples = await get("samples", {}, signal);
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

class Chart {
  constructor({ title, lines, text, rates, steps }) {
    this.steps = steps;
    this.lines = lines;
    this.text = text;
    this.rates = rates;
    this.place = el("div", { class: "plot", "aria-hidden": "true" });
    this.values = lines.map(() => el("span", { class: "value" }));
    const legend = lines.map(([name, , color], at) => el("span", { class: "key" }, el("span", { class: `swatch ${color}`, "aria-hidden": "true" }), `${name}: `, this.values[at]));
    this.element = el("figure", { class: "chart" }, el("figcaption", {}, el("h3", {}, title), el("p", { class: "legend" }, legend)), this.place);
    this.scheme = matchMedia("(prefers-color-scheme: dark)");
    this.again = () => { this.plot?.destroy(); this.plot = null; if (this.samples) this.show(this.samples); };
    this.scheme.addEventListener("change", this.again);
    this.observer = new ResizeObserver(() => this.plot?.setSize(this.size()));
    this.observer.observe(this.place);
  }

  size() {
    return { width: Math.max(200, this.place.clientWidth), height: 180 };
  }

  show(samples) {
    this.samples = samples;
    const times = samples.time;
    const columns = this.lines.map(([, name]) => (this.rates ? growth(times, samples[name]) : samples[name]));
    columns.forEach((column, at) => { this.values[at].textContent = column.length && column.at(-1) !== null ? this.text(column.at(-1)) : "–"; });
    const data = [times, ...columns];
    if (this.plot) this.plot.setData(data);
    else if (this.place.clientWidth) this.plot = new uPlot(this.options(), data, this.place);
  }

  options() {
    const style = getComputedStyle(document.documentElement);
    const color = (name) => style.getPropertyValue(`--${name}`).trim();
    const axis = { stroke: color("muted"), grid: { stroke: color("line"), width: 1 }, ticks: { stroke: color("line"), width: 1 }, font: "12px system-ui, sans-serif" };
    return {
      ...this.size(),
      legend: { show: false },
      cursor: { show: false },
      scales: { x: { time: true, range: (plot, least, most) => [Math.min(least, most - 120), most] }, y: { range: (plot, least, most) => [0, Math.max(1, most * 1.1)] } },
      axes: [{ ...axis, space: 80, values: (plot, splits) => splits.map((value) => new Date(value * 1000).toLocaleTimeString("en-GB")) }, { ...axis, size: 76, space: 36, incrs: this.steps, values: (plot, splits) => splits.map((value) => this.text(value).replace("/s", "")) }],
      series: [{}, ...this.lines.map(([, , name]) => ({ stroke: color(name), width: 2, points: { show: false }, fill: name === "one" ? `${color("one")}22` : undefined }))],
    };
  }

  end() {
    this.observer.disconnect();
    this.scheme.removeEventListener("change", this.again);
    this.plot?.destroy();
    this.plot = null;
  }
}
