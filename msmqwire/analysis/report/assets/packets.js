"use strict";
// All packets: a table with filters.

class PacketsPanel {
  constructor() {
    this.table = new VirtualTable({
      caption: "Packets",
      height: "66vh",
      empty: "No packet passes these filters.",
      open: openDrawer,
      columns: [
        { title: "No.", number: true, width: "4.3rem", cell: (row) => formatCount(row + 1), sort: (row) => row },
        { title: "Time (UTC)", width: "9.4rem", cell: (row) => formatClock(...rowTime(row), 6), sort: (row) => packets.seconds[row] + packets.nanoseconds[row] / 1e9 },
        { title: "From", width: "10.6rem", cell: (row) => rowName("src", row), sort: (row) => rowName("src", row) },
        { title: "To", width: "10.6rem", cell: (row) => rowName("dst", row), sort: (row) => rowName("dst", row) },
        { title: "Kind", width: "11.6rem", cell: (row) => element("span", { class: `kind ${rowGroup(row)}`, title: rowName("kind", row) }, rowName("kind", row)), sort: (row) => rowName("kind", row) },
        { title: "Bytes", number: true, width: "5rem", cell: (row) => formatCount(packets.size[row]), sort: (row) => packets.size[row] },
        { title: "Findings", width: "6.6rem", cell: (row) => packets.severity[row] ? [severityBadge(SEVERITIES[packets.severity[row]]), ` ${packets.findings[row]}`] : "", sort: (row) => packets.severity[row] * 1e6 + packets.findings[row] },
        { title: "About", width: "27rem", cell: (row) => (packets.again[row] ? `sent again: ${rowText("about", row)}` : rowText("about", row)) },
      ],
    });
    this.count = element("p", { class: "filter-count", role: "status" });
    this.inputs = {};
  }

  build(panel) {
    const changed = whenQuiet(() => this.apply());
    const field = (name, title, input) => {
      input.id = `filter-${name}`;
      input.addEventListener("input", changed);
      this.inputs[name] = input;
      return element("div", { class: "filter" }, element("label", { for: input.id }, title), input);
    };
    const text = (placeholder, list) => element("input", { type: "search", placeholder, list, autocomplete: "off", spellcheck: "false" });
    const choices = (options) => element("select", {}, element("option", { value: "" }, "any"), options.map(([value, title]) => element("option", { value }, title)));
    fill(panel, element("h2", {}, "Packets"),
      element("form", { class: "filters", "aria-label": "Filters", on: { submit: (event) => event.preventDefault(), reset: () => setTimeout(() => this.apply()) } },
        field("search", "Search", text("in all columns")),
        field("kind", "Kind", choices(report.kinds.map(([name, count]) => [name, `${name} (${formatCount(count)})`]))),
        field("queue", "Queue", text("part of its name", "queue-names")),
        field("label", "Label", text("part of it")),
        field("endpoint", "Endpoint", text("address or :port")),
        field("severity", "Findings", choices([["1", "with findings"], ["2", "SHOULD, MUST or ATTACK"], ["3", "MUST or ATTACK"], ["4", "ATTACK"]])),
        field("requirement", "Requirement", choices([...new Set(report.requirements.map((one) => one.id))].sort().map((id) => [id, id]))),
        field("session", "Session", element("input", { type: "number", min: 1, max: Math.max(1, report.sessions.length), placeholder: "number" })),
        field("from", "From (UTC)", element("input", { type: "text", placeholder: report.start ? formatTime(report.start, 3).replace(" UTC", "") : "", autocomplete: "off" })),
        field("to", "To, before", element("input", { type: "text", placeholder: report.end ? formatTime(report.end, 3).replace(" UTC", "") : "", autocomplete: "off" })),
        field("again", "Sent again", choices([["1", "only these"]])),
        element("datalist", { id: "queue-names" }, report.queues.slice(0, 100).map(([name]) => element("option", { value: name }))),
        element("button", { type: "reset" }, "Clear")),
      this.count, this.table.node);
    this.apply();
  }

