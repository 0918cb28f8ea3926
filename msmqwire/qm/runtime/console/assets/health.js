// Whether the server is ready, what this login may do, and the definitions as a download.
import { address, health, may, state, whyNot } from "./api.js";
import { chip, el, fill, properties, table } from "./dom.js";

export const page = {
  title: () => "Health",
  mount(content, parameters, signal) {
    const chips = el("div", { class: "chips" });
    const shown = table("Checks", [
      { title: "Check", class: "name", cell: (one) => one.name.replaceAll("_", " ") },
      { title: "State", cell: (one) => chip(one.ok ? "good" : "not good", one.ok ? "good" : "bad") },
      { title: "Detail", class: "text", cell: (one) => (typeof one.detail === "object" && one.detail !== null ? JSON.stringify(one.detail) : one.detail) },
    ]);
    content.append(
      chips,
      el("section", {}, el("h2", {}, "Checks"), shown.element,
        el("p", { class: "hint" }, "The same as ", el("code", {}, "/readyz"), " and ", el("code", {}, "msmqwire check"), ".")),
      el("section", {}, el("h2", {}, "This login"), properties([
        ["Token", state.name],
        ["Right", state.right],
        ["Changes", may("read-write") ? "allowed" : whyNot("read-write")],
      ]), whyNot() && may("read-write") && el("p", { class: "hint" }, whyNot())),
      may("administer") && el("section", {}, el("h2", {}, "Definitions"),
        el("p", { class: "hint" }, "Queues, policies, triggers, certificates, routes, hosts and settings, without messages and secrets. ",
          el("code", {}, "msmqwire definitions import"), " takes the file."),
        el("div", { class: "bar actions" }, el("a", { class: "button", href: address("/definitions"), download: "definitions.json" }, "Download the definitions"))));
    return async () => {
      const told = await health("/readyz", signal);
      fill(chips, told.ok, () => chip(told.ok ? "ready" : "not ready", told.ok ? "good" : "bad"));
      shown.show(told.checks, "No check has been made.");
    };
  },
};
