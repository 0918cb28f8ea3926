"use strict";
// Charts over time, by uPlot.

const LINES = ["message", "acknowledgement", "answer", "other", "malformed"];
const TICKS = [1e-6, 2e-6, 5e-6, 1e-5, 2e-5, 5e-5, 1e-4, 2e-4, 5e-4, 1e-3, 2e-3, 5e-3, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10,
  15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800, 2592000, 31536000, 315360000, 3153600000];
const BYTE_TICKS = Array.from({ length: 50 }, (_, power) => 2 ** power);
const CHART_HEIGHT = 190;
const PAPER_WIDTH = 940;

/** Return a colour of the style as it is in the theme of now, with an opacity. */
function colour(name, opacity = 1) {
  const probe = element("span", { style: { color: `var(--${name})` }, hidden: true });
  document.body.append(probe);
  const channels = getComputedStyle(probe).color.match(/[\d.]+/g).slice(0, 3);
  probe.remove();
  return `rgba(${channels.join(", ")}, ${opacity})`;
}

class Timeline {
  constructor(timeline, onChosen) {
    this.timeline = timeline;
    this.onChosen = onChosen;
    this.charts = [];
    this.chosen = null;
    this.node = element("div", { class: "charts" });
    this.showButton = button("Show these packets", () => this.onChosen(this.chosen), { hidden: true });
    this.resetButton = button("Whole capture", () => this.reset(), { hidden: true });
  }

  /** The second of the day on which the first interval begins: ticks are on whole seconds and minutes. */
  origin() {
    const [seconds, nanoseconds] = this.timeline.start;
    return [Math.floor(seconds / 86400) * 86400, ((seconds % 86400) + 86400) % 86400 + nanoseconds / 1e9];
  }

  draw() {
    const { series, bytes, names, width_ns: width, start } = this.timeline;
    if (!bytes.length) return;
    const first = this.origin()[1];
    const step = width / 1e9;
    // One interval before and one behind are empty: each line begins and ends at nothing.
    const times = Array.from({ length: bytes.length + 2 }, (_, place) => first + (place - 1) * step);
    const around = (counts) => [0, ...counts, 0];
    const shown = series.map((counts, place) => [names[place], counts, LINES[place]]).filter(([, counts]) => counts.some(Boolean));
    const each = `per ${formatWidth(step)}`;
    const end = [start[0], start[1] + bytes.length * width];
    const about = `from ${formatTime(start, 3)} for ${formatSpan(between(start, end))}`;
    this.charts.forEach((chart) => chart.destroy());
    this.charts = [];
    const holder = (title, label) => {
      const place = element("div", { class: "chart", role: "img", "aria-label": label });
      this.node.append(element("figure", {}, element("figcaption", {}, title), place));
      return place;
    };
    this.node.replaceChildren();
    const most = Math.max(...bytes.map((_, place) => series.reduce((sum, counts) => sum + counts[place], 0)));
    this.add(holder(`Packets ${each}`, `Packets over time, ${about}; at most ${formatCount(most)} ${each}.`), times,
      shown.map(([name, counts, line]) => ({ name, line, counts: around(counts) })), formatCount, null);
    this.add(holder(`Bytes ${each}`, `Bytes over time, ${about}; at most ${formatBytes(Math.max(...bytes))} ${each}.`), times,
      [{ name: "Bytes", line: "accent", counts: around(bytes) }], formatBytes, BYTE_TICKS);
    this.node.append(element("p", { class: "chart-tools" }, this.showButton, this.resetButton,
      element("span", { class: "muted" }, "Drag over a chart to choose a time.")));
  }

  add(place, times, lines, format, ticks) {
    const [day] = this.origin();
    const digits = (step) => Math.max(0, Math.min(9, Math.ceil(-Math.log10(step) - 1e-9)));
    const clock = (value, count) => {
      const whole = Math.floor(value);
      return formatClock(day + whole, Math.round((value - whole) * 1e9) % 1e9, count);
    };
    const axis = { stroke: () => colour("muted"), grid: { stroke: () => colour("line"), width: 1 }, ticks: { stroke: () => colour("line"), width: 1 }, font: "12px system-ui, sans-serif" };
    const chart = new uPlot({
      width: Math.max(280, place.clientWidth),
      height: CHART_HEIGHT,
      legend: { live: false },
      cursor: { drag: { x: true, y: false, setScale: true }, sync: { key: "time" }, points: { show: false } },
      scales: { x: { time: false }, y: { range: (_, __, top) => [0, Math.max(1, top * 1.08)] } },
      axes: [
        { ...axis, incrs: TICKS, space: 110, values: (_, splits, __, ___, step) => splits.map((value) => clock(value, digits(step))) },
        { ...axis, size: 74, ...(ticks ? { incrs: ticks } : {}), values: (_, splits) => splits.map((value) => (value === 0 ? "0" : value === Math.floor(value) ? format(value).replace(".00", "") : "")) },
      ],
      series: [{}, ...lines.map(({ name, line }) => ({
        label: name,
        stroke: () => colour(line),
        fill: () => colour(line, 0.18),
        width: 1.5,
        paths: uPlot.paths.stepped({ align: 1 }),
        points: { show: false },
      }))],
      hooks: { setSelect: [(one) => this.choose(one)] },
    }, [times, ...lines.map(({ counts }) => counts)], place);
    this.charts.push(chart);
  }

  choose(chart) {
    if (chart.select.width < 2) return;
    const [day] = this.origin();
    const from = chart.posToVal(chart.select.left, "x");
    const to = chart.posToVal(chart.select.left + chart.select.width, "x");
    this.chosen = [from, to].map((value) => [day + Math.floor(value), Math.round((value - Math.floor(value)) * 1e9)]);
    this.charts.filter((one) => one !== chart).forEach((one) => one.setScale("x", { min: from, max: to }));
    this.showButton.hidden = this.resetButton.hidden = false;
  }

  reset() {
    for (const chart of this.charts) {
      const times = chart.data[0];
      chart.setScale("x", { min: times[0], max: times[times.length - 1] });
    }
    this.showButton.hidden = this.resetButton.hidden = true;
  }

  /** Fit the charts into the width that there is, on paper into that of a page. */
  resize(isPrinting = false) {
    for (const chart of this.charts) {
      const width = isPrinting ? PAPER_WIDTH : Math.max(280, chart.root.parentElement.clientWidth);
      if (chart.width !== width) chart.setSize({ width, height: CHART_HEIGHT });
    }
  }

  recolour() {
    this.charts.forEach((chart) => chart.redraw(false, true));
  }
}
