"use strict";
// Cells that are copied from tables, mostly for a spreadsheet: a text that would be a formula there gets an apostrophe,
// as in CSV by msmqwire/tables/spreadsheet.py. What is copied from inside one cell stays as it is.
(() => {
  const FORMULA = /^(?:'|[\t\r\n]|[\x00-\x20\x7f\xa0\ufeff]*[=+\-@\uff1d\uff0b\uff0d\uff20])/;
  const escaped = (text) => (FORMULA.test(text) ? `'${text}` : text);

  /** Return the text of rows, with tabs between their cells. */
  const textOf = (rows) => rows.map((cells) =>
    cells.map((cell) => escaped(cell.textContent.replace(/[\t\r\n]+/g, " "))).join("\t")).join("\n");

  document.addEventListener("copy", (event) => {
    const selection = getSelection();
    const rows = [...document.querySelectorAll("tr")].filter((row) => selection.containsNode(row, true))
      .map((row) => [...row.cells].filter((cell) => selection.containsNode(cell, true)))
      .filter((cells) => cells.length);
    if (rows.length < 2 && (rows[0] || []).length < 2) return;
    event.preventDefault();
    event.clipboardData.setData("text/plain", textOf(rows));
  });
})();
