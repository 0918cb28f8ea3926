// Sessions with other queue managers, and transactions that have not ended.
import { chip, el, table } from "./dom.js";
import { bytes, count, words } from "./format.js";
import { Pages } from "./paging.js";

const STATES = { OPEN: "good", CLOSED: "bad", WAITING_RECONNECT: "warn" };

function list(content, signal, { where, one, shown }) {
  const pages = new Pages(where, { one, size: 100 });
  content.append(el("section", {}, el("div", { class: "bar" }, pages.element), shown.table.element));
  return async () => {
    const told = await pages.ask({}, signal);
    if (told === null) return;
    shown.table.show(told.items, shown.nothing);
    pages.show(told);
  };
}

export const sessions = {
  title: () => "Sessions",
  mount: (content, parameters, signal) => list(content, signal, {
    where: "/sessions", one: "session",
    shown: {
      nothing: "There is no session with another queue manager.",
      table: table("Sessions with other queue managers", [
        { title: "Peer", class: "name", cell: (one) => one.peer || one.address },
        { title: "State", cell: (one) => chip(words(one.state), STATES[one.state] || "warn") },
        { title: "Role", cell: (one) => one.role },
        { title: "Address", class: "code", cell: (one) => one.address },
        { title: "Window, own / peer's", class: "number", cell: (one) => `${count(one.window)} / ${count(one.peer_window)}` },
        { title: "Sent, unacknowl\u00adedged", class: "number", cell: (one) => count(one.sent_unacknowledged) },
        { title: "Bytes unacknowl\u00adedged", class: "number", cell: (one) => bytes(one.sent_unacknowledged_bytes) },
        { title: "Sent, not saved", class: "number", cell: (one) => count(one.sent_unsaved) },
        { title: "Received, unacknowl\u00adedged", class: "number", cell: (one) => count(one.received_unacknowledged) },
        { title: "Queues", class: "number", cell: (one) => count(one.queues) },
        { title: "Failures", class: "number", cell: (one) => count(one.failures) },
        { title: "Queue manager", class: "code", cell: (one) => one.queue_manager },
      ]),
    },
  }),
};

export const transactions = {
  title: () => "Transactions",
  mount: (content, parameters, signal) => list(content, signal, {
    where: "/transactions", one: "transaction",
    shown: {
      nothing: "No transaction is under way.",
      table: table("Transactions that have not ended", [
        { title: "Transaction", class: "code", cell: (one) => one.transaction },
        { title: "Operations", class: "number", cell: (one) => count(one.operations) },
        { title: "Put", class: "number", cell: (one) => count(one.kinds.enqueue || 0) },
        { title: "Received", class: "number", cell: (one) => count(one.kinds.dequeue || 0) },
        { title: "Moved", class: "number", cell: (one) => count(one.kinds.move || 0) },
        { title: "Of a coordinator", cell: (one) => (one.coordinator ? (one.prepared ? "yes, prepared" : "yes") : "no") },
      ]),
    },
  }),
};
