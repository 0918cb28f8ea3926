"use strict";
// The messages with their bodies.

class MessagesPanel {
  constructor() {
    this.table = new VirtualTable({
      caption: "Messages",
      height: "60vh",
      empty: "There are no messages.",
      open: openDrawer,
      columns: [
        { title: "No.", number: true, width: "5rem", cell: (row) => formatCount(row + 1), sort: (row) => row },
        { title: "Time (UTC)", width: "10.5rem", cell: (row) => formatClock(...rowTime(row), 6), sort: (row) => row },
        { title: "Queue", width: "20rem", cell: (row) => rowText("queue", row), sort: (row) => rowText("queue", row) },
        { title: "Label", width: "14rem", cell: (row) => rowText("label", row), sort: (row) => rowText("label", row) },
        { title: "Body", number: true, width: "6.5rem", cell: (row) => formatBytes(packets.body_size[row]), sort: (row) => packets.body_size[row] },
        { title: "About", width: "30rem", cell: (row) => (packets.again[row] ? `sent again: ${rowText("about", row)}` : rowText("about", row)) },
      ],
    });
  }

  build(panel) {
    const rows = [];
    for (let row = 0; row < packets.count; row += 1) if (packets.body_size[row] >= 0) rows.push(row);
    fill(panel, element("h2", {}, "Messages"), element("p", { class: "muted" }, `${counted(rows.length, "packet")} with a message in it.`), this.table.node);
    this.table.show(rows);
  }

  shown() {
    this.table.draw();
  }
}
