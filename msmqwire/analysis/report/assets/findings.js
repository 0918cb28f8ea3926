"use strict";
// Findings by requirement, each with packets that show it, field by field.

class FindingsPanel {
  constructor() {
    this.list = element("ul", { class: "requirements", "aria-label": "Requirements with findings" });
    this.example = element("article", { class: "example", tabindex: -1 });
    this.severity = "";
  }

  build(panel) {
    const { requirements, totals } = report;
    if (!requirements.length) {
      fill(panel, element("h2", {}, "Findings"), element("p", { class: "notice good" }, "Nothing was found that departs from the specifications."));
      return;
    }
    const choice = (severity, title, count) => button(`${title} ${formatCount(count)}`, (event) => this.filter(severity, event.target),
      { "aria-pressed": severity === "" ? "true" : "false", class: "chip" });
    this.chips = element("div", { class: "chips", role: "group", "aria-label": "Severity" }, choice("", "All", totals.findings),
      SEVERITIES.slice(1).reverse().filter((one) => totals[one]).map((one) => choice(one, one, totals[one])));
    fill(panel, element("h2", {}, "Findings"),
      element("p", { class: "muted" }, "MUST and SHOULD are the strength of the requirement that a packet departs from; ATTACK is a known shape of attack; a NOTE is strange, but nobody’s fault."),
      this.chips,
      element("div", { class: "findings-beside" }, this.list, this.example));
    this.draw();
    this.choose(requirements[0], 0);
  }

  filter(severity, chosen) {
    this.severity = severity;
    for (const chip of this.chips.children) chip.setAttribute("aria-pressed", chip === chosen ? "true" : "false");
    this.draw();
    const first = report.requirements.find((one) => !severity || one.severity === severity);
    if (first) this.choose(first, 0);
  }

  draw() {
    this.buttons = new Map();
    fill(this.list, report.requirements.filter((one) => !this.severity || one.severity === this.severity).map((one) => {
      const choose = element("button", { type: "button", class: "requirement", on: { click: () => this.choose(one, 0) } },
        element("span", { class: "requirement-head" }, severityBadge(one.severity), element("b", {}, one.id), element("span", { class: "number" }, formatCount(one.count))),
        element("span", { class: "requirement-title" }, one.title || one.message));
      this.buttons.set(one, choose);
      return element("li", {}, choose);
    }));
  }

  async choose(requirement, number) {
    for (const [one, node] of this.buttons) {
      if (one === requirement) node.setAttribute("aria-current", "true");
      else node.removeAttribute("aria-current");
    }
    this.wanted = `${requirement.severity} ${requirement.id} ${number}`;
    const wanted = this.wanted;
    const { examples } = requirement;
    const row = examples[number];
    const place = element("div", {}, element("p", { class: "muted" }, "Unpacking …"));
    fill(this.example,
      element("h3", {}, severityBadge(requirement.severity), ` ${requirement.id}`),
      requirement.title ? element("p", { class: "rule" }, requirement.title) : null,
      element("p", { class: "muted" }, `${counted(requirement.count, "finding")} in ${counted(requirement.packets, "packet")}. `,
        button("All these packets", () => showPackets({ requirement: requirement.id }), { class: "link" })),
      examples.length ? element("div", { class: "example-tools" },
        button("←", () => this.choose(requirement, number - 1), { disabled: number === 0, "aria-label": "Example before" }),
        element("span", {}, `Example ${number + 1} of ${examples.length}`),
        button("→", () => this.choose(requirement, number + 1), { disabled: number + 1 >= examples.length, "aria-label": "Next example" })) : null,
      place);
    if (row === undefined) {
      fill(place, element("p", { class: "notice" }, "No packet that shows it is in the report: there was no room left."));
      return;
    }
    const detail = await detailOf(row);
    if (this.wanted !== wanted) return;
    const view = new PacketView(detail, { finding: requirement.id });
    fill(place, packetHead(row, "h4"), view.node);
    view.pinFinding(requirement.id);
  }
}
