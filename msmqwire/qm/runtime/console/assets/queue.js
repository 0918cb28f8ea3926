// One queue: its properties and its messages, a page at a time.
import { get, post, state } from "./api.js";
import { ask } from "./dialog.js";
import { chip, el, fill, properties, table } from "./dom.js";
import { bytes, count, ofSeconds, plural, time, words } from "./format.js";
import { stateChip } from "./queues.js";

const SIZE = 50;

export const linkTo = (queue, id) => `#/message?${new URLSearchParams({ queue, id })}`;

const limit = (kilobytes) => (kilobytes === null ? "no limit" : bytes(kilobytes * 1024));
const yes = (value) => (value ? "yes" : "no");

const columns = (queue) => [
  { title: "Label", class: "name", cell: (one) => el("a", { href: linkTo(queue, one.lookup_identifier), "data-focus": one.lookup_identifier }, one.label || "(no label)") },
  { title: "Class", cell: (one) => classChip(one) },
  { title: "Delivery", cell: (one) => one.delivery },
  { title: "Priority", class: "number", cell: (one) => one.priority },
  { title: "Body", class: "number", cell: (one) => bytes(one.body_size) },
  { title: "Sent (UTC)", class: "time", cell: (one) => time(one.sent) },
  { title: "Arrived (UTC)", class: "time", cell: (one) => time(one.arrived) },
  { title: "Identifier", class: "code", cell: (one) => one.identifier },
];

export function classChip(message) {
  const name = message.class_name.replace(/^MQMSG_CLASS_/, "");
  return chip(words(name), name.startsWith("NACK") ? "bad" : name.startsWith("ACK") ? "good" : "");
}

export const page = {
  title: (parameters) => parameters.get("name") || "Queue",
  section(parameters) {
    const name = (parameters.get("name") || "").toLowerCase();
    if (name.startsWith("system$;") || name.endsWith(";journal")) return "journals";
    return /^(direct|private|public|machine|multicast)=/.test(name) ? "outgoing" : "queues";
  },
  mount(content, parameters, signal) {
    const name = parameters.get("name") || "";
    const chips = el("div", { class: "chips" });
    const actions = el("div", { class: "bar actions", hidden: !state.write });
    const about = el("div");
    const history = table("Connection history", [
      { title: "Time (UTC)", class: "time", cell: (one) => ofSeconds(one.time) },
      { title: "State", cell: (one) => words(one.status) },
      { title: "Error", class: "code", cell: (one) => one.error },
      { title: "Addresses", class: "text", cell: (one) => one.addresses.join(", ") },
    ]);
    const shown = table("Messages", columns(name));
    const range = el("span", { class: "range" });
    const button = (text, onclick) => el("button", { type: "button", onclick }, text);
    const refresh = () => document.dispatchEvent(new Event("refresh"));
    let before = []; // the lookup identifiers that earlier pages begin behind
    let after = "";
    let last = "";
    const firstPage = button("First", () => { before = []; after = ""; refresh(); });
    const previous = button("Previous", () => { after = before.pop() ?? ""; refresh(); });
    const next = button("Next", () => {
      if (after === last) return; // that page is on its way
      before.push(after);
      after = last;
      refresh();
    });
    const historySection = el("section", { hidden: true }, el("h2", {}, "Connections"), history.element);
    content.append(
      chips, actions, el("section", {}, el("h2", {}, "Properties"), about), historySection,
      el("section", {}, el("h2", {}, "Messages"), el("div", { class: "bar" }, el("div", { class: "pager" }, range, firstPage, previous, next)), shown.element));

    return async () => {
      const asked = after;
      const [queue, peeked] = await Promise.all([
        get("queue", { queue: name }, signal), get("messages", { queue: name, after, count: SIZE }, signal)]);
      if (asked !== after) return; // another page has been turned to meanwhile
      fill(chips, [queue.kind, queue.state, queue.transactional], () => [
        chip(queue.kind), queue.state && stateChip(queue.state), queue.transactional && chip("transactional", "note")]);
      fill(actions, [queue.state, queue.messages > 0], () => buttons(queue));
      fill(about, queue, () => (queue.kind === "outgoing" ? ofOutgoing(queue) : ofQueue(queue)));
      historySection.hidden = queue.kind !== "outgoing";
      if (queue.connection_history) history.show(queue.connection_history, "It has not tried to connect yet.");
      shown.show(peeked.messages, before.length ? "There are no messages behind those of the page before." : "The queue is empty.");
      last = peeked.messages.at(-1)?.lookup_identifier ?? after;
      const start = before.length * SIZE;
      range.textContent = peeked.messages.length && peeked.total > SIZE
        ? `${count(start + 1)} to ${count(start + peeked.messages.length)} of ${count(peeked.total)}`
        : plural(peeked.total, "message");
      firstPage.hidden = previous.hidden = next.hidden = !peeked.more && before.length === 0;
      firstPage.disabled = previous.disabled = before.length === 0;
      next.disabled = !peeked.more;
    };
  },
};

