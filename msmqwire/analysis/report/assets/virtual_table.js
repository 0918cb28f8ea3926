"use strict";
// A table of any length whose rows are in the page only while they can be seen.

const ROW_HEIGHT = 30;
const ROWS_BEYOND = 8;
const ROWS_PRINTED = 60;

class VirtualTable {
  /**
   * `columns` are {title, cell(row), number, width, sort(row)}, `open(row)` is called for a row that was chosen.
   * `empty` is said when there are no rows.
   */
  constructor({ caption, columns, open, empty, height }) {
    this.columns = columns;
    this.open = open;
    this.rows = [];
    this.chosen = null;
    this.current = 0;
    this.sorted = null;
    this.isPrinting = false;
    this.body = element("tbody", {});
    this.heads = columns.map((column, place) => this.head(column, place));
    this.table = element(
      "table", { role: "grid", class: "virtual", "aria-rowcount": 1 },
      element("caption", {}, caption),
      element("colgroup", {}, columns.map((column) => element("col", { style: { width: column.width || "auto" } }))),
      element("thead", {}, element("tr", { "aria-rowindex": 1 }, this.heads)),
      this.body,
    );
    this.scroller = element("div", { class: "scroller", style: { "max-height": height || "60vh" } }, this.table);
    this.note = element("p", { class: "muted table-note", role: "status" });
    this.node = element("div", { class: "virtual-holder" }, this.scroller, this.note);
    this.empty = empty || "Nothing.";
    const draw = oncePerFrame(() => this.draw());
    this.scroller.addEventListener("scroll", draw, { passive: true });
    new ResizeObserver(draw).observe(this.scroller);
    this.body.addEventListener("click", (event) => this.clicked(event));
    this.body.addEventListener("keydown", (event) => this.pressed(event));
  }

  head(column, place) {
    const title = column.sort
      ? element("button", { type: "button", class: "sort", on: { click: () => this.sortBy(place) } }, column.title)
      : column.title;
    return element("th", { scope: "col", class: column.number ? "number" : null }, title);
  }

  /** Show these rows, in this order. */
  show(rows) {
    this.given = rows;
    this.rows = rows;
    this.current = 0;
    this.scroller.scrollTop = 0;
    if (this.sorted) this.applySort();
    this.table.setAttribute("aria-rowcount", this.rows.length + 1);
    this.note.textContent = rows.length ? "" : this.empty;
    this.draw();
  }

  sortBy(place) {
    const isDown = this.sorted !== null && this.sorted.place === place && !this.sorted.isDown;
    this.sorted = { place, isDown };
    this.heads.forEach((head, other) => {
      if (other === place) head.setAttribute("aria-sort", isDown ? "descending" : "ascending");
      else head.removeAttribute("aria-sort");
    });
    this.applySort();
    this.scroller.scrollTop = 0;
    this.draw();
  }

  applySort() {
    const key = this.columns[this.sorted.place].sort;
    const sign = this.sorted.isDown ? -1 : 1;
    const keyed = this.given.map((row) => [key(row), row]);
    keyed.sort(([one], [other]) => (one < other ? -sign : one > other ? sign : 0));
    this.rows = keyed.map(([, row]) => row);
  }

  /** Put the rows that can be seen into the page. */
  draw() {
    const height = this.scroller.clientHeight || 600;
    const isHidden = this.scroller.offsetParent === null;
    let first = Math.max(0, Math.floor(this.scroller.scrollTop / ROW_HEIGHT) - ROWS_BEYOND);
    let last = Math.min(this.rows.length, first + Math.ceil(height / ROW_HEIGHT) + 2 * ROWS_BEYOND);
    if (this.isPrinting) [first, last] = [0, Math.min(this.rows.length, ROWS_PRINTED)];
    else if (isHidden) last = Math.min(last, first + 2 * ROWS_BEYOND);
    const focused = this.body.contains(document.activeElement);
    const shown = [];
    for (let place = first; place < last; place += 1) shown.push(this.line(place));
    const below = this.isPrinting ? 0 : this.rows.length - last;
    fill(this.body, this.space(first), shown, this.space(below));
    if (focused) this.focusCurrent();
  }

  space(rows) {
    if (!rows) return null;
    return element("tr", { class: "space", "aria-hidden": "true" },
      element("td", { colspan: this.columns.length, style: { height: `${rows * ROW_HEIGHT}px` } }));
  }

  line(place) {
    const row = this.rows[place];
    const isChosen = row === this.chosen;
    return element(
      "tr",
      { "aria-rowindex": place + 2, "aria-selected": isChosen ? "true" : "false", "data-place": place,
        tabindex: place === this.current ? 0 : -1 },
      this.columns.map((column) => {
        const content = column.cell(row);
        return element("td", { class: column.number ? "number" : null,
          title: typeof content === "string" && content.length > 12 ? content : null }, content);
      }),
    );
  }

  clicked(event) {
    const line = event.target.closest("tr[data-place]");
    if (line) this.choose(Number(line.dataset.place));
  }

  pressed(event) {
    const steps = { ArrowDown: 1, ArrowUp: -1, PageDown: 15, PageUp: -15, Home: -Infinity, End: Infinity };
    if (event.key in steps) {
      event.preventDefault();
      this.move(this.current + steps[event.key]);
    } else if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      this.choose(this.current);
    }
  }

  /** Make the row at a place the one that has the focus, and scroll to it. */
  move(place) {
    this.current = Math.max(0, Math.min(this.rows.length - 1, place));
    this.scrollTo(this.current);
    this.draw();
    this.focusCurrent();
  }

  scrollTo(place) {
    const head = this.table.tHead.offsetHeight + this.table.caption.offsetHeight;
    const top = place * ROW_HEIGHT;
    const room = this.scroller.clientHeight - head - ROW_HEIGHT;
    if (top < this.scroller.scrollTop) this.scroller.scrollTop = top;
    else if (top > this.scroller.scrollTop + room) this.scroller.scrollTop = top - room;
  }

  focusCurrent() {
    const line = this.body.querySelector(`tr[data-place="${this.current}"]`);
    if (line) line.focus({ preventScroll: true });
  }

  choose(place) {
    this.current = place;
    this.chosen = this.rows[place];
    this.draw();
    this.open(this.chosen);
  }

  /** Mark a row as the chosen one, and scroll to it if it is shown. */
  mark(row) {
    this.chosen = row;
    const place = this.rows.indexOf(row);
    if (place >= 0) {
      this.current = place;
      this.scrollTo(place);
    }
    this.draw();
  }

  print(isPrinting) {
    this.isPrinting = isPrinting;
    const more = this.rows.length - ROWS_PRINTED;
    this.note.textContent = isPrinting && more > 0 ? `${counted(more, "more row")} ${more === 1 ? "is" : "are"} not printed.` : this.rows.length ? "" : this.empty;
    this.draw();
  }
}
