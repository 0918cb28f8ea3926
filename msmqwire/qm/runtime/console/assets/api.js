// Requests to the server, and what is known of the login.

export const state = { write: false, csrf: "", computer: "", sampleSeconds: 2 };

export class Refused extends Error {
  constructor(status, reason) {
    super(reason);
    this.status = status;
  }
}

async function answer(path, options) {
  let response;
  try {
    response = await fetch(path, { credentials: "same-origin", cache: "no-store", redirect: "error", ...options });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, "The server can't be reached.");
  }
  const told = await response.json().catch(() => ({}));
  if (response.ok) return told;
  if (response.status === 401 && path !== "/api/login") document.dispatchEvent(new Event("logged-out"));
  throw new Refused(response.status, told.error || `The server answers ${response.status}.`);
}

export function get(name, query = {}, signal = undefined) {
  const told = Object.entries(query).filter(([, value]) => value !== undefined && value !== "");
  return answer(`/api/${name}?${new URLSearchParams(told)}`, { signal });
}

export function post(name, told = {}) {
  const headers = { "Content-Type": "application/json", "X-CSRF-Token": state.csrf };
  return answer(`/api/${name}`, { method: "POST", headers, body: JSON.stringify(told) });
}

export function remember(session) {
  state.write = session.write;
  state.csrf = session.csrf;
  state.computer = session.computer;
  state.sampleSeconds = session.sample_s;
}
