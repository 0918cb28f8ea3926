"use strict";
// Elements of the page. Text from a capture becomes text nodes only, never markup.

const SVG = "http://www.w3.org/2000/svg";

/** Set attributes; those that are null or false are left out, `on` has listeners, `style` properties. */
function set(node, attributes) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) node.addEventListener(event, listener);
    } else if (name === "style") {
      for (const [property, text] of Object.entries(value)) node.style.setProperty(property, text);
    } else {
      node.setAttribute(name, value === true ? "" : String(value));
    }
  }
  return node;
}

function append(node, children) {
  for (const child of children.flat(Infinity)) {
    if (child !== null && child !== undefined && child !== false) {
      node.append(child instanceof Node ? child : String(child));
    }
  }
  return node;
}

/** Return an element of HTML with attributes and children: nodes, or anything else as text. */
function element(tag, attributes = {}, ...children) {
  return append(set(document.createElement(tag), attributes), children);
}

/** Return an element of SVG, likewise. */
function drawn(tag, attributes = {}, ...children) {
  return append(set(document.createElementNS(SVG, tag), attributes), children);
}

/** Put children in the place of those that a node has. */
function fill(node, ...children) {
  node.replaceChildren();
  return append(node, children);
}

function byId(id) {
  return document.getElementById(id);
}

function button(text, listener, attributes = {}) {
  return element("button", { type: "button", on: { click: listener }, ...attributes }, text);
}

/** Return a call that runs a function once before the next frame, however often it is called till then. */
function oncePerFrame(run) {
  let waiting = false;
  return () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      run();
    });
  };
}

/** Return a call that runs a function when it was not called for some milliseconds. */
function whenQuiet(run, milliseconds = 150) {
  let timer = 0;
  return () => {
    clearTimeout(timer);
    timer = setTimeout(run, milliseconds);
  };
}

/** Return a small table that is no longer than a screen or two: columns are [title, is number]. */
function plainTable(caption, columns, rows, attributes = {}) {
  return element(
    "table",
    { class: "plain", ...attributes },
    element("caption", {}, caption),
    element("thead", {}, element("tr", {}, columns.map(([title, isNumber]) =>
      element("th", { scope: "col", class: isNumber ? "number" : null }, title)))),
    element("tbody", {}, rows.map((row) => element("tr", {}, row.map((cell, place) =>
      element("td", { class: columns[place][1] ? "number" : null }, cell))))),
  );
}
