"use strict";
// The ladder of a session: both ends as lanes, time at the left, an arrow for each packet. Only the arrows that can be
// seen are drawn, so that a session may be of any length.

const ZOOMS = [16, 24, 34, 46];
const LADDER_MARGIN = 12;
const TIME_WIDTH = 176;
const ARROWS_PRINTED = 80;
const CHARACTER = 7.1;

class Ladder {
  constructor() {
    this.rows = [];
    this.zoom = 2;
    this.current = -1;
    this.related = new Set();
    this.isPrinting = false;
    this.head = element("div", { class: "ladder-head", "aria-hidden": "true" });
    this.svg = drawn("svg", { class: "ladder-svg", "aria-hidden": "true" });
    this.tall = element("div", { class: "ladder-tall" }, this.svg);
    this.strip = drawn("svg", { class: "ladder-strip", "aria-hidden": "true" });
    this.scroller = element("div", { class: "ladder", tabindex: 0, role: "listbox", "aria-label": "Ladder diagram" }, this.head, this.tall);
    this.status = element("p", { class: "ladder-status", role: "status" });
    this.position = element("span", { class: "muted" });
    this.node = element("div", { class: "ladder-holder" },
      element("div", { class: "ladder-tools", role: "toolbar", "aria-label": "Ladder" },
        button("−", () => this.zoomBy(-1), { "aria-label": "Smaller" }),
        button("+", () => this.zoomBy(1), { "aria-label": "Larger" }),
        button("First", () => this.go(0)),
        button("Page up", () => this.page(-1)),
        button("Page down", () => this.page(1)),
        button("Last", () => this.go(this.rows.length - 1)),
        button("Next notable", () => this.nextNotable(), { title: "The next finding, gap, or packet sent again" }),
        this.position),
      this.legend(),
      element("div", { class: "ladder-frame" }, this.scroller, this.strip),
      this.status);
    const draw = oncePerFrame(() => this.draw());
    this.scroller.addEventListener("scroll", draw, { passive: true });
    new ResizeObserver(draw).observe(this.scroller);
    this.svg.addEventListener("click", (event) => {
      const arrow = event.target.closest("g[data-place]");
      if (arrow) this.choose(Number(arrow.dataset.place), true);
    });
    this.strip.addEventListener("click", (event) => {
      const box = this.strip.getBoundingClientRect();
      this.go(Math.floor((event.clientY - box.top) / box.height * this.rows.length));
    });
    this.scroller.addEventListener("keydown", (event) => this.pressed(event));
  }

  legend() {
    const names = { handshake: "Handshake", message: "Message", acknowledgement: "Acknowledgement", call: "Call", answer: "Answer", other: "Other" };
    return element("ul", { class: "legend" },
      Object.entries(names).map(([group, name]) => element("li", {}, element("span", { class: `swatch ${group}` }), name)),
      element("li", {}, element("span", { class: "swatch malformed" }), "Malformed"),
      element("li", {}, element("span", { class: "swatch gap" }), "Gap: bytes that were skipped"),
      element("li", {}, element("span", { class: "dashes" }), "Sent again"),
      element("li", {}, element("span", { class: "dot" }), "Findings"));
  }

  show(session) {
    this.session = report.sessions[session];
    this.rows = rowsOf(session);
    this.current = -1;
    this.related = new Set();
    this.status.textContent = "";
    this.scroller.setAttribute("aria-label", `Ladder of ${counted(this.rows.length, "packet")} between ${this.session.left} and ${this.session.right}; `
      + "arrow keys go from packet to packet, Enter opens one");
    this.scroller.scrollTop = 0;
    this.drawStrip();
    this.draw();
  }

  get height() {
    return ZOOMS[this.zoom];
  }

  zoomBy(step) {
    const middle = (this.scroller.scrollTop + this.scroller.clientHeight / 2) / this.height;
    this.zoom = Math.max(0, Math.min(ZOOMS.length - 1, this.zoom + step));
    this.draw();
    this.scroller.scrollTop = middle * this.height - this.scroller.clientHeight / 2;
    this.draw();
  }

  page(step) {
    this.scroller.scrollTop += step * (this.scroller.clientHeight - this.head.offsetHeight - this.height);
  }

