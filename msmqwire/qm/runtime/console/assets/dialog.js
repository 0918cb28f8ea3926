// Questions before anything is changed.
import { announce, el } from "./dom.js";

/** Ask; `run` is called with the text of the field, if there is one, and the dialog tells what it refuses.
 * Return whether it was done. */
export function ask({ title, text, action, field, danger = true, run }) {
  const error = el("p", { class: "error", role: "alert", hidden: true });
  const input = field && el("input", {
    id: "dialog-field", type: "text", required: true, autocomplete: "off", spellcheck: "false", list: "dialog-choices",
    "aria-describedby": "dialog-hint", placeholder: field.placeholder, maxlength: 1000,
  });
  const go = el("button", { type: "submit", class: danger ? "danger" : "primary" }, action);
  const cancel = el("button", { type: "button", onclick: () => dialog.close() }, "Cancel");
  const form = el("form", { method: "dialog", onsubmit: submit },
    el("h2", { id: "dialog-title" }, title), el("p", { id: "dialog-text" }, text),
    field && [
      el("label", { for: "dialog-field" }, field.label), input,
      el("p", { class: "hint", id: "dialog-hint" }, field.hint),
      el("datalist", { id: "dialog-choices" }, field.choices.map((choice) => el("option", { value: choice }))),
    ],
    error, el("div", { class: "buttons" }, cancel, go));
  const dialog = el("dialog", { "aria-labelledby": "dialog-title", "aria-describedby": "dialog-text" }, form);
  let done = false;

  async function submit(event) {
    event.preventDefault();
    go.disabled = true;
    error.hidden = true;
    try {
      announce(await run(input ? input.value.trim() : ""));
      done = true;
      dialog.close();
    } catch (refused) {
      error.textContent = refused.message;
      error.hidden = false;
      go.disabled = false;
      (input || cancel).focus();
    }
  }

  return new Promise((resolve) => {
    dialog.addEventListener("close", () => {
      dialog.remove();
      resolve(done);
    });
    document.body.append(dialog);
    dialog.showModal();
    (input || cancel).focus();
  });
}
