// Requests to the API below /api/v1: its problems become errors that say what is wrong and what to do.

const BASE = "/api/v1";
const RIGHTS = ["read", "read-write", "administer"];
const ADVICE = {
  401: "Log in again.",
  421: "Open the console by an address, by localhost, or by a name of --console-name.",
  507: "Purge or receive messages, raise the quota, or make room on the disk.",
};

export const state = { write: false, right: "read", name: "", csrf: "", computer: "", sampleSeconds: 2 };

/** Whether this login may do what needs a right. */
export const may = (right) => RIGHTS.indexOf(state.right) >= RIGHTS.indexOf(right) && (right === "read" || state.write);

/** What keeps this login from doing something, and what would let it; empty if nothing does. */
export function whyNot(right = "administer") {
  if (may(right)) return "";
  if (!state.write) return "This console is read-only: msmqwire serve with --console-write lets it change something.";
  return `The token ${state.name} has the right ${state.right}. For more, log in with a token of the right ${right}: msmqwire token create makes one.`;
}

/** A refused request. `path` names the value that is meant, `label` what it is called on the page. */
export class Refused extends Error {
  constructor(status, problem = {}) {
    const what = problem.detail || problem.title || `The server answers ${status}.`;
    const named = problem.path ? `${problem.path}: ${what}` : what;
    const code = /^MQ_/.test(problem.name || "") ? ` (${problem.name})` : "";
    super([`${named}${code}${/[.?!]$/.test(what) && !code ? "" : "."}`, ADVICE[status]].filter(Boolean).join(" "));
    this.status = status;
    this.path = problem.path || "";
    this.problem = problem;
  }
}

/** A path of the API, in which each value is one segment: path`/queues/${name}/messages`. */
export function path(parts, ...values) {
  return parts.reduce((whole, part, at) => whole + encodeURIComponent(values[at - 1]) + part);
}

/** The address of a path, with the values of a query that are there. */
export function address(where, query = {}) {
  const told = Object.entries(query).filter(([, value]) => value !== undefined && value !== null && value !== "" && value !== false);
  return `${BASE}${where}${told.length ? `?${new URLSearchParams(told)}` : ""}`;
}

async function answer(where, options) {
  let response;
  try {
    response = await fetch(where, { credentials: "same-origin", cache: "no-store", redirect: "error", ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, { detail: "The server can't be reached. The page tries again by itself." });
  }
  const told = response.status === 204 ? null : await response.json().catch(() => null);
  if (response.ok) return { told, response };
  if (response.status === 401 && !where.endsWith("/login")) document.dispatchEvent(new Event("logged-out"));
  throw new Refused(response.status, told ?? {});
}

function change(method, where, told, type = "application/json") {
  const headers = { "X-CSRF-Token": state.csrf };
  if (told !== undefined) headers["Content-Type"] = type;
  const body = told === undefined ? undefined : JSON.stringify(told);
  return answer(BASE + where, { method, headers, body }).then((one) => one.told);
}

export const get = (where, query = {}, signal = undefined) => answer(address(where, query), { signal }).then((one) => one.told);

/** A page of a list, with the number of all items, and of those a search looked at, where they are known. */
export async function list(where, query, signal) {
  const { told, response } = await answer(address(where, query), { signal });
  const number = (name) => (response.headers.has(name) ? Number(response.headers.get(name)) : null);
  return { ...told, total: number("X-Total-Count"), examined: number("X-Examined-Count") };
}

export const post = (where, told = {}) => change("POST", where, told);
export const patch = (where, told) => change("PATCH", where, told);
export const remove = (where) => change("DELETE", where);

/** The answer of a path at the root, also if it is 503: of /readyz. */
export async function health(where, signal) {
  try {
    return (await answer(where, { signal })).told;
  } catch (error) {
    if (error.status === 503 && Array.isArray(error.problem.checks)) return error.problem;
    throw error;
  }
}

export function remember(session) {
  state.write = session.write;
  state.right = session.right;
  state.name = session.name;
  state.csrf = session.csrf;
  state.computer = session.computer;
  state.sampleSeconds = session.sample_s;
}
