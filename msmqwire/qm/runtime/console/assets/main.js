// The frame of all pages: login, navigation, the stream of samples.
import { announce, el } from "./dom.js";
import { address, get, may, post, remember, state } from "./api.js";
import * as health from "./health.js";
import * as log from "./log.js";
import * as message from "./message.js";
import * as overview from "./overview.js";
import * as policies from "./policies.js";
import * as queue from "./queue.js";
import * as queues from "./queues.js";
import * as sessions from "./sessions.js";
import * as tokens from "./tokens.js";

const PAGES = {
  overview: overview.page, queues: queues.application, outgoing: queues.outgoing, journals: queues.journals,
  queue: queue.page, message: message.page, sessions: sessions.sessions, transactions: sessions.transactions,
  log: log.page, tokens: tokens.page, policies: policies.page, health: health.page,
};
const main = document.getElementById("main");
let shown = null;
let stream = null;
let refreshing = false;
let again = false; // asked for while it went on
let first = true; // the browser has placed the focus itself

/** Show the page that the address names; its parameters follow a question mark. */
async function show() {
  const [, name = "overview", query = ""] = location.hash.match(/^#\/([a-z]+)(?:\?(.*))?$/) || [];
  const page = Object.hasOwn(PAGES, name) ? PAGES[name] : PAGES.overview;
  shown?.abort?.abort();
  const current = { abort: new AbortController() };
  shown = current;
  const parameters = new URLSearchParams(query);
  const heading = el("h1", { tabindex: "-1" }, page.title(parameters));
  const problem = el("p", { class: "error", role: "alert", hidden: true });
  const content = el("div", { class: "content" });
  main.replaceChildren(heading, problem, content);
  document.title = `${page.title(parameters)} – ${state.computer} – msmqwire console`;
  for (const link of document.querySelectorAll("#nav a")) {
    const own = link.getAttribute("href") === `#/${page.section?.(parameters) || name}`;
    if (own) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  if (!first) heading.focus();
  first = false;
  current.refresh = page.mount(content, parameters, current.abort.signal);
  current.problem = problem;
  await refresh();
}

/** Bring what is shown up to date; what can't be read is told, and tried again with the next sample. */
async function refresh(sample = null) {
  const current = shown;
  if (!current?.refresh || document.hidden) return;
  if (refreshing) {
    again ||= sample === null; // after a sample there is another one
    return;
  }
  refreshing = true;
  again = false;
  try {
    await current.refresh(sample);
    current.problem.hidden = true;
  } catch (error) {
    if (error.name !== "AbortError" && error.status !== 401) {
      current.problem.textContent = error.message;
      current.problem.hidden = false;
    }
  } finally {
    refreshing = false;
    if (again || current !== shown) refresh();
  }
}

document.addEventListener("refresh", () => refresh());

function tell(live, text) {
  const element = document.getElementById("live");
  if (element.dataset.live === String(live)) return;
  if (element.dataset.live !== undefined) announce(text);
  element.dataset.live = String(live);
  document.getElementById("live-text").textContent = text;
}

function listen() {
  stream?.close();
  stream = new EventSource(address("/samples/events"));
  stream.addEventListener("sample", (event) => {
    tell(true, "Live");
    refresh(JSON.parse(event.data));
  });
  stream.addEventListener("error", () => {
    tell(false, "Not connected");
    get("/login").then((session) => (session.csrf ? null : leave()), () => null); // else it connects again
  });
}

function enter(session) {
  remember(session);
  document.getElementById("computer").textContent = session.computer;
  const mode = document.getElementById("mode");
  mode.textContent = may("administer") ? "Administer" : may("read-write") ? "Read-write" : "Read-only";
  mode.classList.toggle("warn", may("read-write"));
  for (const id of ["status", "nav"]) document.getElementById(id).hidden = false;
  listen();
  show();
}

function leave() {
  stream?.close();
  stream = null;
  shown?.abort?.abort();
  shown = null;
  for (const id of ["status", "nav"]) document.getElementById(id).hidden = true;
  document.querySelector("dialog")?.close();
  askForToken();
}

function askForToken() {
  document.title = "Log in – msmqwire console";
  const error = el("p", { class: "error", role: "alert", hidden: true });
  const field = el("input", {
    id: "token", type: "password", required: true, autocomplete: "off", spellcheck: "false", maxlength: 256,
    "aria-describedby": "token-hint",
  });
  const form = el("form", { class: "login", onsubmit: submit },
    el("h1", { tabindex: "-1" }, "Log in"),
    el("label", { for: "token" }, "Token"), field,
    el("p", { class: "hint", id: "token-hint" }, "It is in the file ", el("code", {}, "console-token"),
      " in the folder of the queue manager, and new with each start; one of msmqwire token create is good, too."),
    error, el("div", { class: "buttons" }, el("button", { type: "submit", class: "primary" }, "Log in")));

  async function submit(event) {
    event.preventDefault();
    try {
      const session = await post("/login", { token: field.value });
      first = false; // what had the focus is gone
      enter(session);
      announce("Logged in");
    } catch (refused) {
      error.textContent = refused.message;
      error.hidden = false;
      field.select();
    }
  }

  main.replaceChildren(form);
  field.focus();
}

document.getElementById("log-out").addEventListener("click", async () => {
  await post("/logout").catch(() => null);
  leave();
});
document.addEventListener("logged-out", () => {
  if (stream) leave();
});
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // the address names the page
  main.focus();
});
document.addEventListener("visibilitychange", () => refresh());
addEventListener("hashchange", () => {
  if (stream) show();
});

get("/login").then((session) => (session.csrf ? enter(session) : askForToken()), askForToken);
