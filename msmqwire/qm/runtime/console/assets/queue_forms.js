// Forms of queues: create, change properties and rights, delete, send a test message.
import { patch, path, post, remove } from "./api.js";
import { ask } from "./dialog.js";
import { plural } from "./format.js";

const RIGHTS = ["all", "receive", "receive_journal", "peek", "send", "get_properties", "set_properties", "get_permissions", "change_permissions", "take_ownership", "delete"];
const READING = ["all", "receive", "peek"];
const refresh = () => document.dispatchEvent(new Event("refresh"));
export const linkTo = (name) => `#/queue?${new URLSearchParams({ name })}`;

/** Kibibytes of a text; null for no limit. Throws an error with the name of the field. */
function number(text, name, { none = false, least = 0 } = {}) {
  if (none && (text === "" || text.toLowerCase() === "no limit")) return null;
  if (!/^-?[0-9]{1,10}$/.test(text) || Number(text) < least) throw Object.assign(new Error(`“${text}” is not a whole number${least ? "" : " of 0 or more"}.`), { path: name });
  return Number(text);
}

/** The properties that can be changed, as the queue shows them. `read` makes the value of a text, `policy` is whether policies have it. */
const PROPERTIES = [
  { name: "label", label: "Label", most: 124, optional: true },
  { name: "journal", label: "Journal", type: "select", options: [["true", "on"], ["false", "off"]], read: (text) => text === "true", policy: true },
  { name: "quota", label: "Quota in KiB", placeholder: "no limit", optional: true, read: (text) => number(text, "quota", { none: true }), policy: true },
  { name: "journal_quota", label: "Quota of the journal in KiB", placeholder: "no limit", optional: true, read: (text) => number(text, "journal_quota", { none: true }) },
  { name: "time_to_live", label: "Most time to live in seconds", placeholder: "no limit", optional: true, read: (text) => number(text, "time_to_live", { none: true }), policy: true },
  { name: "when_full", label: "When it is full", type: "select", options: [["refuse", "new messages are refused"], ["oldest-to-dead-letters", "its oldest messages become dead letters"]], policy: true },
  { name: "delivery_limit", label: "Deliveries of a message at most", placeholder: "no limit", optional: true, read: (text) => number(text, "delivery_limit", { none: true }), policy: true },
  { name: "poison", label: "At that limit a message goes to", type: "select", options: [["subqueue", "the subqueue poison"], ["dead-letters", "the dead letters"]], policy: true },
  { name: "authenticated", label: "Takes", type: "select", options: [["false", "all messages"], ["true", "signed messages only"]], read: (text) => text === "true" },
  { name: "privacy", label: "Encryption", type: "select", options: [["none", "only messages that are not encrypted"], ["optional", "optional"], ["body", "only encrypted messages"]] },
  { name: "multicast", label: "Multicast address", placeholder: "234.1.1.1:8001", optional: true, read: (text) => text || null },
];
const DEFAULT = "default";

const shownAs = (value) => (value === null || value === undefined ? "" : String(value));

/** A form with what holds. Only what was changed is sent; "default" forgets what was set on the queue. */
export function change(queue) {
  const known = PROPERTIES.filter((property) => property.name in queue && !(property.name === "multicast" && queue.transactional));
  const policies = queue.policies ?? {};
  const fields = known.map((property) => {
    const from = policies[property.name];
    const forget = property.policy && "policies" in queue;
    const hint = from !== undefined ? `from the policy ${from}; a value here wins over it` : forget ? `“${DEFAULT}” forgets what was set on the queue` : undefined;
    const options = property.options && (forget ? [...property.options, [DEFAULT, "default, or what a policy says"]] : property.options);
    return { ...property, options, value: shownAs(queue[property.name]), hint };
  });
  return ask({
    title: "Change properties", danger: false, action: "Change", fields,
    text: `${queue.queue} holds ${plural(queue.messages, "message")}. What is not changed here stays as it is.`,
    async run(values) {
      const told = {};
      for (const { name, read = (text) => text } of known) {
        if (values[name] === shownAs(queue[name])) continue;
        told[name] = values[name].toLowerCase() === DEFAULT && name !== "label" ? DEFAULT : read(values[name]);
      }
      if (Object.keys(told).length === 0) return "Nothing was changed";
      await patch(path`/queues/${queue.queue}`, told);
      return "Properties changed";
    },
  }).then(refresh);
}

/** A form for the rights of one user or group. */
export function changeRights(queue) {
  const words = queue.kind === "system" ? READING : RIGHTS;
  const known = [...new Set([...Object.keys(queue.allow ?? {}), ...Object.keys(queue.deny ?? {}), "everyone", "anonymous", "callers"])];
  return ask({
    title: "Change rights", danger: false, action: "Change",
    text: `Rights to ${queue.queue} of one user or group. What others have stays as it is.`,
    fields: [
      { name: "who", label: "User or group", placeholder: "HOME\\anne", hint: "A name, a SID (S-1-…), everyone, anonymous, or callers: this computer itself", choices: known },
      { name: "kind", label: "Rights are", type: "select", value: "allow", options: [["allow", "allowed"], ["deny", "denied"]] },
      ...words.map((word) => ({ name: word, label: word.replaceAll("_", " "), type: "check", value: false })),
      { name: "none", label: "none: forget all of this user or group", type: "check", value: false },
    ],
    async run(values) {
      const chosen = values.none ? ["none"] : words.filter((word) => values[word]);
      if (!chosen.length) throw Object.assign(new Error("Choose a right, or none."), { path: words[0] });
      await patch(path`/queues/${queue.queue}`, { [values.kind]: [`${values.who}:${chosen.join(",")}`] });
      return "Rights changed";
    },
  }).then(refresh);
}

