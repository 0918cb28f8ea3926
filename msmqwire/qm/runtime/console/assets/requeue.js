// Messages put back into the queues that they were in: one, those chosen, or all of a queue.
import { address, get, path, post } from "./api.js";
import { ask } from "./dialog.js";
import { el } from "./dom.js";
import { count, plural } from "./format.js";

const AT_ONCE = 4;
const TRIES = 5;
const REASONS_SHOWN = 8;
const sleep = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });

/** Requeue one message; a limit of requests is waited for. */
async function requeueOne(queue, id, to) {
  for (let tries = 1; ; tries += 1) {
    try {
      return await post(path`/queues/${queue}/messages/${id}/requeue`, to ? { to } : {});
    } catch (refused) {
      if (refused.status !== 429 || tries === TRIES) throw refused;
      await sleep(1000);
    }
  }
}

/** Requeue messages, and count what became of each. `progress` is told; `stopped` ends it. */
async function requeueEach(queue, identifiers, to, outcome, progress, stopped) {
  const waiting = [...identifiers];
  const work = async () => {
    while (waiting.length && !stopped()) {
      const id = waiting.shift();
      try {
        await requeueOne(queue, id, to);
        outcome.done += 1;
      } catch (refused) {
        if (refused.status === 0 || refused.status === 401 || refused.status === 403) throw refused;
        if (refused.status === 404 && /MESSAGE/.test(refused.problem.name ?? "")) outcome.gone += 1;
        else {
          outcome.refused += 1;
          outcome.reasons.set(refused.message, (outcome.reasons.get(refused.message) ?? 0) + 1);
        }
      }
      progress();
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
}

/** The identifiers of all messages of a queue, a page at a time. Those that come later are left. */
async function* pagesOf(queue, signal) {
  let cursor;
  do {
    const told = await get(path`/queues/${queue}/messages`, { cursor, limit: 200, body_max: 0 }, signal);
    yield told.items.map((one) => one.lookup_identifier);
    cursor = told.next;
  } while (cursor);
}

const summary = (outcome) => [
  plural(outcome.done, "message requeued", "messages requeued"),
  outcome.refused && `${count(outcome.refused)} refused and left here`,
  outcome.gone && `${count(outcome.gone)} gone meanwhile`,
].filter(Boolean).join(", ");

/** Ask, requeue, and say what became of the messages.
 *
 * `chosen`: lookup identifiers, or null for all messages of the queue. `place` shows progress and outcome. */
export async function requeue(queue, chosen, total, place) {
  let to = "";
  const agreed = await ask({
    title: chosen ? `Requeue ${plural(chosen.length, "message")}?` : "Requeue all messages?",
    text: `${chosen ? "Each" : `Each of ${plural(total, "message")} of ${queue}`} goes back to the queue that it was sent to or moved from, and leaves this one. What is refused stays here.`,
    action: "Requeue", danger: false,
    fields: [{ name: "to", label: "To another queue instead", optional: true, placeholder: "private$\\orders", hint: "Empty: to the queue of each. Otherwise a queue of this computer, or a format name" }],
    async run(values) {
      to = values.to;
      return "Requeuing begins";
    },
  });
  if (!agreed) return;
  const outcome = { done: 0, refused: 0, gone: 0, reasons: new Map() };
  const all = chosen ? chosen.length : total;
  let stopped = false;
  const said = el("p", { role: "status" }, "Requeuing…");
  const reasons = el("ul", { class: "reasons" });
  const stop = el("button", { type: "button", onclick: () => { stopped = true; } }, "Stop");
  const close = el("button", { type: "button", hidden: true, onclick: () => place.replaceChildren() }, "Dismiss");
  place.replaceChildren(el("section", { class: "outcome" }, el("h2", {}, "Requeue"), said, reasons, el("div", { class: "bar actions" }, stop, close)));
  let drawn = 0;
  const progress = () => {
    const now = performance.now();
    if (now - drawn < 250) return;
    drawn = now;
    said.textContent = `${count(outcome.done + outcome.refused + outcome.gone)} of ${count(all)}…`;
  };
  let ending = "";
  try {
    if (chosen) await requeueEach(queue, chosen, to, outcome, progress, () => stopped);
    else {
      for await (const page of pagesOf(queue)) {
        if (stopped || !page.length) break;
        await requeueEach(queue, page, to, outcome, progress, () => stopped);
      }
    }
    ending = stopped ? " Stopped before the end." : "";
  } catch (failed) {
    ending = ` Stopped: ${failed.message}`;
  }
  said.textContent = `${summary(outcome)}.${ending}`;
  const told = [...outcome.reasons].sort((one, other) => other[1] - one[1]);
  reasons.replaceChildren(...told.slice(0, REASONS_SHOWN).map(([why, times]) => el("li", {}, `${plural(times, "time")}: ${why}`)));
  if (told.length > REASONS_SHOWN) reasons.append(el("li", {}, `and ${plural(told.length - REASONS_SHOWN, "other reason")}`));
  stop.hidden = true;
  close.hidden = false;
  document.dispatchEvent(new Event("refresh"));
}

/** The address of messages as JSON lines, a message a line with its body. */
export const exportOf = (queue, query = {}) => address(path`/queues/${queue}/export`, query);
