"use strict";
// The life of one message: what the captures show of it, step by step.

const BAD_STATES = ["expired", "refused", "deleted", "rejected", "dead-lettered"];
const GOOD_STATES = ["delivered", "read", "stored", "received"];

function stateName(life) {
  return report.lives.states[lives.state[life]][0];
}

function stateBadge(state, isStuck = false) {
  const mood = BAD_STATES.includes(state) ? "bad" : isStuck ? "stuck" : GOOD_STATES.includes(state) ? "well" : "open";
  return element("span", { class: `badge ${mood}` }, isStuck ? `${state}, stuck` : state);
}

function lifeTime(life) {
  return [lives.seconds[life], lives.nanoseconds[life]];
}

function eventTime(event) {
  return [lives.events.seconds[event], lives.events.nanoseconds[event]];
}

/** Return the list of the events of a message. */
function eventList(life, current = -1) {
  const begin = lifeTime(life);
  const text = (column, event) => lives.texts[lives.events[column][event]];
  return element("ol", { class: "events" }, eventsOf(life).map((event) => {
    const row = rowOfEvent(event);
    const what = report.lives.whats[lives.events.what[event]];
    return element("li", { class: row === current && row >= 0 ? "current" : null },
      element("span", { class: "event-time" }, spanAfter("+", begin, eventTime(event)) || "?"),
      element("span", {}, element("b", {}, what), ` ${text("src", event)} → ${text("dst", event)}`,
        text("about", event) ? element("span", { class: "muted" }, ` ${text("about", event)}`) : null, " ",
        row >= 0 ? button(`packet ${formatCount(row + 1)}`, () => openDrawer(row), { class: "link" }) : null));
  }), lives.events_omitted[life] ? element("li", {}, element("span", {}), element("span", { class: "muted" }, `${counted(lives.events_omitted[life], "event")} more`)) : null);
}

/** Return what is told of a message where one of its packets is shown. */
function lifeSection(life, row) {
  return element("section", { class: "life" },
    element("h3", {}, "Life of the message ", stateBadge(stateName(life), Boolean(lives.stuck[life]))),
    element("p", {}, `${capitalised(lifeText("explanation", life))}.`),
    eventList(life, row));
}

function capitalised(text) {
  return text.slice(0, 1).toUpperCase() + text.slice(1);
}

async function openLife(life) {
  const rows = eventsOf(life).map(rowOfEvent).filter((row) => row >= 0);
  const row = rows.find((one) => packets.body_size[one] >= 0);
  if (row !== undefined) {
    await openDrawer(row, { lifeFirst: true });
    return;
  }
  showDrawer(-1, [], element("h2", {}, "Message ", element("code", {}, lifeText("identity", life))), lifeSection(life, -1));
}
