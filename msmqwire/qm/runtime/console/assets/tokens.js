// The tokens of the API: listed, made, revoked. A secret is shown once.
import { may, path, post, remove, state, whyNot } from "./api.js";
import { ask, tell } from "./dialog.js";
import { announce, chip, el, table } from "./dom.js";
import { time } from "./format.js";
import { Pages } from "./paging.js";

const RIGHTS = [["read", "read: list, show, peek"], ["read-write", "read-write: also send, receive, move, purge"], ["administer", "administer: also queues, tokens, policies, keys"]];
const KINDS = { administer: "warn", "read-write": "note" };
const refresh = () => document.dispatchEvent(new Event("refresh"));

async function create() {
  let made = null;
  await ask({
    title: "Create a token", danger: false, action: "Create",
    fields: [
      { name: "name", label: "Name", placeholder: "billing", hint: "What it is for: the log has this name", most: 64 },
      { name: "right", label: "Right", type: "select", value: "read", options: RIGHTS },
    ],
    async run(values) {
      made = await post("/tokens", values);
      return "Token created";
    },
  });
  refresh();
  if (!made) return;
  const secret = el("input", { id: "secret", type: "text", readonly: true, value: made.token, "aria-describedby": "secret-hint", onfocus: (event) => event.target.select() });
  const copy = el("button", {
    type: "button",
    async onclick() {
      secret.select();
      try {
        await navigator.clipboard.writeText(made.token);
        announce("Copied");
        copy.textContent = "Copied";
      } catch {
        announce("Not copied: the text is selected, copy it by keyboard");
      }
    },
  }, "Copy");
  await tell({
    title: `Token ${made.name}`,
    content: [
      el("label", { for: "secret" }, "Secret"),
      el("div", { class: "secret" }, secret, copy),
      el("p", { class: "hint", id: "secret-hint" }, "It is shown this once, and kept nowhere: the server has only its hash. Programs send it as ", el("code", {}, "Authorization: Bearer …"), "."),
    ],
  });
}

function revoke(token) {
  return ask({
    title: `Revoke ${token.name}?`, action: "Revoke",
    text: `The token holds no more at once, and what it has open ends.${token.name === state.name ? " It is the one that you have logged in with." : ""}`,
    async run() {
      await remove(path`/tokens/${token.name}`);
      return "Token revoked";
    },
  }).then(refresh);
}

export const page = {
  title: () => "Tokens",
  mount(content, parameters, signal) {
    const pages = new Pages("/tokens", { one: "token" });
    const shown = table("Tokens of the API", [
      { title: "Name", class: "name", cell: (one) => one.name },
      { title: "Right", cell: (one) => chip(one.right, KINDS[one.right] || "") },
      { title: "Made (UTC)", class: "time", cell: (one) => time(one.created) },
      may("administer") && {
        title: "Action", cell: (one) => el("button", { type: "button", class: "danger small", "data-focus": one.name, "aria-label": `Revoke ${one.name}`, onclick: () => revoke(one) }, "Revoke…"),
      },
    ].filter(Boolean));
    const why = whyNot("administer");
    content.append(el("section", {},
      el("p", { class: "hint" }, "Programs and browsers use the API with these. The token in the file console-token is not among them: it is new with each start, and may do everything."),
      el("div", { class: "bar" }, may("administer") && el("button", { type: "button", class: "primary", onclick: create }, "Create token…"), why && el("p", { class: "hint" }, why), pages.element),
      shown.element));
    return async () => {
      const told = await pages.ask({}, signal);
      if (told === null) return;
      shown.show(told.items, "There are no tokens: msmqwire token create makes one, too.");
      pages.show(told);
    };
  },
};
