"use strict";
// One packet: its fields beside its bytes. Pointing at a field marks its bytes, pointing at a byte its field.

const BYTES_PER_LINE = 16;

function severityBadge(severity) {
  return element("span", { class: `badge ${severity.toLowerCase()}` }, severity);
}

function groupBadge(row) {
  return element("span", { class: `kind ${rowGroup(row)}` }, rowName("kind", row));
}

class PacketView {
  /** `detail` is what the report has of a packet, `finding` the id of the finding to begin with. */
  constructor(detail, { finding = null } = {}) {
    this.detail = detail;
    this.fields = detail.fields.map(([path, offset, size, text], number) => ({ path, offset, size, text, number }));
    this.bytes = bytesOf(detail.bytes);
    this.owners = this.ownersOfBytes();
    this.pinned = null;
    const findings = detail.findings || [];
    this.marks = findings.map(([id, severity, path, offset, message]) =>
      ({ id, severity, message, path, ...this.placeOf(path, offset) }));
    this.hex = this.hexView();
    this.table = this.fieldTable();
    this.status = element("p", { class: "muted field-status", role: "status" });
    this.node = element(
      "div", { class: "packet-view" },
      this.findingList(finding),
      this.protection(),
      element("div", { class: "beside" }, this.table, this.hex),
      this.status,
      detail.body ? bodyPreview(detail.body, detail.decrypted) : null,
    );
    this.pin(null);
  }

  /** Return the smallest field over each byte, by number; -1 for none. */
  ownersOfBytes() {
    const owners = new Int32Array(this.bytes.length).fill(-1);
    const bySize = [...this.fields].sort((one, other) => other.size - one.size);
    for (const field of bySize) owners.fill(field.number, field.offset, field.offset + field.size);
    return owners;
  }

  /** Return the bytes that a finding is about: its field, all fields of its header, or one byte. */
  placeOf(path, offset) {
    const at = (test) => this.fields.filter(test);
    let found = at((field) => path === field.path || path.startsWith(`${field.path}.`));
    found = found.filter((field) => field.offset <= offset && offset < field.offset + field.size).concat(found).slice(0, 1);
    if (!found.length && path) found = at((field) => field.path.startsWith(`${path}.`));
    if (!found.length) found = at((field) => field.offset <= offset && offset < field.offset + field.size).slice(-1);
    if (!found.length) return { start: offset, end: offset + 1, fields: [] };
    return {
      start: Math.min(...found.map((field) => field.offset)),
      end: Math.max(...found.map((field) => field.offset + field.size)),
      fields: found.map((field) => field.number),
    };
  }

  findingList(finding) {
    if (!this.marks.length) return null;
    return element("ul", { class: "finding-list" }, this.marks.map((mark) => element("li", {},
      severityBadge(mark.severity), " ",
      button(mark.id, () => this.pin(mark, true), { class: mark.id === finding ? "link current" : "link" }), " ",
      element("span", {}, mark.message), " ",
      element("span", { class: "muted" }, `${mark.path || "packet"}, byte ${mark.start}`))));
  }

  protection() {
    const told = [];
    if (this.detail.signature && this.detail.signature !== "none") told.push(`Signature: ${this.detail.signature.replaceAll("_", " ")}`);
    if (this.detail.encrypted) told.push(this.detail.decrypted ? "The body was decrypted" : "The body is encrypted, and no key was given for it");
    return told.length ? element("p", { class: "muted" }, `${told.join(". ")}.`) : null;
  }

  classOf(number) {
    const worst = this.marks.filter((mark) => mark.fields.includes(number)).map((mark) => mark.severity);
    return worst.length ? worst.sort((one, other) => SEVERITIES.indexOf(other) - SEVERITIES.indexOf(one))[0].toLowerCase() : null;
  }

  fieldTable() {
    let header = null;
    const lines = [];
    this.fieldLines = this.fields.map((field, place) => {
      const [first, ...rest] = field.path.split(".");
      const isNested = rest.length > 0;
      if (isNested && first !== header) {
        lines.push(element("tr", { class: "header-line" }, element("th", { colspan: 3, scope: "colgroup" }, first)));
      }
      header = isNested ? first : null;
      const line = element(
        "tr", { class: ["field", this.classOf(field.number)].filter(Boolean).join(" "), "data-field": field.number, tabindex: place === 0 ? 0 : -1 },
        element("th", { scope: "row", title: field.path }, isNested ? rest.join(".") : field.path),
        element("td", { class: "number muted", title: `${counted(field.size, "byte")} at byte ${field.offset}` }, `${field.offset}+${field.size}`),
        element("td", { class: "value" }, field.text),
      );
      lines.push(line);
      return line;
    });
    if (this.detail.fields_left_out) {
      lines.push(element("tr", {}, element("td", { colspan: 3, class: "muted" }, "Further fields are left out.")));
    }
    if (!lines.length) lines.push(element("tr", {}, element("td", { colspan: 3, class: "muted" }, "No fields were read.")));
    const body = element("tbody", {}, lines);
    body.addEventListener("pointerover", (event) => this.point(event.target.closest("tr[data-field]")));
    body.addEventListener("pointerleave", () => this.point(null));
    body.addEventListener("focusin", (event) => this.point(event.target.closest("tr[data-field]")));
    body.addEventListener("click", (event) => {
      const line = event.target.closest("tr[data-field]");
      if (line) this.pin(this.markOf(Number(line.dataset.field)), true);
    });
    body.addEventListener("keydown", (event) => this.pressed(event));
    return element("div", { class: "fields-holder" }, element(
      "table", { class: "fields" },
      element("caption", {}, "Fields"),
      element("thead", {}, element("tr", {}, ["Field", "Bytes", "Value"].map((title, place) =>
        element("th", { scope: "col", class: place === 1 ? "number" : null }, title)))),
      body,
    ));
  }