/** A form for a new queue; its page is shown then. */
export async function create() {
  let made = "";
  const done = await ask({
    title: "Create a queue", danger: false, action: "Create",
    fields: [
      { name: "queue", label: "Name", value: "private$\\", hint: "private$\\NAME; whether it is transactional can't be changed later", most: 512 },
      { name: "label", label: "Label", most: 124, optional: true },
      { name: "transactional", label: "Transactional", type: "check", value: false },
      { name: "journal", label: "Keep received messages in its journal", type: "check", value: false },
      { name: "quota", label: "Quota in KiB", placeholder: "no limit", optional: true },
    ],
    async run(values) {
      const told = { queue: values.queue, transactional: values.transactional };
      if (values.label) told.label = values.label;
      if (values.journal) told.journal = true;
      if (values.quota) told.quota = number(values.quota, "quota", { none: true });
      made = (await post("/queues", told)).queue;
      return "Queue created";
    },
  });
  if (done) location.hash = linkTo(made);
}

/** Delete a queue, after its name was typed if it has messages. */
export async function removeQueue(queue) {
  const inside = queue.messages + Object.values(queue.subqueues ?? {}).reduce((sum, one) => sum + one, 0) + (queue.journal_messages ?? 0);
  const done = await ask({
    title: "Delete this queue?", action: "Delete the queue",
    text: inside > 0
      ? `${queue.queue} is deleted for good with ${plural(inside, "message")}, those of its journal and subqueues among them.`
      : `${queue.queue} is deleted for good. It is empty.`,
    confirm: inside > 0 ? { text: queue.queue, what: "the name of the queue" } : undefined,
    async run() {
      await remove(path`/queues/${queue.queue}`);
      return "Queue deleted";
    },
  });
  if (done) location.hash = "#/queues";
}

/** Text in base64, in UTF-16: a body of the type text of the snap-in of Windows, or UTF-8. */
function encoded(text, kind) {
  let data;
  if (kind === "utf-8") data = new TextEncoder().encode(text);
  else {
    data = new Uint8Array(text.length * 2);
    for (let at = 0; at < text.length; at += 1) {
      const unit = text.charCodeAt(at);
      data[2 * at] = unit & 0xff;
      data[2 * at + 1] = unit >> 8;
    }
  }
  let binary = "";
  for (let at = 0; at < data.length; at += 0x8000) binary += String.fromCharCode(...data.subarray(at, at + 0x8000));
  return btoa(binary);
}

const VT_BSTR = 8;
const DELIVERIES = [["express", "express: kept in memory only"], ["recoverable", "recoverable: kept on disk"], ["transactional", "transactional: in order, exactly once"]];

/** Send a message to a queue or any format name. */
export function sendTest(queue = null) {
  const transactional = queue?.transactional;
  return ask({
    title: "Send a test message", danger: false, action: "Send",
    fields: [
      { name: "to", label: "To", value: queue?.queue ?? "", placeholder: "private$\\orders", hint: "A queue of this computer, or a format name as DIRECT=OS:host\\private$\\orders" },
      { name: "label", label: "Label", value: "test", most: 249, optional: true },
      { name: "body", label: "Body, as text", type: "area", optional: true },
      { name: "encoding", label: "Body type", type: "select", value: "utf-16", options: [["utf-16", "string (VT_BSTR, UTF-16)"], ["utf-8", "bytes (no type, UTF-8)"]] },
      { name: "priority", label: "Priority", type: "select", value: "3", options: [..."01234567"].map((one) => [one, one]), hint: "7 is the highest; transactional messages all have 0" },
      {
        name: "delivery", label: "Delivery", type: "select", value: transactional ? "transactional" : "recoverable",
        options: transactional === undefined ? DELIVERIES : DELIVERIES.filter(([name]) => (name === "transactional") === transactional),
        hint: transactional === undefined ? undefined : transactional ? "This queue takes transactional messages only" : "This queue takes no transactional messages",
      },
    ],
    async run(values) {
      const message = { label: values.label, body: encoded(values.body, values.encoding), delivery: values.delivery };
      if (values.encoding === "utf-16") message.body_type = VT_BSTR;
      if (values.delivery !== "transactional") message.priority = Number(values.priority);
      const told = await post("/messages", { to: values.to, messages: [message] });
      return `Message sent: ${told.sent[0]}`;
    },
  }).then((done) => { if (done) refresh(); });
}

/** What a purge asks and does. */
export function purge(queue) {
  return ask({
    title: "Delete all messages?",
    text: `${plural(queue.messages, "message")} of ${queue.queue} are deleted for good. Senders that asked for it are told.`,
    action: "Delete all",
    async run() {
      const told = await post(path`/queues/${queue.queue}/purge`);
      return `${plural(told.purged, "message")} deleted`;
    },
  }).then(refresh);
}

export function pause(queue) {
  const paused = queue.state === "OnHold";
  return ask({
    title: paused ? "Resume this queue?" : "Pause this queue?", danger: false,
    text: paused ? `Messages in ${queue.queue} are sent again.` : `Messages in ${queue.queue} are kept, and not sent until it is resumed.`,
    action: paused ? "Resume" : "Pause",
    async run() {
      await patch(path`/queues/${queue.queue}`, { paused: !paused });
      return paused ? "Resumed" : "Paused";
    },
  }).then(refresh);
}
