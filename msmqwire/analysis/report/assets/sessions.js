"use strict";
// The sessions, and the ladder of one of them.

class SessionsPanel {
  constructor() {
    this.ladder = new Ladder();
    this.number = -1;
    const of = (row) => report.sessions[row];
    this.table = new VirtualTable({
      caption: "Sessions: choose one to see its ladder",
      height: "30vh",
      empty: "There are no sessions.",
      open: (row) => this.choose(row),
      columns: [
        { title: "No.", number: true, width: "3.6rem", cell: (row) => formatCount(row + 1), sort: (row) => row },
        { title: "Protocol", width: "9.5rem", cell: (row) => of(row).protocol, sort: (row) => of(row).protocol },
        { title: "First sender", width: "11rem", cell: (row) => of(row).left, sort: (row) => of(row).left },
        { title: "Other end", width: "11rem", cell: (row) => of(row).right, sort: (row) => of(row).right },
        { title: "Begins", width: "8.7rem", cell: (row) => formatClock(...of(row).start, 6), sort: (row) => of(row).start[0] + of(row).start[1] / 1e9 },
        { title: "Lasts", number: true, width: "6rem", cell: (row) => formatSpan(between(of(row).start, of(row).end)), sort: (row) => between(of(row).start, of(row).end) || 0 },
        { title: "Packets", number: true, width: "5.4rem", cell: (row) => formatCount(sum(of(row).packets)), sort: (row) => sum(of(row).packets) },
        { title: "Messages", number: true, width: "6.2rem", cell: (row) => formatCount(of(row).groups.message || 0), sort: (row) => of(row).groups.message || 0 },
        { title: "Bytes", number: true, width: "6.2rem", cell: (row) => formatBytes(sum(of(row).bytes)), sort: (row) => sum(of(row).bytes) },
        { title: "Again", number: true, width: "4.4rem", cell: (row) => formatCount(of(row).again), sort: (row) => of(row).again },
        { title: "Gaps", number: true, width: "4rem", cell: (row) => formatCount(of(row).groups.gap || 0), sort: (row) => of(row).groups.gap || 0 },
        { title: "Findings", number: true, width: "5.6rem", cell: (row) => formatCount(of(row).findings), sort: (row) => of(row).findings },
        { title: "Handshake", width: "6.4rem", cell: (row) => of(row).state || "–", sort: (row) => of(row).state },
      ],
    });
    this.title = element("h3", { id: "ladder-title" });
    this.about = element("p", { class: "muted" });
  }

  build(panel) {
    fill(panel, element("h2", {}, "Sessions"),
      element("p", { class: "muted" }, "A session is a TCP connection, or for datagrams two computers that talk with each other."),
      this.table.node, this.title, this.about, this.ladder.node);
    this.table.show(report.sessions.map((_, number) => number));
    this.ladder.node.hidden = !report.sessions.length;
    const liveliest = report.sessions.reduce((best, session, number) =>
      (best < 0 || sum(session.packets) > sum(report.sessions[best].packets) ? number : best), -1);
    if (liveliest >= 0) this.choose(liveliest);
  }

  choose(number) {
    this.number = number;
    this.table.mark(number);
    const session = report.sessions[number];
    const stream = session.stream === null ? "datagrams" : `TCP connection ${session.stream}`;
    fill(this.title, `Session ${formatCount(number + 1)}: ${session.left} ↔ ${session.right}`);
    const kinds = Object.entries(session.groups).map(([group, count]) => counted(count, ...GROUP_WORDS[group])).join(", ");
    fill(this.about, `${session.protocol}, ${stream}, ${formatTime(session.start, 6)}${spanAfter(", ", session.start, session.end)}: ${kinds}. `,
      button("These packets in the table", () => showPackets({ session: number }), { class: "link" }));
    this.ladder.show(number);
  }

  shown() {
    this.table.draw();
    this.ladder.draw();
  }
}

const GROUP_WORDS = {
  handshake: ["handshake packet"], message: ["message"], acknowledgement: ["acknowledgement"], call: ["call"], answer: ["answer"],
  other: ["other packet"], malformed: ["malformed packet"], gap: ["gap"],
};

function sum(numbers) {
  return numbers.reduce((total, number) => total + number, 0);
}
