// Questions and forms before anything is changed.
import { announce, el } from "./dom.js";

/** Ask; `run` is called with the values of the fields by name, and the dialog tells what is refused.
 *
 * `fields`: {name, label, type, value, hint, choices, options, placeholder, optional, wide, shows}; `type` is text (by
 * default), number, area, check or select with `options` ([value, text]). `choices` are proposals for a text.
 * `confirm`: a text that has to be typed first, and what it is.
 * Return whether it was done. */
export function ask({ title, text, action, fields = [], confirm, danger = true, done = () => {}, run }) {
  const error = el("p", { class: "error", role: "alert", hidden: true });
  const asked = confirm ? [...fields, {
    name: "confirm", label: `Type ${confirm.what} to confirm`, placeholder: confirm.text, hint: confirm.text,
  }] : fields;
  const inputs = new Map(asked.map((field, at) => [field.name, input(field, at)]));
  const go = el("button", { type: "submit", class: danger ? "danger" : "primary" }, action);
  const cancel = el("button", { type: "button", onclick: () => dialog.close() }, "Cancel");
  const form = el("form", { method: "dialog", novalidate: true, onsubmit: submit },
    el("h2", { id: "dialog-title" }, title), text && el("p", { id: "dialog-text" }, text),
    asked.map((field, at) => row(field, at, inputs.get(field.name))),
    error, el("div", { class: "buttons" }, cancel, go));
  const dialog = el("dialog", { "aria-labelledby": "dialog-title", "aria-describedby": text ? "dialog-text" : null, class: asked.length > 3 ? "wide" : null }, form);
  const first = asked.length ? inputs.get(asked[0].name) : cancel;
  let isDone = false;

  function refuse(why, at) {
    error.textContent = why;
    error.hidden = false;
    go.disabled = false;
    for (const one of inputs.values()) one.removeAttribute("aria-invalid");
    if (at !== undefined && asked.length) at.setAttribute("aria-invalid", "true");
    (at ?? first).focus();
  }

  async function submit(event) {
    event.preventDefault();
    const values = {};
    for (const field of asked) {
      const one = inputs.get(field.name);
      values[field.name] = field.type === "check" ? one.checked : field.type === "area" ? one.value : one.value.trim();
      if (values[field.name] === "" && !field.optional) return refuse(`${field.label}: something is missing.`, one);
    }
    if (confirm && values.confirm !== confirm.text) return refuse(`That is not ${confirm.what}.`, inputs.get("confirm"));
    go.disabled = true;
    error.hidden = true;
    try {
      const told = await run(values);
      isDone = true;
      dialog.close();
      announce(told);
      done();
    } catch (refused) {
      refuse(refused.message, [...inputs].find(([name]) => refused.path === name || refused.path?.endsWith(`.${name}`))?.[1]);
    }
    return undefined;
  }

  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(isDone);
    });
    document.body.append(dialog);
    dialog.showModal();
    first.focus();
  });
}

function input(field, at) {
  const id = `dialog-field-${at}`;
  const common = { id, required: !field.optional && field.type !== "check", "aria-describedby": field.hint ? `${id}-hint` : null };
  if (field.type === "select") {
    return el("select", common, field.options.map(([value, text]) => el("option", { value, selected: value === field.value }, text)));
  }
  if (field.type === "check") return el("input", { ...common, type: "checkbox", checked: field.value === true });
  const typed = { ...common, autocomplete: "off", spellcheck: "false", placeholder: field.placeholder };
  if (field.type === "area") {
    const area = el("textarea", { ...typed, rows: 5, maxlength: field.most ?? 1 << 20 });
    area.value = field.value ?? "";
    return area;
  }
  const number = field.type === "number" ? { inputmode: "numeric" } : {};
  return el("input", {
    ...typed, ...number, type: "text", value: field.value ?? "", maxlength: field.most ?? 1000, list: field.choices ? `${id}-choices` : null,
  });
}

function row(field, at, one) {
  const id = `dialog-field-${at}`;
  const label = el("label", { for: id }, field.label);
  const hint = field.hint && el("p", { class: "hint", id: `${id}-hint` }, field.hint);
  const choices = field.choices && el("datalist", { id: `${id}-choices` }, field.choices.map((choice) => el("option", { value: choice })));
  if (field.type === "check") return el("div", { class: "field check" }, one, label, hint);
  return el("div", { class: "field" }, label, one, hint, choices);
}

/** Show something that has happened, as a secret that is shown once. */
export function tell({ title, content }) {
  const close = el("button", { type: "button", class: "primary", onclick: () => dialog.close() }, "Close");
  const dialog = el("dialog", { "aria-labelledby": "dialog-title" },
    el("form", { method: "dialog" }, el("h2", { id: "dialog-title" }, title), content, el("div", { class: "buttons" }, close)));
  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve();
    });
    document.body.append(dialog);
    dialog.showModal();
    close.focus();
  });
}