function buttons(queue) {
  const paused = queue.state === "OnHold";
  const pause = () => ask({
    title: paused ? "Resume this queue?" : "Pause this queue?", danger: false,
    text: paused ? `Messages in ${queue.queue} are sent again.` : `Messages in ${queue.queue} are kept, and not sent until it is resumed.`,
    action: paused ? "Resume" : "Pause",
    async run() {
      await post("pause", { queue: queue.queue, paused: !paused });
      return paused ? "Resumed" : "Paused";
    },
  }).then(() => document.dispatchEvent(new Event("refresh")));
  const purge = () => ask({
    title: "Delete all messages?",
    text: `${plural(queue.messages, "message")} of ${queue.queue} are deleted for good. Senders that asked for it are told.`,
    action: "Delete all",
    async run() {
      const told = await post("purge", { queue: queue.queue });
      return `${plural(told.purged, "message")} deleted`;
    },
  }).then(() => document.dispatchEvent(new Event("refresh")));
  return [
    queue.state && el("button", { type: "button", "data-focus": "pause", onclick: pause }, paused ? "Resume…" : "Pause…"),
    el("button", { type: "button", class: "danger", "data-focus": "purge", disabled: queue.messages === 0, onclick: purge }, "Purge…"),
  ];
}

function ofOutgoing(queue) {
  return properties([
    ["Messages", `${count(queue.messages)} (${bytes(queue.bytes)})`],
    ["State", words(queue.state)],
    ["Next hops", queue.next_hops.join(", ")],
  ]);
}

function ofQueue(queue) {
  const rights = (entries) => {
    const lines = Object.entries(entries || {}).map(([who, what]) => `${who}: ${what.join(", ").replaceAll("_", " ") || "nothing"}`);
    return lines.length ? el("span", { class: "lines" }, lines.join("\n")) : null;
  };
  return properties([
    ["Messages", `${count(queue.messages)} (${bytes(queue.bytes)})`],
    ["Label", queue.label],
    ["Transactional", yes(queue.transactional)],
    ["Authenticated", yes(queue.authenticated)],
    ["Privacy", queue.privacy],
    ["Quota", limit(queue.quota)],
    ["Journal", queue.journal ? `on, ${plural(queue.journal_messages, "message")}` : `off, ${plural(queue.journal_messages, "message")}`],
    ["Journal quota", limit(queue.journal_quota)],
    ["Base priority", queue.base_priority],
    ["Open", plural(queue.open, "handle")],
    ["Multicast address", queue.multicast],
    ["Subqueues", Object.entries(queue.subqueues).map(([sub, number]) => `${sub} (${count(number)})`).join(", ")],
    ["Format name", queue.format_name && el("code", {}, queue.format_name)],
    ["Identifier", el("code", {}, queue.identifier)],
    ["Type", el("code", {}, queue.type)],
    ["Owner", queue.owner],
    ["Allowed", rights(queue.allow)],
    ["Denied", rights(queue.deny)],
  ]);
}
