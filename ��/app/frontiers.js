"use strict";
/* Frontiers of a campaign, and the methods of an OTBench run beside what bounds them. */
(() => {
  const { el, card, folded, percent, number, plural, unknown, MISSING, piece, where, remember, address, source, cellName, chart, colour, look, tip, axis, tooltip, table } = stp;
  const STRATEGIES = ["early_exit", "fixed_budget", "routing"];
  const DASH = { early_exit: "solid", fixed_budget: "dashed", routing: "dotted" };

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
      const view = await piece(`${place}/frontier/${value}`);
      if (box.value === value) host.replaceChildren(frontierChart(view, `frontiers-${value}`), frontierTable(view));
    }
    await draw(box.value);
  }

  function frontierChart(view, save) {
    const lines = STRATEGIES.map((strategy) => view.lines.find((line) => line.strategy === strategy));
    const text = (line, i) => [line.name, `${percent(line.x[i])} of the tokens: accuracy ${percent(line.y[i])}`,
      ...(line.tokens ? [`${number(line.tokens[i])} of ${number(view.tokens)} tokens`, `${number(line.right[i])} of ${number(view.probes)} probes right`] : [])];
    return chart({
      label: `Best accuracy over token budget: ${lines.map((line) => `${line.name} reaches ${percent(line.y.at(-1))}`).join("; ")}`, height: 420, save,
      make: (narrow) => ({
        ...frame(narrow), tooltip: tooltip(({ seriesIndex, dataIndex }) => (lines[seriesIndex] ? tip(text(lines[seriesIndex], dataIndex)) : "")),
        series: [...lines.map((line) => ({ name: line.name, type: "line", step: "end", data: line.x.map((x, i) => [x, line.y[i]]), symbolSize: 5, showSymbol: true, symbol: "circle",
          itemStyle: { color: colour(line.strategy), opacity: 0.55 }, lineStyle: { color: colour(line.strategy), width: 2.2, type: DASH[line.strategy], opacity: 1 } })), ends(view)],
      }),
    });
  }

  const frame = (narrow) => ({
    grid: { left: 52, right: 18, top: narrow ? 84 : 48, bottom: 50 },
    legend: { top: 0, left: 0, textStyle: { color: colour("ink") }, inactiveColor: colour("muted"), type: "scroll" },
    xAxis: axis("Thinking tokens kept, of full thinking", { min: 0, max: 1, format: (value) => percent(value, 0) }),
    yAxis: axis("", { scale: true, format: (value) => percent(value, 0) }),
  });
  const ends = ({ zero, full }) => ({ name: "never and always think", type: "scatter", data: [[0, zero], [1, full]], symbol: "diamond", symbolSize: 11, itemStyle: { color: colour("ink") } });

  function frontierTable(view) {
    const enough = (line) => line.y.findIndex((y) => y >= view.full - 1e-9);
    return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Savings" }, el("table", {},
      el("thead", {}, el("tr", {}, ["Strategy", "Tokens that keep P(n)", "Best accuracy", "at tokens"].map((text) => el("th", { scope: "col" }, text)))),
      el("tbody", {}, STRATEGIES.map((strategy) => view.lines.find((line) => line.strategy === strategy)).map((line) => el("tr", {}, el("th", { scope: "row" }, line.name),
        el("td", {}, percent(line.x[enough(line)])), el("td", {}, percent(line.y.at(-1))), el("td", {}, percent(line.x[line.y.indexOf(line.y.at(-1))])))))));
  }

  /* ---- the methods of an OTBench run ---- */

  async function methods(page, place) {
    const { name, release, headlines } = await source(place), view = await piece(`${place}/rows`);
    where(name, [[name]]);
    const present = Object.keys(view.strategies).filter((strategy) => view.rows.some((row) => row.strategy === strategy && !row.trivial));
    const host = el("div"), hidden = new Set((address().query.get("off") || "").split("\n").filter(Boolean));
    const box = el("select", { "aria-label": "Strategy", onchange: () => draw() }, present.map((strategy) => el("option", { value: strategy, selected: strategy === address().query.get("strategy") }, view.strategies[strategy])));
    page.append(...headlines.map((line) => el("p", { class: "potential" }, line)), el("p", { class: "scope" }, `Release ${release}; ${plural(view.rows.length, "row")}`),
      card("Methods beside what bounds them", el("div", { class: "bar" }, box), host), card("Rows", methodTable(view)));
    function draw() {
      remember({ strategy: box.value });
      const rows = view.rows.filter((row) => row.strategy === box.value && !row.trivial), trivial = view.rows.filter((row) => row.trivial && row.points.length > 1);
      const switches = el("fieldset", { class: "switches" }, el("legend", { class: "note" }, "Methods shown"), [...rows, ...trivial].map((row) => el("label", {}, el("input", {
        type: "checkbox", checked: !hidden.has(row.label), onchange: (event) => { if (event.target.checked) hidden.delete(row.label); else hidden.add(row.label); remember({ off: [...hidden].join("\n") }); draw(); },
      }), row.own ? el("strong", {}, `${row.label} (yours)`) : row.label)));
      host.replaceChildren(switches, methodChart(view, rows, trivial, hidden, box.value));
    }
    if (present.length) draw();
  }

  function methodChart(view, rows, trivial, hidden, strategy) {
    const drawn = [...rows.map((row, i) => ({ row, look: () => look(i) })), ...trivial.map((row) => ({ row, look: () => ({ color: colour("muted"), dash: "dotted", marker: "none" }) }))].filter(({ row }) => !hidden.has(row.label));
    // The frontier is known at every budget at which some method was measured.
    const bound = new Map(rows.flatMap((row) => row.points.filter((point) => !unknown(point.frontier)).map((point) => [point.x, point.frontier])));
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
          const banded = data.filter(({ point }) => point.band);
          if (banded.length && own.marker !== "none") {
            const look2 = { type: "line", step: "end", stack: one.row.label, symbol: "none", silent: true, lineStyle: { opacity: 0 }, tooltip: { show: false } };
            series.push({ ...look2, data: banded.map(({ point }) => [point.x, point.band[0]]) }, { ...look2, data: banded.map(({ point }) => [point.x, point.band[1] - point.band[0]]), areaStyle: { color: own.color, opacity: 0.1 } });
          }
        }
        if (frontier.length) series.push({ name: "frontier, where methods were measured", type: "line", step: "end", data: frontier, symbol: "none", lineStyle: { color: colour(strategy), width: 2.6 }, itemStyle: { color: colour(strategy) } });
        series.push(ends(view));
        return { ...frame(narrow), tooltip: tooltip(({ data, seriesName }) => tip(data.lines || [seriesName, `${percent((data.value || data)[0])} of the tokens: ${percent((data.value || data)[1])}`])), series };
      },
    });
  }

  function methodTable(view) {
    const rows = view.rows, value = (key) => (i) => rows[i].summary[key][0];
    const span = (key, show) => (i) => { const [at, low, high] = rows[i].summary[key]; return unknown(at) ? MISSING : `${show(at)}${unknown(low) ? "" : ` [${show(low)}, ${show(high)}]`}`; };
    const bare = (x) => (100 * x).toFixed(1);
    const fraction = (key, name) => ({ key, name, kind: "number", scale: 100, hint: view.summaries[key], value: value(key), show: span(key, bare) });
    return table({
      title: "Rows", count: rows.length, sort: "-curve_area", columns: [
        { key: "label", name: "Method", kind: "text", filter: true, value: (i) => rows[i].label + (rows[i].own ? " (yours)" : "") },
        { key: "strategyname", name: "Strategy", kind: "choice", filter: true, value: (i) => view.strategies[rows[i].strategy] },
        fraction("curve_area", "Area"), fraction("hypervolume_share", "Of frontier, %"), fraction("tokens_saved_fraction", "Saved at P(n), %"),
        fraction("selected_tokens_fraction", "Tokens, %"), fraction("selected_accuracy", "Accuracy, %"), fraction("selected_gap", "Gap, points"),
      ],
    }).node;
  }

  Object.assign(stp, { frontiers, methods });
})();