  markOf(number) {
    const field = this.fields[number];
    return { start: field.offset, end: field.offset + field.size, fields: [number] };
  }

  pressed(event) {
    const line = event.target.closest("tr[data-field]");
    if (!line) return;
    const place = this.fieldLines.indexOf(line);
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      const next = this.fieldLines[place + (event.key === "ArrowDown" ? 1 : -1)];
      if (next) {
        line.tabIndex = -1;
        next.tabIndex = 0;
        next.focus();
      }
    } else if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      this.pin(this.markOf(Number(line.dataset.field)));
    }
  }

  hexView() {
    const tints = this.tints();
    this.cells = [];
    const lines = [];
    for (let start = 0; start < this.bytes.length; start += BYTES_PER_LINE) {
      const hex = element("span", { class: "hex-bytes" });
      const characters = element("span", { class: "hex-characters" });
      for (let place = start; place < Math.min(start + BYTES_PER_LINE, this.bytes.length); place += 1) {
        const value = this.bytes[place];
        const shown = value >= 0x20 && value < 0x7f ? String.fromCharCode(value) : "·";
        const isWrong = this.owners[place] >= 0 ? this.classOf(this.owners[place]) : this.bareMark(place);
        const classes = [tints[place] ? "tint" : "", isWrong || ""].filter(Boolean).join(" ") || null;
        const one = element("span", { "data-at": place, class: classes }, value.toString(16).padStart(2, "0"));
        const two = element("span", { "data-at": place, class: classes }, shown);
        hex.append(one);
        characters.append(two);
        this.cells.push([one, two]);
      }
      lines.push(element("div", { class: "hex-line" }, element("span", { class: "hex-offset" }, String(start).padStart(6, "0")), hex, characters));
    }
    const left = this.detail.size - this.bytes.length;
    const node = element("div", { class: "hex", tabindex: 0, role: "region", "aria-label": "Bytes of the packet, in hex and as characters; offsets are decimal" }, lines,
      left > 0 ? element("p", { class: "muted" }, `${counted(left, "byte")} more are not in the report.`) : null,
      this.bytes.length ? null : element("p", { class: "muted" }, "The bytes are not in the capture."));
    node.addEventListener("pointerover", (event) => {
      const at = event.target.dataset.at;
      const owner = at === undefined ? -1 : this.owners[Number(at)];
      this.point(owner >= 0 ? this.lineOf(owner) : null);
    });
    node.addEventListener("pointerleave", () => this.point(null));
    node.addEventListener("click", (event) => {
      const at = event.target.dataset.at;
      if (at === undefined) return;
      const owner = this.owners[Number(at)];
      if (owner >= 0) this.pin(this.markOf(owner), true);
    });
    return node;
  }

  lineOf(number) {
    return this.fieldLines[number];
  }

  bareMark(place) {
    const mark = this.marks.find((one) => !one.fields.length && one.start <= place && place < one.end);
    return mark ? mark.severity.toLowerCase() : null;
  }

  /** Return whether each byte has the darker of two grounds: neighbouring fields have different ones. */
  tints() {
    const tints = new Uint8Array(this.bytes.length);
    let tint = 0;
    for (let place = 1; place < this.bytes.length; place += 1) {
      if (this.owners[place] !== this.owners[place - 1]) tint = 1 - tint;
      tints[place] = tint;
    }
    return tints;
  }

  /** Mark what is pointed at; without it what was chosen last. */
  point(line) {
    this.show(line ? this.markOf(Number(line.dataset.field)) : this.pinned);
  }

  pin(mark, scrolls = false) {
    this.pinned = mark;
    this.show(mark);
    if (mark && scrolls) {
      const cell = this.cells[mark.start];
      if (cell) scrollInside(this.hex, cell[0]);
      if (mark.fields.length) scrollInside(this.table, this.fieldLines[mark.fields[0]]);
    }
  }

  /** Mark the first finding with an id. */
  pinFinding(id) {
    const mark = this.marks.find((one) => one.id === id);
    if (mark) this.pin(mark, true);
  }

  show(mark) {
    for (const pair of this.markedCells || []) for (const cell of pair) cell.classList.remove("marked");
    for (const line of this.markedLines || []) line.classList.remove("marked");
    this.markedCells = mark ? this.cells.slice(mark.start, mark.end) : [];
    this.markedLines = mark ? mark.fields.map((number) => this.fieldLines[number]) : [];
    for (const pair of this.markedCells) for (const cell of pair) cell.classList.add("marked");
    for (const line of this.markedLines) line.classList.add("marked");
    if (!mark) {
      this.status.textContent = this.fields.length ? "Point at a field or a byte, or choose one." : "";
    } else {
      const name = mark.fields.length === 1 ? this.fields[mark.fields[0]].path : mark.path || "Bytes";
      this.status.textContent = `${name}: ${counted(mark.end - mark.start, "byte")} from byte ${mark.start}`;
    }
  }
}

