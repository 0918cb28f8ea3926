// The messages of a queue: a page at a time, searched piece by piece, chosen to be requeued.
import { list, may, path } from "./api.js";
import { chip, el, table } from "./dom.js";
import { bytes, count, plural, time, words } from "./format.js";
import { Pages } from "./paging.js";
import { exportOf, requeue } from "./requeue.js";

const FIND_MS = 400;
const ENOUGH = 50; // found messages after which a search waits to be continued

export const linkTo = (queue, id) => `#/message?${new URLSearchParams({ queue, id })}`;

export function classChip(message) {
  const name = message.class_name.replace(/^MQMSG_CLASS_/, "");
  return chip(words(name), name.startsWith("NACK") ? "bad" : name.startsWith("ACK") ? "good" : "");
}

const columns = (queue, chosen, changed) => [
  chosen && {
    title: "Chosen", class: "choice",
    cell: (one) => el("input", {
      type: "checkbox", "aria-label": `Choose ${one.label || one.identifier}`, checked: chosen.has(one.lookup_identifier), "data-focus": `choose ${one.lookup_identifier}`,
      onchange(event) {
        if (event.target.checked) chosen.add(one.lookup_identifier);
        else chosen.delete(one.lookup_identifier);
        changed();
      },
    }),
  },
  { title: "Label", header: true, class: "name", cell: (one) => el("a", { href: linkTo(queue, one.lookup_identifier), "data-focus": one.lookup_identifier }, one.label || "(no label)") },
  { title: "Class", cell: (one) => classChip(one) },
  { title: "Delivery", cell: (one) => one.delivery },
  { title: "Priority", class: "number", cell: (one) => one.priority },
  { title: "Deliveries", class: "number", cell: (one) => (one.deliveries === undefined ? null : count(one.deliveries)) },
  { title: "Reason", class: "text", cell: (one) => one.reason && words(one.reason) },
  { title: "Body", class: "number", cell: (one) => bytes(one.body_size) },
  { title: "Sent (UTC)", class: "time", cell: (one) => time(one.sent) },
  { title: "Arrived (UTC)", class: "time", cell: (one) => time(one.arrived) },
  { title: "Identifier", class: "code", cell: (one) => one.identifier },
].filter(Boolean);

/** A search that goes on until enough is found, the queue has ended, or it is stopped. */
class Search {
  constructor(where, text, signal, show) {
    this.where = where;
    this.text = text;
    this.signal = signal;
    this.show = show;
    this.found = [];
    this.cursor = undefined;
    this.ended = this.running = this.stopped = false;
    this.looked = 0;
  }

  async run() {
    this.running = true;
    this.stopped = false;
    const enough = this.found.length + ENOUGH;
    try {
      while (!this.ended && !this.stopped && !this.signal.aborted && this.found.length < enough) {
        const told = await list(this.where, { find: this.text, cursor: this.cursor, limit: ENOUGH, body_max: 0 }, this.signal);
        if (this.stopped) break;
        this.found.push(...told.items);
        this.looked += told.examined ?? 0;
        this.cursor = told.next ?? undefined;
        this.ended = told.next === null;
        this.show(this);
      }
    } finally {
      this.running = false;
      this.show(this);
    }
  }
}

