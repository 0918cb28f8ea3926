"use strict";
// The first page: what is in the capture.

const COUNTERS = {
  repeated_bytes: ["Bytes that TCP sent again", formatBytes],
  conflicting_bytes: ["Bytes sent again that differ from the first ones", formatBytes],
  lost_bytes: ["Bytes of TCP that are not in the capture", formatBytes],
  far_segments: ["TCP segments too far from the expected ones", formatCount],
  late_segments: ["TCP segments after the end of their direction", formatCount],
  stray_resets: ["TCP resets that no receiver would accept", formatCount],
  evicted: ["Connections ended to make room for others", formatCount],
  "unknown-link": ["Frames of an unknown link type", formatCount],
  "not-ip": ["Frames that are not IP", formatCount],
  cut: ["Frames cut off before the end of their headers", formatCount],
};

class Overview {
  constructor({ onTime, onSession }) {
    this.timeline = new Timeline(report.timeline, onTime);
    this.onSession = onSession;
  }

  build(panel) {
    const { totals } = report;
    fill(panel,
      element("h2", {}, "Overview"),
      element("div", { class: "cards" }, this.cards()),
      this.damage(),
      report.start ? [element("h3", {}, "Over time"), this.timeline.node] : null,
      this.attempts(),
      totals.packets ? null : element("p", { class: "notice" }, "There are no packets of MSMQ or NetWare's queues in these captures."),
      element("div", { class: "tables" },
        this.summaryTable("Protocols", ["Protocol", "Packets", "Bytes", "Findings"], report.protocols.map(([name, count, bytes, found]) =>
          [name, formatCount(count), formatBytes(bytes), formatCount(found)])),
        this.summaryTable("Kinds of packets", ["Kind", "Packets", "Bytes", "Findings"], report.kinds.map(([name, count, bytes, found]) =>
          [button(name, () => showPackets({ kind: name }), { class: "link" }), formatCount(count), formatBytes(bytes), formatCount(found)])),
        this.summaryTable("Queue managers", ["GUID", "Messages from it", "To it", "Addresses"], report.managers.map(([guid, addresses, more, sent, addressed]) =>
          [element("code", {}, guid), formatCount(sent), formatCount(addressed), addresses.join(", ") + (more ? ", …" : "") || "not told"]), [1, 2]),
        this.summaryTable("Queues", ["Queue", "Messages", "Bodies", "Packets", "Findings"], report.queues.map(([name, messages, bytes, count, found]) =>
          [button(name, () => showPackets({ queue: name }), { class: "link" }), formatCount(messages), formatBytes(bytes), formatCount(count), formatCount(found)])),
        this.summaryTable("Bodies", ["Queue", "What is inside", "Messages", "Unlike the others"], report.bodies.map(([queue, kind, count, row, isOdd]) =>
          [button(queue, () => showPackets({ queue }), { class: "link" }), kind, formatCount(count), this.oddBody(row, isOdd)]), [2]),
        this.summaryTable("Computers", ["Address", "Sent", "Received", "Bytes sent", "Bytes received", "Findings"], report.endpoints.map(([address, sent, received, bytesSent, bytesReceived, found]) =>
          [button(address, () => showPackets({ endpoint: address }), { class: "link" }), formatCount(sent), formatCount(received), formatBytes(bytesSent), formatBytes(bytesReceived), formatCount(found)]))),
      this.captures());
  }

  /** Connections that were never established, with what to look at first. */
  attempts() {
    if (!report.attempts.length) return null;
    const causes = (one) => Object.entries(report.attempt_causes).filter(([name]) => one[name]).map(([, cause]) => cause).join("; ");
    return [
      element("h3", {}, "Failed attempts to connect"),
      element("div", { class: "attempts" },
        this.summaryTable("Clients whose connections to MSMQ were never established", ["Client", "Server", "Port", "Attempts", "Refused", "Not answered", "Unreachable", "Look first"], report.attempts.map((one) =>
          [one.src, one.dst, String(one.dst_port), ...["attempts", "refused", "unanswered", "unreachable"].map((name) => formatCount(one[name])), causes(one)]), [2, 3, 4, 5, 6])),
    ];
  }

