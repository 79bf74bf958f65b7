"use strict";
/* Frontiers: the best accuracy at every budget of thinking tokens, read off by pointer and slider. */
(() => {
  const { el, percent, points, number, unknown, chart, colour, legend, tip, axis, tooltip } = stp;
  const STRATEGIES = ["early_exit", "fixed_budget", "routing"];
  const DASH = { early_exit: "solid", fixed_budget: "dashed", routing: "dotted" };
  const UNITS = { early_exit: "trajectories", fixed_budget: "questions", routing: "questions" };
  const START = 0.4;

  const ENDS = "never and always think";

  function frame(width, names) {
    const above = legend([...names, ENDS], width);
    return {
      grid: { left: 52, right: 18, top: names.length ? above.top : 20, bottom: 50 }, legend: names.length ? above.legend : { show: false },
      xAxis: axis("Thinking tokens kept, of full thinking", { min: 0, max: 1, format: (value) => percent(value, 0) }),
      yAxis: axis("", { scale: true, format: (value) => percent(value, 0) }),
    };
  }
  const ends = ({ zero, full }) => ({ name: ENDS, type: "scatter", data: [[0, zero], [1, full]], symbol: "diamond", symbolSize: 11, itemStyle: { color: colour("ink") } });
  /* An interval between two lines, as two areas that are stacked. */
  function interval(name, pairs, shade, opacity = 0.12) {
    const look = { type: "line", step: "end", stack: name, symbol: "none", silent: true, lineStyle: { opacity: 0 }, tooltip: { show: false } };
    return [{ ...look, data: pairs.map(([x, low]) => [x, low]) }, { ...look, data: pairs.map(([x, low, high]) => [x, high - low]), areaStyle: { color: shade, opacity } }];
  }

  /* What a strategy reaches within a budget: its last state that costs no more. */
  function within(line, budget) {
    let i = 0;
    while (i + 1 < line.x.length && line.x[i + 1] <= budget + 1e-9) i++;
    return i;
  }

  /* A chart of all strategies with a slider and what it reads off; bands, where they are known, are
   * 95% intervals and the shares of units that do not think and that think to the end. */
  function frontierView(view, save, bands = null) {
    const lines = STRATEGIES.map((strategy) => view.lines.find((line) => line.strategy === strategy));
    const band = (line) => bands?.lines.find((one) => one.strategy === line.strategy);
    const title = el("p"), body = el("tbody"), slider = el("input", { type: "range", min: 0, max: 1000, value: 1000 * START, "aria-label": "Budget", oninput: () => read(Number(slider.value) / 1000) });
    let mark = () => {};

    function text(line, budget) {
      const i = within(line, budget), known = band(line), j = Math.floor((bands?.steps || 0) * budget + 1e-9);
      return [`${percent(line.y[i])} with ${percent(line.x[i])} of the tokens`,
        ...(line.tokens ? [`${number(line.tokens[i])} of ${number(view.tokens)} tokens`, `${number(line.right[i])} of ${number(view.probes)} probes right`] : []),
        ...(known ? [`95% interval ${percent(known.low[j])} to ${percent(known.high[j])}`, `${UNITS[line.strategy]}: ${percent(known.none[j], 0)} no thinking, ${percent(known.all[j], 0)} all of it, ${percent(1 - known.none[j] - known.all[j], 0)} part`] : [])];
    }
    function read(budget) {
      const allowed = unknown(view.tokens) ? "" : ` (${number(Math.floor(budget * view.tokens + 1e-6))} tokens)`;
      title.textContent = `With ${percent(budget)} of the thinking tokens${allowed}`;
      slider.setAttribute("aria-valuetext", `${percent(budget)} of full thinking`);
      body.replaceChildren(...lines.map((line) => {
        const [reached, ...rest] = text(line, budget), y = line.y[within(line, budget)];
        return el("tr", {}, el("td", {}, el("i", { class: `swatch ${line.strategy}` })), el("td", {}, line.name, [reached, ...rest].slice(1).map((said) => el("small", {}, said))), el("td", {}, percent(y)), el("td", { class: "gain" }, `${points(y - view.full)} pp`));
      }), el("tr", {}, el("td"), el("td", {}, "Full thinking"), el("td", {}, percent(view.full)), el("td", { class: "gain" }, "at 100%")),
      el("tr", {}, el("td"), el("td", {}, "No thinking (k\u00a0=\u00a00)"), el("td", {}, percent(view.zero)), el("td", { class: "gain" }, "at 0%")));
      mark(budget);
    }
    const drawn = chart({
      label: `Best accuracy over token budget: ${lines.map((line) => `${line.name} reaches ${percent(line.y.at(-1))}`).join("; ")}`, height: 420, save,
      make: (width) => ({
        ...frame(width, lines.map((line) => line.name)), tooltip: tooltip(({ seriesIndex, dataIndex }) => (lines[seriesIndex] ? tip([lines[seriesIndex].name, ...text(lines[seriesIndex], lines[seriesIndex].x[dataIndex] ?? 1)]) : "")),
        series: [...lines.map((line) => ({ name: line.name, type: "line", step: "end", data: [...line.x.map((x, i) => [x, line.y[i]]), [1, line.y.at(-1)]], symbolSize: 5, showSymbol: true, symbol: "circle",
          itemStyle: { color: colour(line.strategy), opacity: 0.55 }, lineStyle: { color: colour(line.strategy), width: 2.2, type: DASH[line.strategy], opacity: 1 } })), ends(view),
        ...lines.filter(band).flatMap((line) => interval(line.strategy, band(line).low.map((low, j) => [j / bands.steps, low, band(line).high[j]]), colour(line.strategy))),
        { id: "budget", type: "line", data: [], symbol: "none", silent: true, markLine: { symbol: "none", silent: true, label: { show: false }, lineStyle: { color: colour("ink"), type: "dotted" }, data: [] } }],
      }),
      onReady: (made) => {
        mark = (budget) => made.setOption({ series: [{ id: "budget", markLine: { data: [{ xAxis: budget }] } }] });
        const at = (event) => { const found = made.convertFromPixel({ gridIndex: 0 }, [event.offsetX, event.offsetY]); return Math.min(1, Math.max(0, found[0])); };
        made.getZr().on("click", (event) => { slider.value = Math.round(1000 * at(event)); read(Number(slider.value) / 1000); });
        mark(Number(slider.value) / 1000);
      },
    });
    read(START);
    return el("div", { class: "frontier-body" }, el("div", {}, drawn, el("label", { class: "slider" }, el("span", {}, "Budget"), slider)), el("div", { class: "readout" }, title, el("table", {}, body)));
  }

  Object.assign(stp, { STRATEGIES, frontierView, frontierFrame: frame, frontierEnds: ends, interval });
})();
