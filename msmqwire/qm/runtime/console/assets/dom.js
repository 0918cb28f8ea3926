// Elements, made without markup: whatever a peer sends can only become text.

/** Return an element. `attributes`: properties of the element, `on...` listeners, `aria-...` and `data-...`. */
export function el(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "class") element.className = value;
    else if (value === true) element.setAttribute(name, "");
    else element.setAttribute(name, String(value));
  }
  element.append(...shownOf(children));
  return element;
}

/** Return the children that are to be shown: a condition that does not hold leaves one out. */
const shownOf = (children) => children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false);

/** Tell users of screen readers what has happened. */
export function announce(text) {
  const region = document.getElementById("announcements");
  region.textContent = "";
  setTimeout(() => { region.textContent = text; }, 50);
}

export function chip(text, kind = "") {
  return el("span", { class: `chip ${kind}` }, text);
}

/** Replace what an element contains, unless it would look the same; the focus stays where it was. */
export function fill(element, key, children) {
  const text = JSON.stringify(key);
  if (element.dataset.shown === text) return;
  const held = element.contains(document.activeElement) ? document.activeElement.dataset.focus : undefined;
  element.replaceChildren(...shownOf([children()]));
  element.dataset.shown = text;
  if (held === undefined) return;
  for (const one of element.querySelectorAll("[data-focus]")) {
    if (one.dataset.focus === held) one.focus();
  }
}

/** A table in a region that can be scrolled by keyboard.
 * `columns`: {title, cell(row), class, sort, header}; that with `header`, else the first one, names the row. `sorted`: {by, descending, choose(by)}. */
export function table(caption, columns, sorted) {
  const body = el("tbody");
  const named = columns.find((column) => column.header) ?? columns[0];
  const heads = columns.map((column) => head(column, sorted));
  const title = el("caption", {}, caption);
  const whole = el("table", {}, title, el("thead", {}, el("tr", {}, heads)), body);
  const empty = el("p", { class: "empty", hidden: true });
  const region = el("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": caption }, whole);
  return {
    element: el("div", { class: "table" }, region, empty),
    /** `more`: what else the cells depend on. */
    show(rows, nothing, more = 0) {
      for (const [at, column] of columns.entries()) {
        if (column.sort && sorted) {
          const order = sorted.by === column.sort ? (sorted.descending ? "descending" : "ascending") : "none";
          heads[at].setAttribute("aria-sort", order);
        }
      }
      fill(body, [rows, more], () => rows.map((row) => el("tr", {}, columns.map((column) => cell(column, row, column === named)))));
      region.hidden = rows.length === 0;
      empty.hidden = rows.length > 0;
      empty.textContent = nothing;
    },
  };
}

function head(column, sorted) {
  const attributes = { scope: "col", class: column.class };
  if (!column.sort || !sorted) return el("th", attributes, column.title);
  const choose = () => sorted.choose(column.sort);
  return el("th", attributes, el("button", { type: "button", class: "sort", onclick: choose }, column.title));
}

function cell(column, row, first) {
  const content = column.cell(row);
  return el(first ? "th" : "td", { scope: first ? "row" : null, class: column.class },
    content === null || content === undefined || content === "" ? el("span", { class: "none" }, "–") : content);
}

/** A list of names and values. */
export function properties(pairs) {
  return el("dl", { class: "properties" }, pairs.filter((pair) => pair && pair[1] !== undefined).map(
    ([name, value]) => el("div", {}, el("dt", {}, name),
      el("dd", {}, value === null || value === "" ? el("span", { class: "none" }, "–") : value))));
}