  cards() {
    const { totals } = report;
    const span = report.start ? between(report.start, report.end) : 0;
    const cards = [
      ["Packets", formatCount(totals.packets), `in ${counted(totals.frames, "frame")}`],
      ["Bytes", formatBytes(totals.bytes), "of these packets"],
      ["Time", report.start ? formatSpan(span) : "none", report.start ? formatTime(report.start, 3) : ""],
      ["Sessions", formatCount(totals.sessions), totals.again ? `${counted(totals.again, "packet")} sent again` : "nothing sent again"],
      ["Findings", formatCount(totals.findings), SEVERITIES.slice(1).reverse().filter((one) => totals[one]).map((one) => `${formatCount(totals[one])} ${one}`).join(", ") || "none"],
    ];
    return cards.map(([name, value, about]) => element("div", { class: "card" },
      element("p", { class: "card-name" }, name), element("p", { class: "card-value", id: `total-${name.toLowerCase()}` }, value), element("p", { class: "muted" }, about)));
  }

  /** A link to the first body of a type that is not what its queue mostly carries. */
  oddBody(row, isOdd) {
    if (!isOdd) return "";
    return row < 0 ? "yes" : button("the first one", () => openDrawer(row), { class: "link odd-body" });
  }

  /** A table of which the first rows are shown until one asks for all. */
  summaryTable(caption, titles, rows, numbers = null) {
    if (!rows.length) return null;
    const most = 12;
    const columns = titles.map((title, place) => [title, numbers ? numbers.includes(place) : place > 0]);
    const holder = element("div", { class: "table-holder", tabindex: 0, role: "group", "aria-label": caption }, plainTable(caption, columns, rows.slice(0, most)));
    if (rows.length > most) {
      const all = button(`Show all ${formatCount(rows.length)}`, () => fill(holder, plainTable(caption, columns, rows)));
      holder.append(all);
    }
    return holder;
  }

  damage() {
    const lines = report.damage.map(([file, offset, why]) => `${file}, byte ${formatCount(offset || 0)}: ${why}`);
    if (report.damages > lines.length) lines.push(`${formatCount(report.damages - lines.length)} more`);
    const counters = Object.entries(report.counters).map(([name, count]) => {
      const [words, format] = COUNTERS[name] || [`Frames ignored: ${name.replaceAll("-", " ")}`, formatCount];
      return `${words}: ${format(count)}`;
    });
    const notRead = report.frames_not_read.map(({ reason, frames }) => `${formatCount(frames)}: ${reason}`);
    return [
      notRead.length ? element("div", { class: "notice", role: "note" }, element("h3", {}, "Frames that were not read"), element("ul", {}, notRead.map((line) => element("li", {}, line)))) : null,
      lines.length ? element("div", { class: "notice", role: "note" }, element("h3", {}, "Damage of the files"), element("ul", {}, lines.map((line) => element("li", {}, line)))) : null,
      report.left_out.length ? element("div", { class: "notice", role: "note" }, element("h3", {}, "Left out of this page"), element("ul", {}, report.left_out.map((line) => element("li", {}, line)))) : null,
      counters.length ? element("div", { class: "quiet" }, element("h3", {}, "Repeated, lost and ignored"), element("ul", {}, counters.map((line) => element("li", {}, line)))) : null,
    ];
  }

  captures() {
    const more = report.totals.captures - report.captures.length;
    return element("div", { class: "quiet" }, element("h3", {}, "Captures"),
      element("ul", {}, report.captures.map((name) => element("li", {}, element("code", {}, name))), more > 0 ? element("li", {}, `${formatCount(more)} more`) : null));
  }

  shown() {
    if (!this.timeline.charts.length) this.timeline.draw();
    this.timeline.resize();
  }
}