/** Scroll a box so that a node in it can be seen, and nothing else. */
function scrollInside(box, node) {
  const outer = box.getBoundingClientRect();
  const inner = node.getBoundingClientRect();
  if (inner.top < outer.top + 30 || inner.bottom > outer.bottom) {
    box.scrollTop += inner.top - outer.top - box.clientHeight / 3;
  }
}

/** Return the preview of a body: its format, headers, text or bytes in hex, its value, and its problems. */
function bodyPreview(body, wasDecrypted) {
  const title = `Body: ${body.format}, ${formatBytes(body.size)}${wasDecrypted ? ", decrypted" : ""}`;
  const content = body.text !== undefined
    ? element("pre", { tabindex: 0 }, body.format === "xml" ? indentedXml(body.text) : body.text || " ")
    : element("pre", { tabindex: 0, class: "hex-plain" }, hexText(bytesOf(body.bytes)));
  return element("section", { class: "body-preview" }, element("h4", {}, title), content,
    body.cut ? element("p", { class: "muted" }, "The rest is left out.") : null,
    body.value ? [element("h4", {}, "Value"), element("pre", { tabindex: 0, class: "body-value" }, body.value)] : null,
    body.headers ? [
      element("h4", {}, `Headers: ${body.headers_format}`),
      element("pre", { tabindex: 0, class: "body-headers" }, body.headers.map(([name, value]) => `${name}: ${value}`).join("\n") || " "),
    ] : null,
    (body.problems || []).map((problem) => element("p", { class: "muted" }, problem)));
}

function hexText(bytes, most = 512) {
  const lines = [];
  for (let start = 0; start < Math.min(bytes.length, most); start += BYTES_PER_LINE) {
    const line = [...bytes.slice(start, start + BYTES_PER_LINE)];
    const hex = line.map((value) => value.toString(16).padStart(2, "0")).join(" ");
    const characters = line.map((value) => (value >= 0x20 && value < 0x7f ? String.fromCharCode(value) : "·")).join("");
    lines.push(`${String(start).padStart(6, "0")}  ${hex.padEnd(47)}  ${characters}`);
  }
  if (bytes.length > most) lines.push("…");
  return lines.join("\n") || "(empty)";
}

/** Return XML text with a line for each element. It stays text: nothing here is parsed as a document. */
function indentedXml(text) {
  if (text.includes("\n")) return text;
  let depth = 0;
  return text.replace(/>\s*</g, ">\n<").split("\n").map((line) => {
    if (line.startsWith("</")) depth = Math.max(0, depth - 1);
    const shown = "  ".repeat(Math.min(depth, 20)) + line;
    if (/^<[^!?/][^>]*[^/]>$/.test(line) || /^<[^!?/]>$/.test(line)) depth += 1;
    return shown;
  }).join("\n");
}

/** Return the head of a packet: what it is, when, from where to where, and how it hangs together with others. */
function packetHead(row, level = "h3") {
  const frames = packets.first_frame[row] === packets.last_frame[row]
    ? `frame ${packets.first_frame[row]}` : `frames ${packets.first_frame[row]} to ${packets.last_frame[row]}`;
  const facts = [
    ["Time", formatTime(rowTime(row))],
    ["From", rowName("src", row)],
    ["To", rowName("dst", row)],
    ["Size", `${formatBytes(packets.size[row])}, ${frames}${report.totals.captures > 1 ? ` of ${rowName("file", row)}` : ""}`],
    ["Queue", rowText("queue", row)],
    ["Label", rowText("label", row)],
  ];
  const request = packets.answers[row];
  return element("header", { class: "packet-head" },
    element(level, {}, groupBadge(row), ` Packet ${formatCount(row + 1)}`),
    element("p", { class: "about" }, rowText("about", row)),
    element("dl", { class: "facts" }, facts.filter(([, value]) => value).map(([name, value]) =>
      element("div", {}, element("dt", {}, name), element("dd", {}, value)))),
    request >= 0 ? element("p", {}, "Answers ", button(`packet ${formatCount(request + 1)}`, () => openDrawer(request), { class: "link" }),
      `${spanAfter(" after ", rowTime(request), rowTime(row))}.`) : null,
    packets.again[row] ? element("p", { class: "notice" }, "The same was sent before: this is sent again.") : null,
  );
}
