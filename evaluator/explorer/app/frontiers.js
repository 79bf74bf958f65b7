"use strict";
/* Frontiers of a campaign, and the methods of an OTBench run beside what bounds them. */
(() => {
  const { el, card, percent, number, plural, unknown, MISSING, piece, where, remember, address, source, cellName, chart, colour, look, tip, tooltip, table, STRATEGIES, frontierView, frontierFrame, frontierEnds, interval } = stp;
  async function frontiers(page, place) {
    const { name, cells } = await source(place);
    where("Frontiers", [[name, `/${place}`], ["Frontiers"]]);
    const choices = [...(cells.length > 1 ? [["all", "Average of all cells"]] : []), ...cells.map((cell, c) => [String(c), cellName(cell)])];
    const asked = address().query.get("cell"), host = el("div");
    const box = el("select", { "aria-label": "Cell", onchange: () => draw(box.value) }, choices.map(([value, text]) => el("option", { value, selected: value === asked }, text)));
    page.append(el("p", { class: "intro" }, "For every budget of thinking tokens, the best accuracy that each kind of stopping rule could have had on these trajectories. It knows all answers: a bound, no method."),
      card(null, el("div", { class: "bar" }, el("span", { class: "note" }, "Show"), box), host));
    async function draw(value) {
      remember({ cell: value });
      const view = await piece(`${place}/frontier/${value}`), show = (bands) => host.replaceChildren(frontierView(view, `frontiers-${value}`, bands), frontierTable(view));
      if (box.value !== value) return;
      show(null);
      // They are drawn a thousand times again: the frontiers are there meanwhile.
      if (cells[value]?.band) piece(`${place}/bands/${value}`).then((bands) => { if (box.value === value && host.isConnected) show(bands); }).catch((error) => host.append(el("p", { class: "warning" }, `No intervals: ${error.message}`)));
    }
    await draw(box.value);
  }

  function frontierTable(view) {
    const enough = (line) => line.y.findIndex((y) => y >= view.full - 1e-9);
    return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Savings" }, el("table", {},
      el("thead", {}, el("tr", {}, ["Strategy", "Tokens that keep P(n)", "Best accuracy", "at tokens"].map((text, i) => el("th", { scope: "col", class: i ? null : "first" }, text)))),
      el("tbody", {}, STRATEGIES.map((strategy) => view.lines.find((line) => line.strategy === strategy)).map((line) => el("tr", {}, el("th", { scope: "row" }, line.name),
        el("td", {}, percent(line.x[enough(line)])), el("td", {}, percent(line.y.at(-1))), el("td", {}, percent(line.x[line.y.indexOf(line.y.at(-1))])))))));
  }

  /* ---- the methods of an OTBench run ---- */

  async function methods(page, place) {
    const { name, release, headlines } = await source(place), view = await piece(`${place}/rows`);
    where(name, [[name]]);
    page.append(...headlines.map((line) => el("p", { class: "potential" }, line)), el("p", { class: "scope" }, `Release ${release}; ${plural(view.rows.length, "row")}`),
      card("Methods beside what bounds them", methodView(view)), card("Rows", methodTable(view)));
  }

  /* The methods of a strategy, each of which is switched on and off. */
  function methodView(view) {
    const present = Object.keys(view.strategies).filter((strategy) => view.rows.some((row) => row.strategy === strategy && !row.trivial));
    let bands = address().query.has("bands");
    const host = el("div"), hidden = new Set((address().query.get("off") || "").split("\n").filter(Boolean));
    const box = el("select", { "aria-label": "Strategy", onchange: () => draw() }, present.map((strategy) => el("option", { value: strategy, selected: strategy === address().query.get("strategy") }, view.strategies[strategy])));
    function draw() {
      remember({ strategy: box.value });
      const rows = view.rows.filter((row) => row.strategy === box.value && !row.trivial), trivial = view.rows.filter((row) => row.trivial && row.points.length > 1);
      const switches = el("fieldset", { class: "switches" }, el("legend", { class: "note" }, "Methods shown"), [...rows, ...trivial].map((row) => el("label", {}, el("input", {
        type: "checkbox", checked: !hidden.has(row.label), onchange: (event) => { if (event.target.checked) hidden.delete(row.label); else hidden.add(row.label); remember({ off: [...hidden].join("\n") }); draw(); },
      }), row.own ? el("strong", {}, `${row.label} (yours)`) : row.label)));
      host.replaceChildren(switches, methodChart(view, rows, trivial, { hidden, bands, strategy: box.value }));
    }
    if (present.length) draw();
    const sure = view.rows.some((row) => row.points.some((point) => point.band)) ? el("label", {}, el("input", { type: "checkbox", checked: bands, onchange: (event) => { bands = event.target.checked; remember({ bands: bands ? "1" : null }); draw(); } }), " 95% intervals") : null;
    return el("div", {}, el("div", { class: "bar" }, box, sure), host);
  }

  function methodChart(view, rows, trivial, { hidden, bands, strategy }) {
    const drawn = [...rows.map((row, i) => ({ row, look: () => look(i) })), ...trivial.map((row) => ({ row, look: () => ({ color: colour("muted"), dash: "dotted", marker: "none" }) }))].filter(({ row }) => !hidden.has(row.label));
    // A run without its release knows the frontier where some method was measured.
    const known = view.frontiers?.[strategy], bound = new Map(known || rows.flatMap((row) => row.points.filter((point) => !unknown(point.frontier)).map((point) => [point.x, point.frontier])));
    const frontier = [...bound].sort((a, b) => a[0] - b[0]);
    const text = (row, point) => [`${row.label}, setting ${point.setting}`, `${percent(point.x)} of the tokens: accuracy ${percent(point.y)}`,
      ...(point.band ? [`95% interval ${percent(point.band[0])} to ${percent(point.band[1])}`] : []),
      ...(unknown(point.tokens) ? [] : [`${number(point.tokens)} tokens, ${number(point.right)} probes right`]),
      ...(unknown(point.frontier) ? [] : [`frontier there ${percent(point.frontier)}`])];
    const kept = ({ row }) => row.points.map((point, i) => ({ point, i })).filter(({ point }) => point.kept).sort((a, b) => a.point.x - b.point.x);
    return chart({
      label: `Accuracy over tokens of ${plural(drawn.length, "method")} of the strategy ${view.strategies[strategy]}`, height: 460, save: `methods-${strategy}`,
      make: (narrow) => {
        const series = [];
        for (const one of drawn) {
          const own = one.look(), data = kept(one);
          series.push({ name: one.row.label, type: "line", step: "end", symbol: own.marker, symbolSize: one.row.own ? 10 : 7, itemStyle: { color: own.color }, lineStyle: { color: own.color, type: own.dash, width: one.row.own ? 3.5 : 2 },
            data: data.map(({ point, i }) => ({ value: [point.x, point.y], lines: text(one.row, point), ...(i === one.row.selected && own.marker !== "none" ? { symbolSize: 15, itemStyle: { borderColor: colour("ink"), borderWidth: 2 } } : {}) })) });
          // The setting that was selected may lie below the curve.
          const chosen = one.row.points[one.row.selected];
          if (!chosen.kept && own.marker !== "none") series.push({ name: one.row.label, type: "scatter", symbol: own.marker, symbolSize: 15, itemStyle: { color: own.color, borderColor: colour("ink"), borderWidth: 2 }, data: [{ value: [chosen.x, chosen.y], lines: text(one.row, chosen) }] });
          // Those of several methods cover each other: they are asked for, and one's own are always there.
          const banded = bands || one.row.own ? data.filter(({ point }) => point.band) : [];
          if (banded.length && own.marker !== "none") {
            series.push(...interval(one.row.label, banded.map(({ point }) => [point.x, ...point.band]), own.color, 0.1));
          }
        }
        if (frontier.length) series.push({ name: known ? "frontier" : "frontier, where methods were measured", type: "line", step: "end", data: frontier, symbol: "none", lineStyle: { color: colour(strategy), width: 2.6 }, itemStyle: { color: colour(strategy) } });
        series.push(frontierEnds(view));
        return { ...frontierFrame(narrow), tooltip: tooltip(({ data, seriesName }) => tip(data.lines || [seriesName, `${percent((data.value || data)[0])} of the tokens: ${percent((data.value || data)[1])}`])), series };
      },
    });
  }

  function methodTable(view) {
    const rows = view.rows, value = (key) => (i) => rows[i].summary[key][0];
    const span = (key, show) => (i) => { const [at, low, high] = rows[i].summary[key]; return unknown(at) ? MISSING : `${show(at)}${unknown(low) ? "" : ` [${show(low)}, ${show(high)}]`}`; };
    const bare = (x) => (100 * x).toFixed(1);
    const fraction = (key, name) => ({ key, name, kind: "number", scale: 100, hint: view.summaries[key], value: value(key), show: span(key, bare) });
    const shareOf = (key, name, hint) => ({ key, name, kind: "number", scale: 100, hint, value: (i) => rows[i].shares?.[key] ?? NaN, show: (i) => (rows[i].shares ? bare(rows[i].shares[key]) : MISSING) });
    return table({
      title: "Rows", count: rows.length, sort: "-curve_area", columns: [
        { key: "label", name: "Method", kind: "text", filter: true, value: (i) => rows[i].label + (rows[i].own ? " (yours)" : "") },
        { key: "strategyname", name: "Strategy", kind: "choice", filter: true, value: (i) => view.strategies[rows[i].strategy] },
        fraction("curve_area", "Area"), fraction("hypervolume_share", "Of frontier, %"), fraction("tokens_saved_fraction", "Saved at P(n), %"),
        fraction("selected_tokens_fraction", "Tokens, %"), fraction("selected_accuracy", "Accuracy, %"), fraction("selected_gap", "Gap, points"),
        ...(rows.some((row) => row.shares) ? [shareOf("none", "No thinking, %", "Share of test trajectories that the selected setting stops before the first step"), shareOf("all", "To the end, %", "Share of test trajectories that it does not stop")] : []),
      ],
    }).node;
  }

  Object.assign(stp, { frontiers, methods, methodView });
})();
