"use strict";
/* A campaign: its cells, the questions of a cell, and trajectories of one cell or of all. */
(() => {
  const { el, link, card, folded, percent, points, number, plural, MISSING, piece, where, address, remember, table } = stp;
  const ENDS = { end: "closed", limit: "cut", stop: "output ended", off: "none", unknown: MISSING };
  const CODES = ["end", "limit", "stop", "off", "unknown"];
  const REDRAW = 500;
  const OWN = { 1: "right", 0: "wrong", "-1": MISSING };

  const source = async (place) => (await piece("index")).sources[place];
  const cellName = (cell) => `${cell.model} \u00b7 ${cell.benchmark}`;

  /* Numbers of a column: type and bytes in base64, least significant bytes first. */
  const TYPES = { u1: Uint8Array, i1: Int8Array, u2: Uint16Array, i2: Int16Array, i4: Int32Array };
  function unpacked([type, packed]) {
    const text = atob(packed), bytes = new Uint8Array(text.length);
    for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
    return new TYPES[type](bytes.buffer);
  }

  /* Rows of cells as one value: column(name)[row], and of every row its cell and its row in it. */
  async function rows(place, cells) {
    const read = await Promise.all(cells.map((cell) => piece(`${place}/cell/${cell}`)));
    const count = read.reduce((sum, one) => sum + one.count, 0), starts = [];
    const own = new Uint16Array(count), columns = {}, questions = [], asked = new Uint32Array(count);
    let start = 0;
    read.forEach((one, i) => {
      own.fill(i, start, start + one.count);
      for (const [name, packed] of Object.entries(one.columns)) (columns[name] ||= new Int32Array(count)).set(unpacked(packed), start);
      for (let r = start; r < start + one.count; r++) asked[r] = questions.length + columns.q[r];
      questions.push(...one.questions);
      starts.push(start);
      start += one.count;
    });
    return { count, columns, questions, part: (r) => own[r], cell: (r) => cells[own[r]], inside: (r) => r - starts[own[r]], at: (cell, row) => starts[cells.indexOf(cell)] + row,
      asked: (r) => asked[r], question: (r) => questions[asked[r]], missing: read.reduce((sum, one) => sum + one.missing, 0) };
  }

  async function campaign(view, place) {
    const { name, folder, cells, probes, settings } = await source(place);
    where(name, [[name]]);
    const means = new Map(), at = (c, key) => means.get(c)?.[key] ?? null;
    const share = (key, title, hint) => ({ key, name: title, kind: "number", hint, scale: 100, value: (c) => at(c, key), show: (c) => percent(at(c, key)) });
    const columns = [
      { key: "model", name: "Model", kind: "text", value: (c) => cells[c].model, link: (c) => `/${place}/cell/${c}` },
      { key: "benchmark", name: "Benchmark", kind: "text", value: (c) => cells[c].benchmark },
      { key: "questions", name: "Questions", kind: "number", value: (c) => cells[c].questions },
      { key: "trajectories", name: "Trajectories", kind: "number", value: (c) => cells[c].trajectories },
      share("overthinking_ratio", "OR", "Share of thinking tokens after the best accuracy was first reached"),
      { key: "accuracy_degradation", name: "AD", kind: "number", hint: "Accuracy lost from the best position to the end, points", value: (c) => at(c, "accuracy_degradation"), show: (c) => points(at(c, "accuracy_degradation")).replace("+", "") },
      share("zero_accuracy", "P(0)"), share("full_accuracy", "P(n)"), share("best_accuracy", "P(k*)"), share("original_accuracy", "Original"),
      { key: "full_tokens", name: "Tokens", kind: "number", value: (c) => at(c, "full_tokens") },
    ];
    const host = el("div"), state = el("p", { class: "note", role: "status" });
    const ways = el("p", { class: "bar" }, link(`/${place}/all?sort=-fall`, "All trajectories"), link(`/${place}/frontiers`, "Frontiers"), link("/compare", "Compare with another"));
    view.append(el("p", { class: "scope" }, `${folder}; ${plural(probes, "probe")} a position`), ways,
      card("Cells", el("p", { class: "intro" }, "A cell is one model on one benchmark. Choose one to see its trajectories; the one with the largest fall comes first."), state, host),
      folded("Settings and provenance", el("dl", { class: "reading" }, settings.map(([term, text]) => [el("dt", {}, term), el("dd", {}, text)]))));
    const draw = () => host.replaceChildren(table({ title: "Cells", columns, count: cells.length }).node);
    // The figures of a cell need all of its rows: those that are not known yet come one cell after the other.
    const later = [];
    let missing = 0, drawn = performance.now();
    const put = (c, read) => { if (read.means) means.set(c, read.means); missing += read.missing; };
    cells.forEach((cell, c) => { if (cell.missing === undefined) later.push(c); else put(c, cell); });
    draw();
    for (const [done, c] of later.entries()) {
      state.textContent = `Reading cell ${done + 1} of ${later.length}`;
      put(c, await piece(`${place}/means/${c}`));
      if (!view.isConnected || !host.isConnected) return;
      if (performance.now() - drawn > REDRAW || done + 1 === later.length) { draw(); drawn = performance.now(); }
    }
    state.textContent = missing ? `${plural(missing, "trajectory", "trajectories")} not graded yet; figures are of the rest.` : "";
  }

  async function trajectories(view, place, chosen) {
    const { kind, name, cells, probes } = await source(place);
    const list = chosen === null ? cells.map((_, c) => c) : [chosen];
    const title = chosen === null ? "All trajectories" : cellName(cells[chosen]);
    where(title, [[name, `/${place}`], [title]]);
    const data = await rows(place, list), { columns: c, count } = data;
    const ratio = (r) => (c.L[r] ? (c.L[r] - c.kt[r]) / c.L[r] : 0);
    const open = (r) => `/${place}/t/${data.cell(r)}/${data.inside(r)}`;
    const fraction = (key, heading, value, hint, filter = true) => ({ key, name: heading, kind: "number", filter, hint, scale: 100, value, show: (r) => percent(value(r)) });
    const probed = (key, heading, hint, filter = true) => ({ key, name: heading, kind: "number", filter, hint, scale: 100 / probes, array: c[key], show: (r) => percent(c[key][r] / probes) });
    const several = list.length > 1;
    const columns = [
      { key: "text", name: "Question", kind: "text", filter: true, code: data.asked, names: data.questions.map((question) => question.slice(0, 3).join("\n")), show: (r) => data.question(r)[0], link: (r) => open(r) + (sought() ? `?find=${encodeURIComponent(sought())}` : "") },
      ...(several ? [{ key: "cell", name: "Cell", kind: "choice", filter: true, code: (r) => data.part(r), names: list.map((cell) => cellName(cells[cell])) }] : []),
      ...(kind === "release" ? [{ key: "split", name: "Split", kind: "choice", filter: true, value: (r) => data.question(r)[3] }] : []),
      { key: "s", name: "Sample", kind: "number", array: c.s },
      probed("fall", "Largest fall", "Accuracy lost by one step, in percent"),
      { key: "fk", name: "at step", kind: "number", value: (r) => (c.fk[r] ? c.fk[r] : NaN), show: (r) => (c.fk[r] ? number(c.fk[r]) : MISSING) },
      fraction("ad", "AD", (r) => (c.L[r] ? (c.cb[r] - c.cn[r]) / probes : 0), "P(k*) less P(n)"),
      fraction("or", "OR", ratio, "Share of thinking tokens after k*"),
      { ...probed("c0", "P(0)", "Accuracy without thinking", false), key: "p0" }, { ...probed("cn", "P(n)", "Accuracy after all of the thinking"), key: "pn" },
      { key: "L", name: "Tokens", kind: "number", filter: true, array: c.L },
      { key: "n", name: "Steps", kind: "number", array: c.n },
      { key: "shape", name: "Curve", kind: "choice", filter: true, hint: "Flat: one accuracy throughout. Non-monotone: it falls somewhere.", value: (r) => (c.flat[r] ? "flat" : c.up[r] ? "never falls" : "non-monotone") },
      { key: "end", name: "Thinking", kind: "choice", filter: true, hint: "Closed by the model, cut at the limit, ended with the output, or none", value: (r) => ENDS[CODES[c.end[r]]] },
      { key: "own", name: "Own answer", kind: "choice", filter: true, hint: "The trajectory's own answer", value: (r) => OWN[c.own[r]] },
    ];
    const rowsOf = table({ title: `Trajectories of ${title}`, columns, count, sort: "-fall", onFilter: (kept) => { stp.order = { place, count: kept.length, at: (i) => open(kept[i]), of: (route) => kept.findIndex((r) => open(r) === route) }; } });
    if (data.missing) view.append(el("p", { class: "warning" }, `${plural(data.missing, "trajectory", "trajectories")} not graded yet; the rows are the rest.`));
    view.append(el("p", { class: "intro" }, "Sorted by the largest fall: the first row opens at the step that ruined its answer."), card("Trajectories", list.some((cell) => cells[cell].units) ? search(place, cells, list, data, rowsOf) : null, rowsOf.node));
    if (!several) view.append(card("Questions", questions(place, chosen, data, probes)));
  }

  const sought = () => address().query.get("think") || "";

  /* Rows whose thinking has some words: unit after unit is read, and what was found is shown as it comes. */
  function search(place, cells, list, data, rowsOf) {
    const field = el("input", { type: "search", value: sought(), "aria-label": "Words in the thinking", placeholder: "words in the thinking" }), state = el("span", { class: "found", role: "status" });
    let run = 0;
    async function go(words) {
      const own = ++run, parts = list.flatMap((cell) => Array.from({ length: cells[cell].units }, (_, unit) => [cell, unit]));
      remember({ think: field.value.trim() });
      if (!words.length) { state.textContent = ""; rowsOf.limit(null); return; }
      const mask = new Uint8Array(data.count);
      let found = 0, shown = 0;
      for (const [i, [cell, unit]] of parts.entries()) {
        let read;
        try { read = await piece(`${place}/texts/${cell}/${unit}`); } catch (error) { state.textContent = `The thinking cannot be searched here: ${error.message}`; return; }
        if (own !== run || !state.isConnected) return;
        read.texts.forEach((text, at) => { const low = text.toLowerCase(); if (words.every((word) => low.includes(word))) { mask[data.at(cell, read.rows[at])] = 1; found++; } });
        state.textContent = `${plural(found, "trajectory", "trajectories")} with these words, ${number(i + 1)} of ${plural(parts.length, "part")} read`;
        if (i + 1 === parts.length || performance.now() - shown > 1000) { shown = performance.now(); rowsOf.limit(mask); }
      }
    }
    const begin = () => go(field.value.toLowerCase().split(/\s+/).filter(Boolean));
    const form = el("form", { class: "bar", role: "search", onsubmit: (event) => { event.preventDefault(); begin(); } }, field, el("button", { type: "submit" }, "Search"), state);
    if (sought()) requestAnimationFrame(begin);
    return form;
  }

  /* The questions of a cell, from its rows: a question's means are over its trajectories. */
  function questions(place, cell, data, probes) {
    const { columns: c, count } = data, found = new Map();
    for (let r = 0; r < count; r++) {
      const q = c.q[r];
      if (!found.has(q)) found.set(q, { first: r, size: 0, c0: 0, cn: 0, cb: 0, or: 0, L: 0, own: 0, known: 0 });
      const sum = found.get(q);
      sum.size++; sum.c0 += c.c0[r]; sum.cn += c.cn[r]; sum.cb += c.L[r] ? c.cb[r] : c.cn[r]; sum.L += c.L[r];
      sum.or += c.L[r] ? (c.L[r] - c.kt[r]) / c.L[r] : 0;
      if (c.own[r] >= 0) { sum.own += c.own[r]; sum.known++; }
    }
    const list = [...found.values()], mean = (key, by = probes) => (i) => list[i][key] / list[i].size / by;
    const fraction = (key, name, value) => ({ key, name, kind: "number", scale: 100, filter: true, value, show: (i) => percent(value(i)) });
    return table({
      title: "Questions", key: "q-", count: list.length, sort: "-ad", columns: [
        { key: "text", name: "Question", kind: "text", filter: true, value: (i) => data.question(list[i].first).slice(0, 3).join("\n"), show: (i) => data.question(list[i].first)[0],
          link: (i) => `/${place}/cell/${cell}?text=${encodeURIComponent(data.question(list[i].first)[0])}` },
        { key: "size", name: "Trajectories", kind: "number", value: (i) => list[i].size },
        fraction("ad", "AD", (i) => (list[i].cb - list[i].cn) / list[i].size / probes), fraction("or", "OR", mean("or", 1)),
        fraction("p0", "P(0)", mean("c0")), fraction("pn", "P(n)", mean("cn")),
        { key: "L", name: "Tokens", kind: "number", value: mean("L", 1) },
        { key: "prompt", name: "Prompt", kind: "text", value: (i) => data.question(list[i].first)[1].slice(0, 120) },
      ],
    }).node;
  }

  Object.assign(stp, { source, rows, cellName, ENDS, campaign, trajectories });
})();
