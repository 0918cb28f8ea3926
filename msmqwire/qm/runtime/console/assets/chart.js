// Charts of samples, drawn by uPlot; the latest values are text beside them.
import { el } from "./dom.js";

const HEIGHT = 180;

/** How much a counter has grown a second between two samples; null where it began anew. */
const growth = (times, counts) => counts.map((value, at) => (at && value >= counts[at - 1] ? (value - counts[at - 1]) / (times[at] - times[at - 1]) : null));

export class Chart {
  /** `lines`: [title, column, color]. `text`: makes a value a text. `rates`: whether columns are counters. `steps`: of the axis. */
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
    return { width: Math.max(200, this.place.clientWidth), height: HEIGHT };
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
      padding: [null, 28, null, null],
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