  go(place) {
    if (!this.rows.length) return;
    const to = Math.max(0, Math.min(this.rows.length - 1, place));
    this.scroller.scrollTop = to * this.height - this.scroller.clientHeight / 3;
    this.choose(to, false);
  }

  nextNotable() {
    const from = this.current + 1;
    const ahead = this.rows.findIndex((row, place) => place >= from && isNotable(row));
    const found = ahead >= 0 ? ahead : this.rows.findIndex(isNotable);
    if (found >= 0) this.go(found);
    else this.status.textContent = "Nothing notable: no findings, no gaps, nothing sent again.";
  }

  choose(place, opens) {
    this.current = place;
    const row = this.rows[place];
    const life = lifeOf(row);
    this.related = new Set(life < 0 ? [] : eventsOf(life).map(rowOfEvent));
    this.draw();
    const way = goesRight(row) ? `to ${this.session.right}` : `to ${this.session.left}`;
    this.status.textContent = `Packet ${formatCount(row + 1)}: ${rowName("kind", row)} ${way}. ${rowText("about", row)}`
      + (life >= 0 ? ` Life of the message: ${lifeText("explanation", life)}. Thick arrows belong to it.` : "");
    if (opens) openDrawer(row);
  }

  pressed(event) {
    const steps = { ArrowDown: 1, ArrowUp: -1 };
    if (event.key in steps) {
      event.preventDefault();
      const place = Math.max(0, Math.min(this.rows.length - 1, this.current + steps[event.key]));
      this.choose(place, false);
      const top = place * this.height;
      const room = this.scroller.clientHeight - this.head.offsetHeight - 2 * this.height;
      if (top < this.scroller.scrollTop) this.scroller.scrollTop = top;
      else if (top > this.scroller.scrollTop + room) this.scroller.scrollTop = top - room;
    } else if (event.key === "Enter" && this.current >= 0) {
      openDrawer(this.rows[this.current]);
    } else if (event.key === "Home" || event.key === "End") {
      event.preventDefault();
      this.go(event.key === "Home" ? 0 : this.rows.length - 1);
    } else if (event.key === "+" || event.key === "-") {
      this.zoomBy(event.key === "+" ? 1 : -1);
    }
  }

  draw() {
    if (!this.rows.length) return;
    const width = this.isPrinting ? PAPER_WIDTH : Math.max(320, this.scroller.clientWidth - 2);
    const isNarrow = width < 720;
    const left = isNarrow ? 92 : TIME_WIDTH;
    const right = width - (isNarrow ? 16 : 40);
    const count = this.rows.length;
    let first = Math.max(0, Math.floor(this.scroller.scrollTop / this.height) - 4);
    let last = Math.min(count, first + Math.ceil((this.scroller.clientHeight || 400) / this.height) + 8);
    if (this.isPrinting) [first, last] = [0, Math.min(count, ARROWS_PRINTED)];
    const top = first * this.height;
    const tall = (last - first) * this.height + 2 * LADDER_MARGIN;
    this.tall.style.height = `${(this.isPrinting ? last : count) * this.height + 2 * LADDER_MARGIN}px`;
    set(this.svg, { width, height: tall, viewBox: `0 0 ${width} ${tall}` });
    this.svg.style.transform = `translateY(${top}px)`;
    this.drawHead(left, right, width);
    const begin = rowTime(this.rows[0]);
    fill(this.svg,
      [left, right].map((x) => drawn("line", { class: "lane", x1: x, x2: x, y1: 0, y2: tall })),
      Array.from({ length: last - first }, (_, number) => this.arrow(first + number, number, { left, right, begin, isNarrow })));
    this.position.textContent = `${formatCount(Math.min(count, first + 1))} to ${formatCount(last)} of ${counted(count, "packet")}`;
  }

  drawHead(left, right, width) {
    const [one, two] = this.session.managers;
    const end = (name, guid) => [element("b", {}, name), guid ? element("span", { class: "muted guid" }, guid) : null];
    fill(this.head,
      element("span", { class: "lane-time muted" }, "Time"),
      element("span", { class: "lane-left", style: { left: `${left}px`, "max-width": `${(right - left) / 2 - 8}px` } }, end(this.session.left, one)),
      element("span", { class: "lane-right", style: { right: `${width - right}px`, "max-width": `${(right - left) / 2 - 8}px` } }, end(this.session.right, two)));
  }

