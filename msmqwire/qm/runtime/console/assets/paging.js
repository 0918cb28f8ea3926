// A list of the API, a page at a time: by cursors, back by those of earlier pages.
import { Refused, list } from "./api.js";
import { el } from "./dom.js";
import { count, plural } from "./format.js";

export const SIZE = 50;
const refresh = () => document.dispatchEvent(new Event("refresh"));

/** The buttons that turn over a list, and the request for the page that is shown. */
export class Pages {
  /** `where`: the path of the list. `one`: the word for an item; `many`, for several. */
  constructor(where, { one, many, size = SIZE }) {
    this.where = where;
    this.one = one;
    this.many = many;
    this.size = size;
    this.range = el("span", { class: "range" });
    const button = (text, onclick) => el("button", { type: "button", onclick }, text);
    this.firstButton = button("First", () => this.reset());
    this.previousButton = button("Previous", () => {
      this.cursor = this.before.pop() ?? null;
      refresh();
    });
    this.nextButton = button("Next", () => {
      if (this.following === null || this.following === this.cursor) return; // that page is on its way
      this.before.push(this.cursor);
      this.cursor = this.following;
      refresh();
    });
    this.element = el("div", { class: "pager" }, this.range, this.firstButton, this.previousButton, this.nextButton);
    this.begin();
  }

  begin() {
    this.cursor = null; // of the page that is shown; null for the first one
    this.before = []; // cursors of the pages before it
    this.following = null;
  }

  reset() {
    this.begin();
    refresh();
  }

  /** The items of the page, and how many there are in all if the list tells; null if another page is on its way. */
  async ask(query, signal) {
    const { cursor } = this;
    let told;
    try {
      told = await list(this.where, { ...query, limit: this.size, cursor }, signal);
    } catch (error) {
      if (error instanceof Refused && error.path === "cursor" && cursor !== null) {
        if (cursor === this.cursor) this.reset(); // the server has started anew
        return null;
      }
      throw error;
    }
    return cursor === this.cursor ? told : null;
  }

  /** Say where the page is, `total` being the number of all items if it is known. */
  show({ items, next, total: told }, total = told) {
    this.following = next;
    const start = this.before.length * this.size;
    const end = start + items.length;
    const all = total ?? (next === null ? end : null);
    const several = next !== null || this.before.length > 0;
    if (items.length && several) {
      this.range.textContent = `${count(start + 1)} to ${count(end)}${all === null ? ", more follow" : ` of ${count(Math.max(all, end))}`}`;
    } else this.range.textContent = plural(all ?? 0, this.one, this.many);
    for (const button of [this.firstButton, this.previousButton, this.nextButton]) button.hidden = !several;
    this.firstButton.disabled = this.previousButton.disabled = this.before.length === 0;
    this.nextButton.disabled = next === null;
  }
}
