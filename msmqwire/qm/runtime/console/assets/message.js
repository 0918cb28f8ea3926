// One message: its properties, and its body as text and as bytes.
import { address, get, may, path, post, remove, whyNot } from "./api.js";
import { ask } from "./dialog.js";
import { el, fill, properties } from "./dom.js";
import { bytes, count, dump, duration, time, words } from "./format.js";
import { classChip } from "./message_list.js";
import { page as queuePage } from "./queue.js";
import { linkTo } from "./queue_forms.js";

const HEX_BYTES = 4096;

export const page = {
  title: () => "Message",
  section: (parameters) => queuePage.section(new URLSearchParams({ name: parameters.get("queue") || "" })),
  mount(content, parameters, signal) {
    const queue = parameters.get("queue") || "";
    const id = parameters.get("id") || "";
    const shown = el("div", { class: "content" });
    content.append(el("p", { class: "path" }, "In ", el("a", { href: linkTo(queue) }, queue)), shown);
    let done = false;
    return async () => {
      if (done) return;
      const [message, about] = await Promise.all([
        get(path`/queues/${queue}/messages/${id}/preview`, {}, signal), get(path`/queues/${queue}`, {}, signal)]);
      done = true; // a message never changes
      fill(shown, message, () => parts(queue, id, message, about));
    };
  },
};

function parts(queue, id, message, about) {
  const preview = message.preview;
  const download = address(path`/queues/${queue}/messages/${id}/body`);
  return [
    about.kind !== "outgoing" && el("div", { class: "bar actions" }, buttons(queue, id, about)),
    el("section", {}, el("h2", {}, "Properties"), ofMessage(message)),
    el("section", {},
      el("h2", {}, "Body"),
      el("p", { class: "hint" }, `${bytes(message.body_size)}, ${preview.format}`, preview.note && ` – ${preview.note}`, " · ",
        el("a", { href: download, download: "body.bin" }, "Download the body")),
      preview.text !== null && preview.text !== "" && [
        el("h3", { id: "as-text" }, "As text"),
        el("pre", { class: "body", tabindex: "0", role: "region", "aria-labelledby": "as-text" }, preview.text)],
      preview.value !== null && [
        el("h3", { id: "as-value" }, "Value"),
        el("pre", { class: "body", tabindex: "0", role: "region", "aria-labelledby": "as-value" }, preview.value)],
      preview.headers_format !== null && [
        el("h3", { id: "headers" }, `Headers: ${preview.headers_format}`),
        el("pre", { class: "body", tabindex: "0", role: "region", "aria-labelledby": "headers" },
          Object.entries(preview.headers).map(([name, value]) => `${name}: ${value}`).join("\n") || " ")],
      preview.hex && [
        el("h3", { id: "as-bytes" }, "As bytes", message.body_size > HEX_BYTES && ` (the first ${bytes(HEX_BYTES)})`),
        el("pre", { class: "dump", tabindex: "0", role: "region", "aria-labelledby": "as-bytes" }, dump(preview.hex))]),
  ];
}

function ofMessage(message) {
  const code = (text) => text && el("code", {}, text);
  return properties([
    ["Label", message.label],
    ["Class", classChip(message)],
    ["Delivery", message.delivery],
    ["Priority", message.priority],
    ["Sent (UTC)", time(message.sent)],
    ["Arrived (UTC)", time(message.arrived)],
    ["Identifier", code(message.identifier)],
    ["Lookup identifier", code(message.lookup_identifier)],
    ["Correlation", code(message.correlation)],
    ["Sender", code(message.sender)],
    ["Authenticated", message.authenticated ? `yes, signature of MSMQ ${message.signature}` : message.signature ? `no, but signed (MSMQ ${message.signature})` : "no"],
    ["Encrypted", message.encrypted || "no"],
    ["Source", code(message.source)],
    ["Destination", code(message.destination)],
    ["Response queue", code(message.response_queue)],
    ["Administration queue", code(message.admin_queue)],
    ["Acknowledge", message.acknowledge.join(", ").replaceAll("_", " ")],
    ["Time to reach queue", duration(message.time_to_reach_queue)],
    ["Time to be received", duration(message.time_to_be_received)],
    ["Kept by the sender", [message.journal && "journal", message.dead_letter && "dead letter"].filter(Boolean).join(", ") || "no"],
    ["Deliveries", message.deliveries === undefined ? undefined : count(message.deliveries)],
    ["Reason", message.reason && words(message.reason)],
    ["Body type", message.body_type_name],
    ["Application tag", message.application],
    ["Hops", message.hops],
    ["Extension", message.extension && `${bytes(atob(message.extension).length)}`],
  ]);
}

function buttons(queue, id, about) {
  const why = whyNot("read-write");
  if (why) return el("p", { class: "hint" }, why);
  const back = (done) => { if (done) location.hash = linkTo(queue); };
  const where = path`/queues/${queue}/messages/${id}`;
  const main = queue.replace(/;[^;\\]*$/, "");
  const own = [main, ...Object.keys(about.subqueues ?? {}).map((sub) => `${main};${sub}`)].filter((one) => one !== queue);
  const subqueue = () => ask({
    title: "Move to a subqueue", danger: false, action: "Move",
    text: "The message stays as it is, with its identifier. A subqueue that is missing is made.",
    fields: [{ name: "to", label: "Subqueue, or the queue itself", placeholder: `${main};poison`, hint: `${main};NAME`, choices: own }],
    async run({ to }) {
      await post(`${where}/move`, { to });
      return "Message moved";
    },
  }).then(back);
  const requeue = () => ask({
    title: "Requeue this message?", danger: false, action: "Requeue",
    text: "It goes back to the queue that it was sent to or moved from, and leaves this one.",
    async run() {
      await post(`${where}/requeue`, {});
      return "Message requeued";
    },
  }).then(back);
  const resend = () => ask({
    title: "Send to another queue", danger: false, action: "Send",
    text: "The message leaves this queue for another one.",
    fields: [{ name: "to", label: "Queue", placeholder: "private$\\orders", hint: "A queue of this computer, or a format name as DIRECT=OS:host\\private$\\orders" }],
    async run({ to }) {
      await post(`${where}/requeue`, { to });
      return "Message sent";
    },
  }).then(back);
  const removal = () => ask({
    title: "Delete this message?", action: "Delete",
    text: "It is deleted for good. Its sender is told if it asked for that.",
    async run() {
      await remove(where);
      return "Message deleted";
    },
  }).then(back);
  return [
    el("button", { type: "button", onclick: requeue }, "Requeue…"),
    about.kind !== "system" && el("button", { type: "button", onclick: subqueue }, "Move…"),
    el("button", { type: "button", onclick: resend }, "Send elsewhere…"),
    el("button", { type: "button", class: "danger", onclick: removal }, "Delete…"),
  ];
}
