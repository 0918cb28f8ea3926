"use strict";
// The messages: what became of each, and of those to each queue.

const MILESTONES = ["received", "stored", "delivered", "read"];

class MessagesPanel {
  constructor() {
    this.state = "";
    const latency = (name) => (life) => lives.latencies[name][life];
    const span = (name) => (life) => (latency(name)(life) < 0 ? "" : formatSpan(latency(name)(life) / 1e9));
    const isReached = (name) => report.lives.queues.some((queue) => queue.latencies[name]);
    const milestone = (name, title) => ({ title, number: true, width: "5.8rem", cell: span(name), sort: latency(name) });
    this.table = new VirtualTable({
      caption: "Messages: choose one to see its life",
      height: "60vh",
      empty: "There are no such messages.",
      open: openLife,
      columns: [
        { title: "First seen", width: "8.7rem", cell: (life) => formatClock(...lifeTime(life), 6), sort: (life) => lives.seconds[life] + lives.nanoseconds[life] / 1e9 },
        { title: "State", width: "9rem", cell: (life) => stateBadge(stateName(life), Boolean(lives.stuck[life])), sort: (life) => lives.state[life] },
        { title: "Label", width: "10rem", cell: (life) => lifeText("label", life), sort: (life) => lifeText("label", life) },
        { title: "Queue", width: "15rem", cell: (life) => lifeText("queue", life) || "not known", sort: (life) => lifeText("queue", life) },
        { title: "Body", number: true, width: "5.6rem", cell: (life) => (lives.body_size[life] < 0 ? "" : formatBytes(lives.body_size[life])), sort: (life) => lives.body_size[life] },
        ...MILESTONES.filter(isReached).map((name) => milestone(name, capitalised(name))),
        { title: "Again", number: true, width: "4.5rem", cell: (life) => formatCount(lives.retransmissions[life]), sort: (life) => lives.retransmissions[life] },
        { title: "In words", width: "19rem", cell: (life) => lifeText("explanation", life) },
      ],
    });
    this.count = element("p", { class: "filter-count", role: "status" });
  }

  build(panel) {
    const { count, stuck, states, queues } = report.lives;
    if (!count) {
      fill(panel, element("h2", {}, "Messages"), element("p", { class: "notice" }, "There are no messages in these captures."));
      return;
    }
    const choice = (state, title, number) => button(`${title} ${formatCount(number)}`, (event) => this.filter(state, event.target), { class: "chip", "aria-pressed": state === "" ? "true" : "false" });
    this.chips = element("div", { class: "chips", role: "group", "aria-label": "State" }, choice("", "All", count),
      states.filter(([, number]) => number).map(([state, number]) => choice(state, capitalised(state), number)),
      stuck ? choice("stuck", "Stuck", stuck) : null);
    this.search = element("input", { type: "search", id: "message-search", placeholder: "label, queue or words", autocomplete: "off", on: { input: whenQuiet(() => this.apply()) } });
    fill(panel, element("h2", {}, "Messages"),
      element("p", { class: "muted" }, "What became of each message, as far as the captures show it. Times are counted from when it was seen first; half of those to a queue take no longer than the first time in its row. A message is stuck if no queue manager has taken it over."),
      element("div", { class: "table-holder wide", tabindex: 0, role: "group", "aria-label": "Queues" }, this.queueTable(queues)),
      this.chips,
      element("div", { class: "filter search" }, element("label", { for: "message-search" }, "Search"), this.search),
      this.count, this.table.node);
    this.apply();
  }

  queueTable(queues) {
    const shown = MILESTONES.filter((name) => queues.some((queue) => queue.latencies[name]));
    const columns = [["Queue", false], ["Messages", true], ["Bodies", true], ["States", false], ["Sent again", true], ["Stuck", true],
      ...shown.map((name) => [`${capitalised(name)} after`, true])];
    const most = 20;
    const rows = queues.slice(0, most).map((queue) => [
      queue.queue || "not known", formatCount(queue.messages), formatBytes(queue.bytes),
      Object.entries(queue.states).map(([state, number]) => `${formatCount(number)} ${state}`).join(", "),
      formatCount(queue.retransmissions), formatCount(queue.stuck),
      ...shown.map((name) => (queue.latencies[name] ? formatSpan(queue.latencies[name][0] / 1e9) : "–")),
    ]);
    const table = plainTable("Queues", columns, rows);
    for (const [number, queue] of queues.slice(0, most).entries()) {
      shown.forEach((name, place) => {
        const cell = table.tBodies[0].rows[number].cells[columns.length - shown.length + place];
        const [, most95, longest] = queue.latencies[name] || [];
        if (longest === undefined) return;
        cell.append(element("span", { class: "muted" }, `95 %: ${formatSpan(most95 / 1e9)}`), element("span", { class: "muted" }, `longest: ${formatSpan(longest / 1e9)}`));
      });
    }
    return [table, queues.length > most ? element("p", { class: "muted" }, `${counted(queues.length - most, "more queue")}.`) : null];
  }

  filter(state, chosen) {
    this.state = state;
    for (const chip of this.chips.children) chip.setAttribute("aria-pressed", chip === chosen ? "true" : "false");
    this.apply();
  }

  apply() {
    const wanted = this.search.value.trim().toLowerCase();
    const found = wanted ? lives.texts.map((text) => text.toLowerCase().includes(wanted)) : null;
    const shown = [];
    for (let life = 0; life < lives.count; life += 1) {
      if (this.state === "stuck" ? !lives.stuck[life] : this.state && stateName(life) !== this.state) continue;
      if (found && !["label", "queue", "explanation", "identity"].some((column) => found[lives[column][life]])) continue;
      shown.push(life);
    }
    this.table.show(shown);
    const left = report.lives.count - report.lives.kept;
    this.count.textContent = `${formatCount(shown.length)} of ${counted(lives.count, "message")}`
      + (left > 0 ? `; ${formatCount(left)} more are summed up above, but not in this table` : "");
  }

  shown() {
    this.table.draw();
  }
}