/** Append the section of the messages of a queue; return the function that brings it up to date. */
export function messageList(content, name, signal) {
  const where = path`/queues/${name}/messages`;
  const refresh = () => document.dispatchEvent(new Event("refresh"));
  const pages = new Pages(where, { one: "message" });
  const chosen = may("read-write") ? new Set() : null;
  const outcome = el("div");
  const shown = table("Messages", columns(name, chosen, () => told()));
  let search = null;
  let total = 0;
  let system = false;
  let items = [];
  let timer = 0;

  const find = el("input", {
    type: "search", "aria-label": "Find in messages", placeholder: "Find a label, identifier or text", autocomplete: "off", spellcheck: "false", maxlength: 256,
    oninput() {
      clearTimeout(timer);
      timer = setTimeout(begin, FIND_MS);
    },
  });
  const state = el("span", { class: "found", role: "status" });
  const goOn = el("button", { type: "button", onclick: () => search && run(search) }, "Search on");
  const stop = el("button", { type: "button", onclick: () => { if (search) search.stopped = true; } }, "Stop");
  const searching = el("div", { class: "pager", hidden: true }, state, goOn, stop);
  const button = (text, focus, onclick) => el("button", { type: "button", "data-focus": focus, onclick }, text);
  const clear = () => { chosen.clear(); told(); };
  const requeueChosen = button("", "requeue-chosen", () => requeue(name, [...chosen], chosen.size, outcome).then(clear));
  const requeueAll = button("Requeue all…", "requeue-all", () => requeue(name, null, total, outcome));
  const chooseAll = button("Choose all here", "choose-all", () => {
    const all = items.every((one) => chosen.has(one.lookup_identifier));
    for (const one of items) {
      if (all) chosen.delete(one.lookup_identifier);
      else chosen.add(one.lookup_identifier);
    }
    told();
    redraw();
  });
  const download = (text) => el("a", { class: "button", download: "messages.jsonl" }, text);
  const exportPage = download("Export this page");
  const exportAll = download("Export all");
  exportAll.href = exportOf(name);
  const choices = el("div", { class: "bar" }, chosen && [chooseAll, requeueChosen, requeueAll], exportPage, exportAll);
  content.append(outcome, el("section", {}, el("h2", {}, "Messages"),
    el("div", { class: "bar" }, find, searching, pages.element), choices, shown.element));

  let marked = 0; // grows with each choice, so that the table is drawn anew
  function told() {
    marked += 1;
    requeueChosen.textContent = chosen.size ? `Requeue ${plural(chosen.size, "message")}…` : "Requeue chosen…";
    requeueChosen.disabled = chosen.size === 0;
  }
  if (chosen) told();

  function redraw() {
    shown.show(items, search ? "Nothing found so far." : pages.before.length ? "There are no messages behind those of the page before." : "The queue is empty.", marked);
  }

  function begin() {
    if (search) search.stopped = true;
    const text = find.value;
    search = text ? new Search(where, text, signal, showSearch) : null;
    searching.hidden = !search;
    pages.element.hidden = exportPage.hidden = search !== null;
    exportAll.textContent = search ? "Export what is found" : "Export all";
    exportAll.href = exportOf(name, { find: text });
    chosen?.clear();
    if (chosen) told();
    if (search) run(search);
    else pages.reset();
  }

  function run(one) {
    one.run().catch((error) => {
      if (error.name === "AbortError") return;
      state.textContent = `The search has stopped: ${error.message}`;
    });
  }

  function showSearch(one) {
    if (one !== search) return;
    items = one.found;
    const looked = one.looked ? ` in ${plural(one.looked, "message")}` : "";
    state.textContent = `${count(one.found.length)} found${looked}${one.running ? ", searching…" : one.ended ? "" : ", not all searched"}`;
    goOn.hidden = one.running || one.ended;
    stop.hidden = !one.running;
    shown.show(items, one.running ? "Searching…" : "No message has this in its label, identifier, correlation or body.", marked);
  }

  return async (queue) => {
    system = queue.kind === "outgoing";
    total = queue.messages;
    requeueAll.disabled = total === 0;
    requeueAll.hidden = requeueChosen.hidden = chooseAll.hidden = system || chosen === null;
    if (search) return;
    const page = await pages.ask({ body_max: 0 }, signal);
    if (page === null || search) return; // another page has been turned to meanwhile
    items = page.items;
    redraw();
    pages.show(page, total);
    const first = page.items[0]?.lookup_identifier;
    exportPage.href = exportOf(name, { after: first === undefined || first === "0" ? null : String(BigInt(first) - 1n), limit: pages.size });
    exportPage.hidden = exportAll.hidden = items.length === 0;
  };
}
