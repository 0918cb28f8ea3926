"use strict";
// The packet beside whatever was clicked: a panel at the right, closed by Escape.

let drawerRow = -1;
let beforeDrawer = null;

async function openDrawer(row) {
  const drawer = byId("drawer");
  if (drawer.hidden) beforeDrawer = document.activeElement;
  drawerRow = row;
  drawer.hidden = false;
  document.body.classList.add("with-drawer");
  const place = element("div", {}, element("p", { class: "muted" }, "Unpacking …"));
  fill(drawer, element("div", { class: "drawer-tools" },
    button("← Previous", () => openDrawer(Math.max(0, row - 1)), { disabled: row === 0 }),
    button("Next →", () => openDrawer(row + 1), { disabled: row + 1 >= packets.count }),
    packets.session[row] >= 0 ? button("In its session", () => showInSession(row)) : null,
    button("Close", closeDrawer, { class: "close" })), packetHead(row, "h2"), place);
  drawer.scrollTop = 0;
  drawer.focus({ preventScroll: true });
  const detail = await detailOf(row);
  if (drawerRow !== row) return;
  if (detail === null) {
    fill(place, element("p", { class: "notice" }, "Fields and bytes of this packet are not in the report. msmqwire report --details takes in more."));
    return;
  }
  const view = new PacketView(detail);
  fill(place, view.node);
  if (view.marks.length) view.pin(view.marks[0], true);
}

function closeDrawer() {
  byId("drawer").hidden = true;
  document.body.classList.remove("with-drawer");
  drawerRow = -1;
  if (beforeDrawer && beforeDrawer.isConnected) beforeDrawer.focus({ preventScroll: true });
}

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !byId("drawer").hidden) closeDrawer();
});
