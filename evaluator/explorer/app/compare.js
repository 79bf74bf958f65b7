"use strict";
/* Two cells side by side: the same questions under two models, settings or probe plans. */
(() => {
  const { el, card, percent, points, number, plural, piece, where, address, cellName, rows, table } = stp;
  const QUANTILE = 1.96;
  const FIGURES = [
    ["pn", "P(n), points", 100], ["p0", "P(0), points", 100], ["pb", "P(k*), points", 100], ["ad", "AD, points", 100],
    ["or", "OR, points", 100], ["L", "Thinking tokens", 1], ["own", "Original answers right, points", 100],
  ];

  async function compare(page) {
    const { sources } = await piece("index"), query = address().query;
    where("Side by side", [["Side by side"]]);
    const choices = sources.flatMap((source, place) => (source.cells ? source.cells.map((cell, c) => ({ place, cell: c, name: `${sources.length > 1 ? `${source.name} (${source.folder}): ` : ""}${cellName(cell)}`, benchmark: cell.benchmark })) : []));
    if (choices.length < 2) { page.append(el("p", { class: "intro" }, "There is one cell here. Name further campaigns, such as `stp explore FIRST SECOND`, to compare them.")); return; }
    const first = choices[0], like = choices.findIndex((choice, i) => i && choice.benchmark === first.benchmark);
    const pick = (key, fallback) => Math.min(choices.length - 1, Number(query.get(key) ?? fallback) || 0);
    const host = el("div");
    const box = (key, chosen, label) => el("select", { "aria-label": label, onchange: () => { location.hash = `/compare?a=${a.value}&b=${b.value}`; } }, choices.map((choice, i) => el("option", { value: i, selected: i === chosen }, choice.name)));
    const a = box("a", pick("a", 0), "First"), b = box("b", pick("b", Math.max(like, 1)), "Second");
    page.append(card(null, el("div", { class: "bar" }, a, el("span", { class: "note" }, "beside"), b)), host);
    await show(host, choices[Number(a.value)], choices[Number(b.value)], sources);
  }

  /* A cell's questions by id, each with the means over its trajectories. */
  async function byQuestion(choice, probes) {
    const data = await rows(choice.place, [choice.cell]), { columns: c } = data, found = new Map();
    for (let r = 0; r < data.count; r++) {
      const id = data.question(r)[0];
      if (!found.has(id)) found.set(id, { id, prompt: data.question(r)[1], reference: data.question(r)[2], size: 0, known: 0, sums: { pn: 0, p0: 0, pb: 0, ad: 0, or: 0, L: 0, own: 0 }, worst: r });
      const one = found.get(id), thinks = c.L[r] > 0, sums = one.sums;
      one.size++; sums.pn += c.cn[r] / probes; sums.p0 += c.c0[r] / probes; sums.pb += c.cb[r] / probes; sums.L += c.L[r];
      sums.ad += thinks ? (c.cb[r] - c.cn[r]) / probes : 0; sums.or += thinks ? (c.L[r] - c.kt[r]) / c.L[r] : 0;
      if (c.own[r] >= 0) { sums.own += c.own[r]; one.known++; }
      if (c.fall[r] > c.fall[one.worst]) one.worst = r;
    }
    for (const one of found.values()) one.mean = Object.fromEntries(Object.entries(one.sums).map(([key, sum]) => [key, sum / (key === "own" ? one.known : one.size)]));
    return found;
  }

  async function show(host, a, b, sources) {
    const [left, right] = await Promise.all([byQuestion(a, sources[a.place].probes), byQuestion(b, sources[b.place].probes)]);
    // Another seed has the same ids for other questions; a release has no texts to tell by.
    const same = ([one, other]) => ["prompt", "reference"].every((key) => !one[key] || !other[key] || one[key] === other[key]);
    const named = [...left.values()].filter((one) => right.has(one.id)).map((one) => [one, right.get(one.id)]), shared = named.filter(same), apart = named.length - shared.length;
    const others = apart ? `${plural(apart, "question")} of the same name ${apart === 1 ? "is another one" : "are other ones"} in the second cell and left out.` : "";
    if (!shared.length) { host.append(el("p", { class: "warning" }, `The two cells have no question in common. ${others}`)); return; }
    const paired = (key) => shared.map(([one, other]) => [one.mean[key], other.mean[key]]).filter(([x, y]) => !Number.isNaN(x) && !Number.isNaN(y));
    const mean = (values) => values.reduce((sum, x) => sum + x, 0) / values.length;
    const lines = FIGURES.map(([key, name, scale]) => {
      const pairs = paired(key), changes = pairs.map(([x, y]) => scale * (y - x)), middle = mean(changes);
      const half = changes.length > 1 ? QUANTILE * Math.sqrt(changes.reduce((sum, x) => sum + (x - middle) ** 2, 0) / (changes.length - 1) / changes.length) : NaN;
      const text = (x) => number(x, 1);
      return el("tr", {}, el("th", { scope: "row" }, name), el("td", {}, text(scale * mean(pairs.map(([x]) => x)))), el("td", {}, text(scale * mean(pairs.map(([, y]) => y)))),
        el("td", { "data-figure": key }, `${middle > 0 ? "+" : ""}${text(middle)}`), el("td", {}, Number.isNaN(half) ? "" : `[${text(middle - half)}, ${text(middle + half)}]`));
    });
    const change = (key) => (i) => shared[i][1].mean[key] - shared[i][0].mean[key];
    const column = (key, name) => ({ key, name, kind: "number", scale: 100, filter: true, value: change(key), show: (i) => points(change(key)(i)) });
    const level = (side, name) => ({ key: `pn${side}`, name, kind: "number", scale: 100, value: (i) => shared[i][side].mean.pn, show: (i) => percent(shared[i][side].mean.pn) });
    host.append(
      card("Means and differences", el("p", { class: "intro" }, `${plural(shared.length, "question")} in common, of ${number(left.size)} and ${number(right.size)}. The difference is second less first, paired by question; intervals are 95% over questions (normal approximation). ${others}`),
        el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Means and differences" }, el("table", {}, el("thead", {}, el("tr", {}, ["Figure", "First", "Second", "Difference", "95% interval"].map((text, i) => el("th", { scope: "col", class: i ? null : "first" }, text)))), el("tbody", {}, lines)))),
      card("Questions that changed most", table({
        title: "Questions that changed", count: shared.length, sort: "-size", columns: [
          { key: "text", name: "Question", kind: "text", filter: true, value: (i) => `${shared[i][0].id}\n${shared[i][0].prompt}`, show: (i) => shared[i][0].id },
          { key: "size", name: "Change of P(n), size", kind: "number", scale: 100, value: (i) => Math.abs(change("pn")(i)), show: (i) => percent(Math.abs(change("pn")(i))) },
          column("pn", "P(n)"), level(0, "First"), level(1, "Second"), column("ad", "AD"), column("or", "OR"),
          { key: "L", name: "Tokens", kind: "number", filter: true, value: change("L") },
          { key: "a", name: "Read", kind: "text", value: () => "first", link: (i) => `/${a.place}/t/${a.cell}/${shared[i][0].worst}` },
          { key: "b", name: "Read", kind: "text", value: () => "second", link: (i) => `/${b.place}/t/${b.cell}/${shared[i][1].worst}` },
        ],
      }).node));
  }

  stp.compare = compare;
})();
