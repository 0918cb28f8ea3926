// One message: its properties, and its body as text and as bytes.
import { get, post, state } from "./api.js";
import { ask } from "./dialog.js";
import { el, fill, properties } from "./dom.js";
import { bytes, dump, duration, time } from "./format.js";
import { classChip, page as queuePage } from "./queue.js";
import { linkTo } from "./queues.js";

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
        get("message", { queue, lookup_identifier: id }, signal), get("queue", { queue }, signal)]);
      done = true; // a message never changes
      fill(shown, message, () => parts(queue, id, message, about));
    };
  },
};

function parts(queue, id, message, about) {
  const preview = message.preview;
  const download = `/api/body?${new URLSearchParams({ queue, lookup_identifier: id })}`;
  return [
    state.write && about.kind !== "outgoing" && el("div", { class: "bar actions" }, buttons(queue, id, about)),
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
    ["Body type", message.body_type_name],
    ["Application tag", message.application],
    ["Hops", message.hops],
    ["Extension", message.extension && `${bytes(atob(message.extension).length)}`],
  ]);
}

function buttons(queue, id, about) {
  const back = (done) => { if (done) location.hash = linkTo(queue); };
  const main = queue.replace(/;[^;\\]*$/, "");
  const own = [main, ...Object.keys(about.subqueues).map((sub) => `${main};${sub}`)].filter((one) => one !== queue);
  const changed = (name, told, text) => async (to) => {
    await post(name, { queue, lookup_identifier: id, ...told(to) });
    return text;
  };
  const subqueue = () => ask({
    title: "Move to a subqueue", danger: false, action: "Move",
    text: "The message stays as it is, with its identifier. A subqueue that is missing is made.",
    field: { label: "Subqueue, or the queue itself", placeholder: `${main};poison`, hint: `${main};NAME`, choices: own },
    run: changed("move", (to) => ({ to }), "Message moved"),
  }).then(back);
  const resend = () => ask({
    title: "Send to another queue", danger: false, action: "Send",
    text: "The message is sent again as a new one of this computer, with a new identifier, and leaves this queue. A signature is lost.",
    field: { label: "Queue", placeholder: "private$\\orders", hint: "A queue of this computer, or a format name as DIRECT=OS:host\\private$\\orders", choices: [] },
    run: changed("resend", (to) => ({ to }), "Message sent"),
  }).then(back);
  const remove = () => ask({
    title: "Delete this message?", action: "Delete",
    text: "It is deleted for good. Its sender is told if it asked for that.",
    run: changed("delete", () => ({}), "Message deleted"),
  }).then(back);
  const system = about.kind === "system";
  return [
    !system && el("button", { type: "button", onclick: subqueue }, "Move…"),
    el("button", { type: "button", onclick: resend }, "Send elsewhere…"),
    el("button", { type: "button", class: "danger", onclick: remove }, "Delete…"),
  ];
}