  /** Set some filters, and clear the others. */
  preset(filters) {
    for (const [name, input] of Object.entries(this.inputs)) {
      const value = filters[name];
      input.value = value === undefined ? "" : name === "session" ? value + 1 : value;
    }
    this.apply();
  }

  value(name) {
    return this.inputs[name].value.trim();
  }

  /** Return a test of a row for each filter that is set. */
  tests() {
    const lower = (name) => this.value(name).toLowerCase();
    const matching = (texts, wanted) => Uint8Array.from(texts, (text) => (text.toLowerCase().includes(wanted) ? 1 : 0));
    const tests = [];
    if (this.value("search")) {
      const names = matching(packets.names, lower("search"));
      const texts = matching(packets.texts, lower("search"));
      const { kind, src, dst, ids, queue, label, about } = packets;
      tests.push((row) => names[kind[row]] || names[src[row]] || names[dst[row]] || names[ids[row]] || texts[queue[row]] || texts[label[row]] || texts[about[row]]);
    }
    if (this.value("kind")) {
      const number = packets.names.indexOf(this.value("kind"));
      tests.push((row) => packets.kind[row] === number);
    }
    for (const name of ["queue", "label"]) {
      if (!this.value(name)) continue;
      const found = matching(packets.texts, lower(name));
      found[0] = 0;
      tests.push((row) => found[packets[name][row]]);
    }
    if (this.value("endpoint")) {
      const found = Uint8Array.from(packets.names, (text) => (isEndpoint(text, lower("endpoint")) ? 1 : 0));
      tests.push((row) => found[packets.src[row]] || found[packets.dst[row]]);
    }
    if (this.value("severity")) {
      const least = Number(this.value("severity"));
      tests.push((row) => packets.severity[row] >= least);
    }
    if (this.value("requirement")) {
      const id = this.value("requirement");
      const found = Uint8Array.from(packets.names, (text) => (text.split(",").includes(id) ? 1 : 0));
      tests.push((row) => found[packets.ids[row]]);
    }
    if (this.value("session")) {
      const number = Number(this.value("session")) - 1;
      tests.push((row) => packets.session[row] === number);
    }
    if (this.value("again")) tests.push((row) => packets.again[row]);
    tests.push(...this.timeTests());
    return tests;
  }

  timeTests() {
    const tests = [];
    for (const [name, sign] of [["from", 1], ["to", -1]]) {
      const input = this.inputs[name];
      const moment = this.value(name) ? parseTime(this.value(name)) : null;
      const isWrong = this.value(name) !== "" && moment === null;
      input.setAttribute("aria-invalid", isWrong ? "true" : "false");
      if (moment === null) continue;
      tests.push((row) => {
        if (packets.nanoseconds[row] < 0) return false;
        const distance = packets.seconds[row] - moment[0] || packets.nanoseconds[row] - moment[1];
        return sign > 0 ? distance >= 0 : distance < 0;
      });
    }
    return tests;
  }

  apply() {
    const tests = this.tests();
    const rows = [];
    for (let row = 0; row < packets.count; row += 1) {
      if (tests.every((test) => test(row))) rows.push(row);
    }
    this.table.show(rows);
    const left = report.totals.packets - packets.count;
    this.count.textContent = `${formatCount(rows.length)} of ${counted(packets.count, "packet")}`
      + (left > 0 ? `; ${formatCount(left)} more are in the capture, but not in this page` : "");
  }

  shown() {
    this.table.draw();
  }
}

/** Whether an endpoint has this address, this :port, or both. */
function isEndpoint(endpoint, wanted) {
  const place = endpoint.lastIndexOf(":");
  return place >= 0 && [endpoint.toLowerCase(), addressOf(endpoint).toLowerCase(), endpoint.slice(place)].includes(wanted);
}
