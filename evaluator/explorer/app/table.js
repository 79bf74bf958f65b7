"use strict";
/* A table that can be sorted, filtered and paged: of cells, questions, trajectories, rows of any kind.
 *
 * A column: {key, name, kind, value(i), show(i)?, link(i)?, filter?, hint?, scale?}. kind is "number"
 * (also fractions), "choice" or "text". value gives a number (NaN: unknown) or a text; instead, a
 * column of texts that repeat may give {code(i), names}, a text's place and all texts, and one of
 * numbers {array}, all of them. A number times scale is what people read and write. All of the
 * table's state stands in the address, so that a view can be linked to.
 *
 * A hundred thousand rows stay quick because nothing is made for a row but numbers: texts are looked
 * at once each, the order of all rows is kept, and every row knows its bar of a histogram.
 */
(() => {
  const { el, svg, link, number, plural, MISSING, address, remember } = stp;
  const ROWS = 50, BINS = 24, PAUSE = 120;

  function table({ title, columns, count, sort = "", key = "", extra = null, onFilter = null }) {
    const query = address().query, at = (name) => `${key}${name}`;
    const state = { sort: query.get(at("sort")) || sort, page: Number(query.get(at("page"))) || 0, filters: {} };
    const values = Object.fromEntries(columns.map((c) => [c.key, column(c, count)]));
    const byKey = Object.fromEntries(columns.map((c) => [c.key, c]));
    for (const c of columns) if (c.filter && query.get(at(c.key))) state.filters[c.key] = query.get(at(c.key));
    const controls = columns.filter((c) => c.filter).map((c) => control(c));
    let kept = new Uint32Array(0), sorted = {}, mask = null;

    const summary = el("p", { class: "note", role: "status" });
    const head = el("tr"), body = el("tbody");
    const pager = el("div", { class: "bar" });
    const filters = el("details", { class: "filters" }, el("summary", {}, "Filters"), el("div", { class: "filter-grid" }, controls.map((c) => c.node)));
    if (Object.keys(state.filters).length || window.innerWidth > 1000) filters.open = true;
    const clear = el("button", { type: "button", onclick: () => { state.filters = {}; controls.forEach((c) => c.set("")); changed(); } }, "Clear filters");
    const node = el("div", { class: "sortable" }, controls.length ? filters : null,
      el("div", { class: "bar" }, summary, controls.length ? clear : null, extra),
      el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": title }, el("table", {}, el("thead", {}, head), body)), pager);

    function control(c) {
      const id = `filter-${at(c.key)}`, given = state.filters[c.key] || "";
      const put = (text) => {
        if (text) state.filters[c.key] = text; else delete state.filters[c.key];
        state.page = 0;
        clearTimeout(control.timer);
        control.timer = setTimeout(changed, PAUSE);
      };
      const bars = histogram(c, values[c.key], count);
      if (c.kind === "number") {
        const [low, high] = given.split("..");
        const field = (name, value) => el("input", { type: "number", step: "any", value: value || null, "aria-label": `${c.name}, ${name}`, placeholder: name, oninput: () => put(read()) });
        const from = field("from", low), to = field("to", high);
        const read = () => (from.value || to.value ? `${from.value}..${to.value}` : "");
        bars.onPick = (a, b) => { from.value = a; to.value = b; put(read()); };
        return { c, bars, set: (text) => { [from.value, to.value] = text ? text.split("..") : ["", ""]; },
          node: el("fieldset", {}, el("legend", { title: c.hint }, c.name), bars.node, el("div", { class: "range" }, from, to)) };
      }
      if (c.kind === "choice") {
        const names = values[c.key].names.slice().sort();
        const box = el("select", { id, onchange: () => put(box.value) }, el("option", { value: "" }, "all"), names.map((name) => el("option", { value: name, selected: name === given }, name || MISSING)));
        bars.onPick = (name) => { box.value = name; put(name); };
        return { c, bars, set: (text) => { box.value = text; }, node: el("fieldset", {}, el("legend", { title: c.hint }, el("label", { for: id }, c.name)), bars.node, box) };
      }
      const field = el("input", { id, type: "search", value: given, oninput: () => put(field.value) });
      return { c, bars: null, set: (text) => { field.value = text; }, node: el("fieldset", {}, el("legend", {}, el("label", { for: id }, c.name)), field) };
    }

    /* Rows that all filters let pass, in order. */
    function select() {
      const passes = mask ? mask.slice() : new Uint8Array(count).fill(1);
      for (const [name, text] of Object.entries(state.filters)) {
        const own = values[name], c = byKey[name];
        if (c.kind === "number") {
          const [low, high] = text.split("..").map((part) => (part === "" ? null : Number(part) / (c.scale || 1)));
          for (let i = 0; i < count; i++) if ((low !== null && !(own[i] >= low - 1e-9)) || (high !== null && !(own[i] <= high + 1e-9))) passes[i] = 0;
        } else {
          const words = text.toLowerCase().split(/\s+/).filter(Boolean);
          const fits = Uint8Array.from(own.names, c.kind === "choice" ? (known) => known === text : (known) => words.every((word) => known.toLowerCase().includes(word)));
          for (let i = 0; i < count; i++) if (!fits[own.codes[i]]) passes[i] = 0;
        }
      }
      let size = 0;
      const all = ordered(), chosen = new Uint32Array(count);
      for (let i = 0; i < count; i++) if (passes[all[i]]) chosen[size++] = all[i];
      kept = chosen.subarray(0, size);
    }

    /* All rows in order. Unknown values come last in both directions; ties keep the order of the rows. */
    function ordered() {
      const own = values[state.sort.replace(/^-/, "")], sign = state.sort.startsWith("-") ? -1 : 1;
      if (sorted.by === state.sort && sorted.rows) return sorted.rows;
      const rows = new Uint32Array(count), x = own?.ranks ? Float64Array.from(own.codes, (code) => own.ranks[code]) : own;
      for (let i = 0; i < count; i++) rows[i] = i;
      if (x) rows.sort((a, b) => (x[a] === x[b] ? a - b : Number.isNaN(x[a]) ? (Number.isNaN(x[b]) ? a - b : 1) : Number.isNaN(x[b]) ? -1 : sign * (x[a] - x[b])));
      sorted = { by: state.sort, rows };
      return rows;
    }

    function showHead() {
      head.replaceChildren(...columns.map((c, i) => {
        const on = state.sort.replace(/^-/, "") === c.key, down = state.sort.startsWith("-");
        const turn = () => { state.sort = on && down ? c.key : on ? `-${c.key}` : c.kind === "number" ? `-${c.key}` : c.key; state.page = 0; select(); show(); head.children[i].firstChild.focus(); };
        return el("th", { scope: "col", class: i ? null : "first", "aria-sort": on ? (down ? "descending" : "ascending") : null },
          el("button", { type: "button", class: "sort", title: c.hint, onclick: turn }, c.name, el("span", { "aria-hidden": "true" }, on ? (down ? " \u2193" : " \u2191") : "")));
      }));
    }

    function show() {
      showHead();
      const pages = Math.max(1, Math.ceil(kept.length / ROWS));
      state.page = Math.min(state.page, pages - 1);
      summary.textContent = kept.length === count ? plural(count, "row") : `${number(kept.length)} of ${plural(count, "row")}`;
      const shown = kept.subarray(state.page * ROWS, (state.page + 1) * ROWS);
      body.replaceChildren(...[...shown].map((i) => el("tr", {}, columns.map((c, place) => {
        const text = c.show ? c.show(i) : c.kind === "number" ? number(values[c.key][i]) : values[c.key].names[values[c.key].codes[i]];
        const inner = c.link && c.link(i) ? link(c.link(i), text || MISSING) : text || MISSING;
        return place ? el("td", { class: c.kind === "text" ? "words" : null }, inner) : el("th", { scope: "row" }, inner);
      }))));
      const turn = (by) => () => { state.page += by; show(); };
      pager.replaceChildren(...(pages > 1 ? [
        el("button", { type: "button", disabled: state.page === 0, onclick: turn(-1) }, "Previous page"),
        el("span", { class: "note" }, `page ${number(state.page + 1)} of ${number(pages)}`),
        el("button", { type: "button", disabled: state.page >= pages - 1, onclick: turn(1) }, "Next page")] : []));
      remember({ [at("sort")]: state.sort === sort ? null : state.sort, [at("page")]: state.page || null,
        ...Object.fromEntries(columns.filter((c) => c.filter).map((c) => [at(c.key), state.filters[c.key] || null])) });
    }

    function changed() {
      const begun = performance.now();
      select();
      show();
      for (const c of controls) c.bars?.mark(kept);
      clear.disabled = !Object.keys(state.filters).length;
      node.dataset.filterMilliseconds = (performance.now() - begun).toFixed(1);
      onFilter?.(kept);
    }
    changed();
    /* Show only rows that a mask has, a byte a row; null: all again. */
    const limit = (bytes) => { mask = bytes; state.page = 0; changed(); };
    return { node, limit };
  }

  /* Numbers as they are; texts as codes, the texts themselves, and the rank of each. */
  function column(c, count) {
    if (c.array) return c.array;
    if (c.kind === "number") {
      const own = new Float64Array(count);
      for (let i = 0; i < count; i++) { const x = c.value(i); own[i] = x === null || x === undefined ? NaN : x; }
      return own;
    }
    const codes = new Uint32Array(count);
    let names = c.names;
    if (names) for (let i = 0; i < count; i++) codes[i] = c.code(i);
    else {
      const places = new Map();
      for (let i = 0; i < count; i++) {
        const text = c.value(i);
        if (!places.has(text)) places.set(text, places.size);
        codes[i] = places.get(text);
      }
      names = [...places.keys()];
    }
    const ranks = new Uint32Array(names.length);
    [...names.keys()].sort((a, b) => (names[a] < names[b] ? -1 : names[a] > names[b] ? 1 : a - b)).forEach((code, rank) => { ranks[code] = rank; });
    return { codes, names, ranks };
  }

  /* Bars beside a filter: of all rows, and of those that pass. A bar can be picked. */
  function histogram(c, own, count) {
    const NONE = 255, bar = new Uint8Array(count).fill(NONE);
    let bins, name;
    if (c.kind === "number") {
      let low = Infinity, high = -Infinity, whole = true;
      for (let i = 0; i < count; i++) { const x = own[i]; if (x < low) low = x; if (x > high) high = x; if (whole && !Number.isInteger(x) && !Number.isNaN(x)) whole = false; }
      if (!(high >= low)) { low = 0; high = 0; }
      bins = high === low ? 1 : whole ? Math.min(BINS, high - low + 1) : BINS;
      const span = whole ? high - low + 1 : high - low || 1, scale = c.scale || 1;
      const edge = (b) => low + (span * b) / bins;
      for (let i = 0; i < count; i++) if (!Number.isNaN(own[i])) bar[i] = Math.min(bins - 1, Math.floor(((own[i] - low) / span) * bins));
      name = (b) => [Number((edge(b) * scale).toPrecision(6)), Number(((whole ? Math.ceil(edge(b + 1)) - 1 : edge(b + 1)) * scale).toPrecision(6))];
    } else {
      const names = own.names.slice().sort();
      bins = Math.min(names.length, BINS);
      for (let i = 0; i < count; i++) bar[i] = Math.min(bins - 1, own.ranks[own.codes[i]]);
      name = (b) => [names[b]];
    }
    const counted = (rows) => {
      const sizes = new Uint32Array(256);
      if (rows) for (const i of rows) sizes[bar[i]]++; else for (const b of bar) sizes[b]++;
      return sizes.subarray(0, bins);
    };
    const all = counted(null), most = Math.max(1, ...all);
    const height = (n) => (n ? Math.max(1, (38 * Math.sqrt(n)) / Math.sqrt(most)) : 0);
    const made = { onPick: null };
    const across = (b) => ({ x: (b * 120) / bins, width: Math.max(0.5, 120 / bins - 1) });
    const passing = Array.from({ length: bins }, (_, b) => svg("rect", { class: "passing", ...across(b), y: 40, height: 0 }));
    const title = (b) => `${name(b).join(" to ")}: ${number(all[b])}`;
    made.node = svg("svg", { class: "histogram", viewBox: "0 0 120 40", preserveAspectRatio: "none", "aria-hidden": "true" },
      Array.from({ length: bins }, (_, b) => svg("rect", { class: "all", ...across(b), y: 40 - height(all[b]), height: height(all[b]) })), passing,
      Array.from({ length: bins }, (_, b) => svg("rect", { class: "pick", x: (b * 120) / bins, width: 120 / bins, y: 0, height: 40, onclick: () => made.onPick?.(...name(b)) }, svg("title", {}, title(b)))));
    made.mark = (rows) => {
      const sizes = counted(rows);
      passing.forEach((rect, b) => { rect.setAttribute("y", 40 - height(sizes[b])); rect.setAttribute("height", height(sizes[b])); });
    };
    return made;
  }

  stp.table = table;
})();
