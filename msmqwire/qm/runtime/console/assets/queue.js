// One queue: its properties, its chart, its messages, and what can be done with it.
import { get, may, path, whyNot } from "./api.js";
import { Chart } from "./chart.js";
import { chip, el, fill, properties, table } from "./dom.js";
import { bytes, count, duration, ofSeconds, plural, rate, words } from "./format.js";
import { messageList } from "./message_list.js";
import { change, changeRights, pause, purge, removeQueue, sendTest } from "./queue_forms.js";
import { stateChip } from "./queues.js";

const CHARTS = [
  { title: "Messages", lines: [["Messages", "messages", "one"]], text: count },
  { title: "Messages a second", lines: [["In", "put", "one"], ["Out", "taken", "two"]], text: rate, rates: true },
];
const CHART_EVERY_S = 10; // as often as the server takes samples of queues

const limit = (kilobytes) => (kilobytes === null ? "no limit" : bytes(kilobytes * 1024));
const yes = (value) => (value ? "yes" : "no");

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
    const actions = el("div", { class: "bar actions" });
    const about = el("div");
    const history = table("Connection history", [
      { title: "Time (UTC)", class: "time", cell: (one) => ofSeconds(one.time) },
      { title: "State", cell: (one) => words(one.status) },
      { title: "Error", class: "code", cell: (one) => one.error },
      { title: "Addresses", class: "text", cell: (one) => one.addresses.join(", ") },
    ]);
    const charts = CHARTS.map((chart) => new Chart(chart));
    const kept = el("p", { class: "hint" });
    const historySection = el("section", { hidden: true }, el("h2", {}, "Connections"), history.element);
    content.append(
      chips, actions, el("section", {}, el("h2", {}, "Properties"), about), historySection,
      el("section", {}, el("h2", {}, "Last half hour"), el("div", { class: "charts" }, charts.map((chart) => chart.element)), kept));
    const messages = messageList(content, name, signal);
    signal.addEventListener("abort", () => charts.forEach((chart) => chart.end()));
    let drawn = -Infinity;

    async function draw() {
      if (performance.now() / 1000 - drawn < CHART_EVERY_S) return;
      const samples = await get(path`/queues/${name}/samples`, {}, signal);
      drawn = performance.now() / 1000;
      if (signal.aborted) return;
      charts.forEach((chart) => chart.show(samples));
      kept.textContent = `A sample every ${plural(samples.seconds, "second")}. The server keeps them for ${plural(samples.queues_max, "queue")}: those that are looked at and those that messages move in.`;
    }

    return async () => {
      const queue = await get(path`/queues/${name}`, {}, signal);
      fill(chips, [queue.kind, queue.state, queue.transactional], () => [
        chip(queue.kind), queue.state && stateChip(queue.state), queue.transactional && chip("transactional", "note")]);
      fill(actions, queue, () => buttons(queue));
      fill(about, queue, () => (queue.kind === "outgoing" ? ofOutgoing(queue) : ofQueue(queue)));
      historySection.hidden = queue.kind !== "outgoing";
      if (queue.connection_history) history.show(queue.connection_history, "It has not tried to connect yet.");
      await messages(queue);
      await draw();
    };
  },
};

function buttons(queue) {
  const why = whyNot("administer");
  const button = (text, focus, onclick, more = {}) => el("button", { type: "button", "data-focus": focus, onclick: () => onclick(queue), ...more }, text);
  const own = queue.kind === "private" || queue.kind === "public";
  const isMain = own && !/;[^;\\]*$/.test(queue.queue);
  return [
    may("read-write") && own && button("Send a message…", "send", sendTest),
    may("administer") && queue.state && button(queue.state === "OnHold" ? "Resume…" : "Pause…", "pause", pause),
    may("administer") && isMain && button("Change properties…", "change", change),
    may("administer") && (isMain || queue.kind === "system") && "allow" in queue && button("Change rights…", "rights", changeRights),
    may("read-write") && button("Purge…", "purge", purge, { class: "danger", disabled: queue.messages === 0 }),
    may("administer") && isMain && button("Delete queue…", "delete", removeQueue, { class: "danger" }),
    why && el("p", { class: "hint" }, why),
  ];
}

function ofOutgoing(queue) {
  return properties([
    ["Messages", `${count(queue.messages)} (${bytes(queue.bytes)})`],
    ["State", words(queue.state)],
    ["Next hops", queue.next_hops.join(", ")],
  ]);
}

const WHEN_FULL = { refuse: "refuses new messages", "oldest-to-dead-letters": "its oldest messages become dead letters" };
const POISON = { subqueue: "the subqueue poison", "dead-letters": "the dead letters" };

function ofQueue(queue) {
  const rights = (entries) => {
    const lines = Object.entries(entries || {}).map(([who, what]) => `${who}: ${what.join(", ").replaceAll("_", " ") || "nothing"}`);
    return lines.length ? el("span", { class: "lines" }, lines.join("\n")) : null;
  };
  const from = (name, value) => (queue.policies?.[name] && value !== undefined ? [value, " ", el("span", { class: "none" }, `(policy ${queue.policies[name]})`)] : value);
  const known = (name, text) => (name in queue ? from(name, text(queue[name])) : undefined);
  return properties([
    ["Messages", `${count(queue.messages)} (${bytes(queue.bytes)})`],
    ["Label", queue.label],
    ["Transactional", yes(queue.transactional)],
    ["Authenticated", yes(queue.authenticated)],
    ["Privacy", queue.privacy],
    ["Quota", from("quota", limit(queue.quota))],
    ["When full", known("when_full", (value) => WHEN_FULL[value] ?? value)],
    ["Time to live at most", known("time_to_live", (value) => duration(value))],
    ["Deliveries at most", known("delivery_limit", (value) => (value === null ? "no limit" : count(value)))],
    ["At that limit to", known("poison", (value) => POISON[value] ?? value)],
    ["Journal", from("journal", queue.journal ? `on, ${plural(queue.journal_messages, "message")}` : `off, ${plural(queue.journal_messages, "message")}`)],
    ["Journal quota", limit(queue.journal_quota)],
    ["Base priority", queue.base_priority],
    ["Open", plural(queue.open, "handle")],
    ["Multicast address", queue.multicast],
    ["Subqueues", Object.keys(queue.subqueues).length ? el("span", {}, Object.entries(queue.subqueues).flatMap(([sub, number], at) => [
      at > 0 && ", ", el("a", { href: `#/queue?${new URLSearchParams({ name: `${queue.queue};${sub}` })}` }, `${sub} (${count(number)})`)])) : null],
    ["Format name", queue.format_name && el("code", {}, queue.format_name)],
    ["Identifier", el("code", {}, queue.identifier)],
    ["Type", el("code", {}, queue.type)],
    ["Owner", queue.owner],
    ["Allowed", rights(queue.allow)],
    ["Denied", rights(queue.deny)],
  ]);
}
