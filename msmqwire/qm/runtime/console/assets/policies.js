// Policies: properties for all queues whose names are like a pattern.
import { may, path, post, remove, whyNot } from "./api.js";
import { ask } from "./dialog.js";
import { el, table } from "./dom.js";
import { bytes, count, duration } from "./format.js";
import { Pages } from "./paging.js";

const refresh = () => document.dispatchEvent(new Event("refresh"));
const OWN = new Set(["name", "pattern", "order"]);
const SHOWN = {
  quota: (value) => `quota ${value === null ? "no limit" : bytes(value * 1024)}`,
  journal: (value) => (value ? "journal on" : "journal off"),
  time_to_live: (value) => `time to live ${duration(value)}`,
  when_full: (value) => `when full ${String(value).replaceAll("-", " ")}`,
  delivery_limit: (value) => `at most ${count(value)} deliveries`,
  poison: (value) => `poison to ${String(value).replaceAll("-", " ")}`,
};
const what = (policy) => Object.entries(policy).filter(([name, value]) => !OWN.has(name) && value !== undefined).map(
  ([name, value]) => (SHOWN[name] ? SHOWN[name](value) : `${name} ${value}`)).join(", ");

function whole(text, name, least = 0) {
  if (!/^[0-9]{1,10}$/.test(text) || Number(text) < least) throw Object.assign(new Error(`“${text}” is not a whole number from ${least} on.`), { path: name });
  return Number(text);
}

function create() {
  const optional = { optional: true, placeholder: "left as it is" };
  return ask({
    title: "Create a policy", danger: false, action: "Create",
    text: "What was set on a queue itself wins over a policy, and a policy of a higher order over others.",
    fields: [
      { name: "name", label: "Name", placeholder: "orders", most: 64 },
      { name: "pattern", label: "Pattern", placeholder: "private$\\orders*", hint: "Of the name of a queue without the computer; * stands for any text", most: 256 },
      { name: "order", label: "Order", value: "0", type: "number", hint: "A whole number; the highest one wins" },
      { name: "quota", label: "Quota in KiB", ...optional },
      { name: "journal", label: "Journal", type: "select", optional: true, options: [["", "left as it is"], ["true", "on"], ["false", "off"]] },
      { name: "time_to_live", label: "Most time to live in seconds", ...optional },
      { name: "when_full", label: "When a queue is full", type: "select", optional: true, options: [["", "left as it is"], ["refuse", "new messages are refused"], ["oldest-to-dead-letters", "its oldest messages become dead letters"]] },
      { name: "delivery_limit", label: "Deliveries of a message at most", ...optional },
      { name: "poison", label: "At that limit a message goes to", type: "select", optional: true, options: [["", "left as it is"], ["subqueue", "the subqueue poison"], ["dead-letters", "the dead letters"]] },
    ],
    async run(values) {
      const told = { name: values.name, pattern: values.pattern, order: whole(values.order, "order") };
      if (values.quota) told.quota = whole(values.quota, "quota");
      if (values.journal) told.journal = values.journal === "true";
      if (values.time_to_live) told.time_to_live = whole(values.time_to_live, "time_to_live");
      if (values.when_full) told.when_full = values.when_full;
      if (values.delivery_limit) told.delivery_limit = whole(values.delivery_limit, "delivery_limit", 1);
      if (values.poison) told.poison = values.poison;
      await post("/policies", told);
      return "Policy created";
    },
  }).then(refresh);
}

function removal(policy) {
  return ask({
    title: `Delete the policy ${policy.name}?`, action: "Delete",
    text: `Queues like ${policy.pattern} go back to other policies and defaults, apart from what was set on themselves.`,
    async run() {
      await remove(path`/policies/${policy.name}`);
      return "Policy deleted";
    },
  }).then(refresh);
}

export const page = {
  title: () => "Policies",
  mount(content, parameters, signal) {
    const pages = new Pages("/policies", { one: "policy", many: "policies" });
    const shown = table("Policies of queues", [
      { title: "Name", class: "name", cell: (one) => one.name },
      { title: "Pattern", class: "code", cell: (one) => one.pattern },
      { title: "Order", class: "number", cell: (one) => count(one.order) },
      { title: "What it says", class: "text", cell: what },
      may("administer") && {
        title: "Action", cell: (one) => el("button", { type: "button", class: "danger small", "data-focus": one.name, "aria-label": `Delete ${one.name}`, onclick: () => removal(one) }, "Delete…"),
      },
    ].filter(Boolean));
    const why = whyNot("administer");
    content.append(el("section", {},
      el("div", { class: "bar" }, may("administer") && el("button", { type: "button", class: "primary", onclick: create }, "Create policy…"), why && el("p", { class: "hint" }, why), pages.element),
      shown.element));
    return async () => {
      const told = await pages.ask({}, signal);
      if (told === null) return;
      shown.show(told.items, "There are no policies: each queue has what was set on it, and defaults.");
      pages.show(told);
    };
  },
};
