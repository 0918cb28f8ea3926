"use strict";
// What was chosen, beside what it was chosen from: a panel at the right, closed by Escape.

let drawerRow = -1;
let beforeDrawer = null;

/** Open the drawer with some content; `row` is the packet that it is about, -1 for none. */
function showDrawer(row, tools, ...content) {
  const drawer = byId("drawer");
  if (drawer.hidden) beforeDrawer = document.activeElement;
  drawerRow = row;
  drawer.hidden = false;
  fill(drawer, element("div", { class: "drawer-tools" }, tools, button("Close", closeDrawer, { class: "close" })), content);
  drawer.scrollTop = 0;
  drawer.focus({ preventScroll: true });
}

async function openDrawer(row, { lifeFirst = false } = {}) {
  const place = element("div", {}, element("p", { class: "muted" }, "Unpacking …"));
  const life = lifeOf(row);
  showDrawer(row, [
    button("← Previous", () => openDrawer(row - 1), { disabled: row === 0 }),
    button("Next →", () => openDrawer(row + 1), { disabled: row + 1 >= packets.count }),
    packets.session[row] >= 0 ? button("In its session", () => showInSession(row)) : null,
  ], packetHead(row, "h2"), ...(life < 0 ? [place] : lifeFirst ? [lifeSection(life, row), place] : [place, lifeSection(life, row)]));
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
  drawerRow = -1;
  if (beforeDrawer && beforeDrawer.isConnected) beforeDrawer.focus({ preventScroll: true });
}

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && !byId("drawer").hidden) closeDrawer();
});
