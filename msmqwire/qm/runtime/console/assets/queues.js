// Lists of queues: those of applications, those on the way to other computers, journals and dead letters.
import { get } from "./api.js";
import { chip, el, table } from "./dom.js";
import { bytes, count, plural, rate, words } from "./format.js";

const SIZE = 50;
const FIND_MS = 250;
const STATES = { Connected: "good", Waiting: "warn", OnHold: "warn", Locked: "bad" };

export const linkTo = (name) => `#/queue?${new URLSearchParams({ name })}`;

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
  { title: "Last connection", class: "text", cell: (queue) => queue.last_status && [words(queue.last_status), queue.last_error && ` (${queue.last_error})`] },
];
const ofTheSystem = [name, messages, arriving, leaving, size];

/** One list: find, sort, page by page. */
function list(content, { group, heading, caption, columns, nothing, signal, sort = "queue" }) {
  const query = { sort, descending: sort !== "queue", offset: 0, find: "" };
  const rates = new Rates();
  const refresh = () => document.dispatchEvent(new Event("refresh"));
  const sorted = {
    get by() { return query.sort; },
    get descending() { return query.descending; },
    choose(by) {
      query.descending = query.sort === by ? !query.descending : by === "messages" || by === "bytes";
      query.sort = by;
      query.offset = 0;
      refresh();
    },
  };
  const shown = table(caption, columns, sorted);
  let timer = 0;
  const find = el("input", {
    type: "search", "aria-label": `Find in ${caption.toLowerCase()}`, placeholder: "Find a name or label",
    autocomplete: "off", spellcheck: "false", maxlength: 256,
    oninput() {
      clearTimeout(timer);
      timer = setTimeout(() => { query.find = find.value; query.offset = 0; refresh(); }, FIND_MS);
    },
  });
  const range = el("span", { class: "range" });
  const previous = el("button", { type: "button", onclick: () => { query.offset = Math.max(0, query.offset - SIZE); refresh(); } }, "Previous");
  const next = el("button", { type: "button", onclick: () => { query.offset += SIZE; refresh(); } }, "Next");
  content.append(el("section", {}, heading && el("h2", {}, heading), el("div", { class: "bar" }, find, el("div", { class: "pager" }, range, previous, next)), shown.element));
  return async () => {
    const told = await get("queues", { ...query, group, count: SIZE }, signal);
    if (!told.queues.length && query.offset > 0) {
      query.offset = 0;
      return refresh();
    }
    const by = rates.note(told.queues);
    shown.show(told.queues.map((queue) => ({ ...queue, rates: by.get(queue.queue) })), query.find ? "No queue has this in its name or label." : nothing);
    const end = query.offset + told.queues.length;
    range.textContent = told.total > SIZE ? `${count(query.offset + 1)} to ${count(end)} of ${count(told.total)}` : plural(told.total, "queue");
    previous.hidden = next.hidden = told.total <= SIZE;
    previous.disabled = query.offset === 0;
    next.disabled = end >= told.total;
    return undefined;
  };
}

export const application = {
  title: () => "Queues",
  mount: (content, parameters, signal) => list(content, {
    group: "application", caption: "Private and public queues", columns: ofApplications, signal,
    nothing: "There are no queues yet: msmqwire queue create makes one.",
  }),
};

export const outgoing = {
  title: () => "Outgoing queues",
  mount: (content, parameters, signal) => list(content, {
    group: "outgoing", caption: "Queues on the way to other computers", columns: onTheWay, signal,
    nothing: "Nothing is on its way to other computers.",
  }),
};

export const journals = {
  title: () => "Journals and dead letters",
  mount(content, parameters, signal) {
    const computer = list(content, { group: "system", heading: "Of the computer", caption: "Queues of the computer", columns: ofTheSystem, signal, nothing: "None." });
    const own = list(content, {
      group: "journals", heading: "Of queues", caption: "Journals of queues", columns: ofTheSystem, signal, sort: "messages",
      nothing: "There are no queues, so no journals.",
    });
    return () => Promise.all([computer(), own()]);
  },
};
