// Lists of queues: those of applications, those on the way to other computers, journals and dead letters.
import { may } from "./api.js";
import { chip, el, table } from "./dom.js";
import { bytes, count, rate, words } from "./format.js";
import { Pages } from "./paging.js";
import { create, linkTo, sendTest } from "./queue_forms.js";

const FIND_MS = 250;
const STATES = { Connected: "good", Waiting: "warn", OnHold: "warn", Locked: "bad" };

export const stateChip = (state) => chip(words(state), STATES[state] || "");

/** Messages a second, from what lists say at two times. */
class Rates {
  constructor() {
    this.before = new Map();
  }

  note(queues) {
    const now = performance.now() / 1000;
    const rates = new Map();
    for (const queue of queues) {
      const before = this.before.get(queue.queue);
      if (before && now - before.at < 0.5) {
        rates.set(queue.queue, before.rates);
        continue;
      }
      const seconds = before ? now - before.at : 0;
      const known = before && queue.put >= before.put && queue.taken >= before.taken;
      const put = known ? (queue.put - before.put) / seconds : null;
      const taken = known ? (queue.taken - before.taken) / seconds : null;
      rates.set(queue.queue, { put, taken });
      this.before.set(queue.queue, { at: now, put: queue.put, taken: queue.taken, rates: { put, taken } });
    }
    return rates;
  }
}

const name = { title: "Queue", sort: "queue", class: "name", cell: (queue) => el("a", { href: linkTo(queue.queue), "data-focus": queue.queue }, queue.queue) };
const messages = { title: "Messages", sort: "messages", class: "number", cell: (queue) => count(queue.messages) };
const size = { title: "Size", sort: "bytes", class: "number", cell: (queue) => bytes(queue.bytes) };
const arriving = { title: "In", class: "number", cell: (queue) => rate(queue.rates.put) };
const leaving = { title: "Out", class: "number", cell: (queue) => rate(queue.rates.taken) };

const ofApplications = [
  name,
  { title: "Kind", sort: "kind", cell: (queue) => [chip(queue.kind), queue.transactional && chip("transactional", "note"), queue.journal && chip("journal", "note")] },
  { title: "Label", sort: "label", class: "text", cell: (queue) => queue.label },
  messages, arriving, leaving, size,
  { title: "In journal", class: "number", cell: (queue) => count(queue.journal_messages) },
];
const onTheWay = [
  { ...name, title: "To" },
  { title: "State", sort: "state", cell: (queue) => stateChip(queue.state) },
  messages, leaving, size,
  { title: "Next hop", class: "text", cell: (queue) => queue.next_hops.join(", ") },
  { title: "Last connection", class: "text", cell: (queue) => queue.last_connection && [words(queue.last_connection.status), !/^0x0+$/.test(queue.last_connection.error) && ` (${queue.last_connection.error})`] },
];
const ofTheSystem = [name, messages, arriving, leaving, size];

/** One list: find, sort, page by page. */
function list(content, { where, query = {}, heading, caption, columns, nothing, signal, sort = "queue", actions }) {
  const chosen = { ...query, sort, descending: sort !== "queue", find: "" };
  const rates = new Rates();
  const pages = new Pages(where, { one: "queue" });
  const sorted = {
    get by() { return chosen.sort; },
    get descending() { return chosen.descending; },
    choose(by) {
      chosen.descending = chosen.sort === by ? !chosen.descending : by === "messages" || by === "bytes";
      chosen.sort = by;
      pages.reset();
    },
  };
  const shown = table(caption, columns, sorted);
  let timer = 0;
  const find = el("input", {
    type: "search", "aria-label": `Find in ${caption.toLowerCase()}`, placeholder: "Find a name or label",
    autocomplete: "off", spellcheck: "false", maxlength: 256,
    oninput() {
      clearTimeout(timer);
      timer = setTimeout(() => { chosen.find = find.value; pages.reset(); }, FIND_MS);
    },
  });
  content.append(el("section", {}, heading && el("h2", {}, heading), el("div", { class: "bar" }, find, actions, pages.element), shown.element));
  return async () => {
    const told = await pages.ask(chosen, signal);
    if (told === null) return;
    const by = rates.note(told.items);
    shown.show(told.items.map((queue) => ({ ...queue, rates: by.get(queue.queue) })), chosen.find ? "No queue has this in its name or label." : nothing);
    pages.show(told);
  };
}

export const application = {
  title: () => "Queues",
  mount: (content, parameters, signal) => list(content, {
    where: "/queues", query: { group: "application" }, caption: "Private and public queues", columns: ofApplications, signal,
    nothing: `There are no queues yet: ${may("administer") ? "Create queue… makes one." : "msmqwire queue create makes one."}`,
    actions: [
      may("administer") && el("button", { type: "button", class: "primary", onclick: create }, "Create queue…"),
      may("read-write") && el("button", { type: "button", onclick: () => sendTest() }, "Send a message…"),
    ],
  }),
};

export const outgoing = {
  title: () => "Outgoing queues",
  mount: (content, parameters, signal) => list(content, {
    where: "/outgoing", caption: "Queues on the way to other computers", columns: onTheWay, signal,
    nothing: "Nothing is on its way to other computers.",
  }),
};

export const journals = {
  title: () => "Journals and dead letters",
  mount(content, parameters, signal) {
    const computer = list(content, { where: "/queues", query: { group: "system" }, heading: "Of the computer", caption: "Queues of the computer", columns: ofTheSystem, signal, nothing: "None." });
    const own = list(content, {
      where: "/queues", query: { group: "journals" }, heading: "Of queues", caption: "Journals of queues", columns: ofTheSystem, signal, sort: "messages",
      nothing: "There are no queues, so no journals.",
    });
    return () => Promise.all([computer(), own()]);
  },
};
