"use strict";
// What puts the page together: tabs, theme, printing.

const PARTS = ["overview", "sessions", "messages", "findings", "packets"];
const panels = {};

function showPart(name, { focuses = false } = {}) {
  for (const part of PARTS) {
    const tab = byId(`tab-${part}`);
    const isShown = part === name;
    tab.setAttribute("aria-selected", isShown ? "true" : "false");
    tab.tabIndex = isShown ? 0 : -1;
    byId(part).hidden = !isShown;
    if (isShown && focuses) tab.focus();
  }
  if (location.hash !== `#${name}`) history.replaceState(null, "", `#${name}`);
  if (panels[name].shown) panels[name].shown();
}

/** Show the table of packets with these filters alone. */
function showPackets(filters) {
  panels.packets.preset(filters);
  showPart("packets");
  byId("main").scrollIntoView();
}

function showInSession(row) {
  const session = packets.session[row];
  panels.sessions.choose(session);
  showPart("sessions");
  panels.sessions.ladder.go(rowsOf(session).indexOf(row));
}

function showTime([from, to]) {
  const typed = (moment) => formatTime(moment).replace(" UTC", "");
  showPackets({ from: typed(from), to: typed(to) });
}

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function showTheme() {
  byId("theme").setAttribute("aria-pressed", isDark() ? "true" : "false");
  panels.overview.timeline.recolour();
}

function setUpTheme() {
  byId("theme").addEventListener("click", () => {
    document.documentElement.dataset.theme = isDark() ? "light" : "dark";
    showTheme();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", showTheme);
  showTheme();
}

function setUpTabs() {
  for (const part of PARTS) byId(`tab-${part}`).addEventListener("click", () => showPart(part));
  document.querySelector('[role="tablist"]').addEventListener("keydown", (event) => {
    const place = PARTS.findIndex((part) => byId(`tab-${part}`) === event.target);
    const to = { ArrowRight: place + 1, ArrowLeft: place - 1 + PARTS.length, Home: 0, End: PARTS.length - 1 }[event.key];
    if (place < 0 || to === undefined) return;
    event.preventDefault();
    showPart(PARTS[to % PARTS.length], { focuses: true });
  });
  addEventListener("hashchange", () => {
    const part = location.hash.slice(1);
    if (PARTS.includes(part)) showPart(part);
  });
}

/** On paper all parts are shown, in light colours, long tables by their first rows. */
function setUpPrinting() {
  let before = null;
  addEventListener("beforeprint", () => {
    before = { theme: document.documentElement.dataset.theme, part: PARTS.find((part) => !byId(part).hidden) };
    document.documentElement.dataset.theme = "light";
    for (const part of PARTS) byId(part).hidden = false;
    for (const panel of Object.values(panels)) {
      if (panel.shown) panel.shown();
      if (panel.table) panel.table.print(true);
    }
    panels.sessions.ladder.print(true);
    panels.overview.timeline.resize(true);
    showTheme();
  });
  addEventListener("afterprint", () => {
    if (before.theme) document.documentElement.dataset.theme = before.theme;
    else delete document.documentElement.dataset.theme;
    for (const panel of Object.values(panels)) if (panel.table) panel.table.print(false);
    panels.sessions.ladder.print(false);
    showPart(before.part);
    showTheme();
  });
  byId("print").addEventListener("click", () => print());
}

async function begin() {
  const { totals } = report;
  const span = report.start ? `, ${formatTime(report.start, 3)} to ${formatTime(report.end, 3)}` : "";
  byId("subtitle").textContent = totals.packets
    ? `${counted(totals.packets, "packet")} in ${counted(totals.captures, "capture")}${span}`
    : `${counted(totals.captures, "capture")} without packets of MSMQ`;
  await unpackPackets();
  await unpackLives();
  panels.overview = new Overview({ onTime: showTime });
  panels.sessions = new SessionsPanel();
  panels.messages = new MessagesPanel();
  panels.findings = new FindingsPanel();
  panels.packets = new PacketsPanel();
  for (const [part, panel] of Object.entries(panels)) panel.build(byId(part));
  byId("loading").remove();
  setUpTabs();
  setUpTheme();
  setUpPrinting();
  const part = location.hash.slice(1);
  showPart(PARTS.includes(part) ? part : "overview");
  addEventListener("resize", whenQuiet(() => panels.overview.timeline.resize()));
  document.documentElement.dataset.ready = "yes";
}

begin();