  arrow(place, number, { left, right, begin, isNarrow }) {
    const row = this.rows[place];
    const group = rowGroup(row);
    const isBelow = this.height >= ZOOMS[2];
    const middle = LADDER_MARGIN + number * this.height + this.height * (isBelow ? 0.72 : 0.5);
    const classes = ["arrow", group, place === this.current ? "current" : "", this.related.has(row) ? "related" : "", packets.again[row] ? "again" : ""].filter(Boolean).join(" ");
    const since = spanAfter("+", begin, rowTime(row));
    const delta = place ? spanAfter("Δ ", rowTime(this.rows[place - 1]), rowTime(row)) : "";
    const parts = [
      drawn("rect", { class: "arrow-ground", x: 0, y: LADDER_MARGIN + number * this.height, width: right + 40, height: this.height }),
      drawn("text", { class: "arrow-time", x: isNarrow ? 82 : 84, y: middle + 4, "text-anchor": "end" }, since),
      isNarrow || !delta ? null : drawn("text", { class: "arrow-delta", x: TIME_WIDTH - 12, y: middle + 4, "text-anchor": "end" }, delta),
      group === "gap" ? this.gap(left, right, middle) : this.line(row, left, right, middle),
      this.words(row, left, right, middle, isBelow),
    ];
    if (packets.severity[row]) {
      const x = goesRight(row) ? left : right;
      parts.push(drawn("circle", { class: `dot ${SEVERITIES[packets.severity[row]].toLowerCase()}`, cx: x, cy: middle, r: 5 },
        drawn("title", {}, counted(packets.findings[row], "finding"))));
    }
    return drawn("g", { class: classes, "data-place": place }, parts);
  }

  line(row, left, right, y) {
    const [from, to] = goesRight(row) ? [left, right] : [right, left];
    const back = to > from ? -1 : 1;
    const tip = `M${to} ${y} l${9 * back} -4.5 v9 z`;
    return [drawn("line", { class: "shaft", x1: from, x2: to + 8 * back, y1: y, y2: y }), drawn("path", { class: "tip", d: tip })];
  }

  gap(left, right, y) {
    const size = Math.min(10, this.height * 0.3);
    const steps = Math.max(2, Math.floor((right - left) / 12));
    const points = Array.from({ length: steps + 1 }, (_, step) =>
      `${(left + (right - left) * step / steps).toFixed(1)},${(y + (step % 2 ? -size : size) / 2).toFixed(1)}`);
    return drawn("polyline", { class: "zigzag", points: points.join(" ") });
  }

  words(row, left, right, y, isBelow) {
    const about = rowText("about", row);
    const request = packets.answers[row];
    const after = request >= 0 ? spanAfter(", after ", rowTime(request), rowTime(row)) : "";
    const again = packets.again[row] ? "sent again: " : "";
    const kind = rowGroup(row) === "gap" ? `${formatBytes(packets.size[row])} skipped` : rowName("kind", row);
    const room = Math.floor((right - left - 40) / CHARACTER);
    const text = shortened(`${again}${kind}${about ? ` · ${about}` : ""}${after}`, room);
    const at = { class: "arrow-words", x: left + 18, y: isBelow ? y - 8 : y + 4 };
    return drawn("text", at, drawn("title", {}, `${kind}: ${about}${after}`), text);
  }

  /** A narrow picture of the whole session: where its notable packets are. */
  drawStrip() {
    const height = 400;
    const marks = new Map();
    this.rows.forEach((row, place) => {
      if (!isNotable(row)) return;
      const y = Math.floor(place / this.rows.length * height);
      const known = marks.get(y);
      if (known === undefined || packets.severity[row] > packets.severity[known]) marks.set(y, row);
    });
    set(this.strip, { viewBox: `0 0 14 ${height}`, preserveAspectRatio: "none" });
    fill(this.strip, [...marks].map(([y, row]) => drawn("rect", { x: 0, y, width: 14, height: 3,
      class: packets.severity[row] ? `dot ${SEVERITIES[packets.severity[row]].toLowerCase()}` : rowGroup(row) === "gap" ? "dot gap" : "dot again" })));
  }

  print(isPrinting) {
    this.isPrinting = isPrinting;
    this.draw();
  }
}

function shortened(text, length) {
  return text.length <= length ? text : `${text.slice(0, Math.max(1, length - 1))}…`;
}
