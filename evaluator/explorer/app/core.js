"use strict";
/* Pieces, elements, numbers and addresses: what every part of the page uses.
 *
 * A piece is a script beside the page, pieces/NAME.js, that calls stpPiece(NAME, VALUE), or
 * stpFailed(NAME, REASON). Texts come from models and strangers and are never parsed as HTML: they
 * only ever become text nodes and attributes that hold no address.
 */
window.stp = (() => {
  const SVG = "http://www.w3.org/2000/svg";
  const PIECES_KEPT = 64;
  const pieces = new Map(), waiting = new Map();

  /* ---- pieces ---- */

  function settle(name, act) {
    const entry = waiting.get(name);
    if (!entry) return;
    waiting.delete(name);
    entry.script.remove();
    act(entry);
  }
  window.stpPiece = (name, value) => settle(name, ({ resolve }) => {
    // Texts to be searched and rows of cells are large, and put away by who asked; of trajectories the last ones are kept.
    if (!/\/(texts|cell)\//.test(name)) pieces.set(name, value);
    const many = [...pieces.keys()].filter((known) => known.includes("/t/"));
    if (many.length > PIECES_KEPT) pieces.delete(many[0]);
    resolve(value);
  });
  window.stpFailed = (name, reason) => settle(name, ({ reject }) => reject(new Error(reason)));

  function piece(name) {
    if (pieces.has(name)) return Promise.resolve(pieces.get(name));
    if (waiting.has(name)) return waiting.get(name).promise;
    const entry = { script: document.createElement("script") };
    entry.promise = new Promise((resolve, reject) => Object.assign(entry, { resolve, reject }));
    waiting.set(name, entry);
    entry.script.addEventListener("error", () => settle(name, ({ reject }) => reject(new Error("it cannot be loaded; is the server still running?"))));
    entry.script.src = `pieces/${name.split("/").map(encodeURIComponent).join("/")}.js`;
    document.head.append(entry.script);
    return entry.promise;
  }

  /* ---- elements ---- */

  function fill(node, attributes, children) {
    for (const [key, value] of Object.entries(attributes)) {
      if (value === null || value === undefined || value === false) continue;
      if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
      else node.setAttribute(key, value === true ? "" : value);
    }
    node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
    return node;
  }
  const el = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
  const svg = (tag, attributes = {}, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);
  const link = (route, ...children) => el("a", { href: `#${route}` }, ...children);
  function card(title, ...children) {
    return el("section", { class: "card" }, title ? el("h2", {}, title) : null, ...children);
  }
  function tiles(pairs) {
    return el("dl", { class: "tiles" }, pairs.map(([name, value, note]) =>
      el("div", { class: "tile" }, el("dt", {}, name), el("dd", {}, value, note ? el("small", {}, ` ${note}`) : null))));
  }
  const folded = (summary, ...children) => el("details", {}, el("summary", {}, summary), ...children);

  /* ---- numbers as text ---- */

  const MISSING = "\u2013";
  const unknown = (x) => x === null || x === undefined || Number.isNaN(x);
  const percent = (x, digits = 1) => (unknown(x) ? MISSING : `${(100 * x).toFixed(digits)}%`);
  const points = (x, digits = 1) => (unknown(x) ? MISSING : `${x > 0 ? "+" : x < 0 ? "\u2212" : "\u00b1"}${Math.abs(100 * x).toFixed(digits)}`);
  const number = (x, digits = 0) => (unknown(x) ? MISSING : x.toLocaleString("en-US", { maximumFractionDigits: digits, minimumFractionDigits: digits }));
  const plural = (n, noun, many) => `${number(n)} ${n === 1 ? noun : many || `${noun}s`}`;

  /* ---- addresses: #/route?key=value ---- */

  function address() {
    const [route, query] = location.hash.slice(1).split("?");
    return { route: route || "/", query: new URLSearchParams(query || "") };
  }
  /* Write the state of a view into the address; the view stays as it is. */
  function remember(changes) {
    const { route, query } = address();
    for (const [key, value] of Object.entries(changes)) {
      if (value === null || value === "" || value === undefined) query.delete(key);
      else query.set(key, value);
    }
    const text = query.toString();
    history.replaceState(null, "", `#${route}${text ? `?${text}` : ""}`);
  }
  function where(title, crumbs) {
    document.getElementById("heading").textContent = title;
    document.title = `${title} \u00b7 Explorer`;
    document.getElementById("crumbs").replaceChildren(link("/", "All folders"),
      ...crumbs.map(([name, route]) => (route ? link(route, name) : el("span", { "aria-current": "page" }, name))));
  }

  /* The routes before and after one in the table that was looked at last; else those that are given. */
  function neighbours(place, route, before, after) {
    const order = stp.order?.place === place ? stp.order : null, at = order ? order.of(route) : -1;
    return at < 0 ? [before, after] : [at ? order.at(at - 1) : null, at + 1 < order.count ? order.at(at + 1) : null];
  }

  /* Keys of the view that is open; a field that is being written in keeps its own. */
  let keys = {};
  const onKeys = (handlers) => { keys = handlers; };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) return;
    const act = keys[event.key];
    if (act) { event.preventDefault(); act(); }
  });

  return { piece, el, svg, link, card, tiles, folded, percent, points, number, plural, unknown, MISSING, address, remember, where, neighbours, onKeys };
})();
