"use strict";
/* One trajectory: its steps beside its curve, and the answers at the position that is chosen. */
(() => {
  const { el, card, folded, percent, points, number, plural, MISSING, piece, where, remember, address, source, cellName, ENDS, chart, colour, tip, axis, tooltip, neighbours, onKeys } = stp;
  const CONTEXT = 110;
  const SIGNALS = { end_logprob: "Log-probability of ending the thinking", entropy: "Entropy of the next token", end_entropy: "Entropy after the end marker", answer_entropy: "Entropy of a trial answer" };

  async function trajectory(view, place, cell, row) {
    const { name, cells } = await source(place), title = cellName(cells[cell]);
    const t = await piece(`${place}/t/${cell}/${row}`), stops = (await piece("index")).stops ? (await piece(`stops/${place}/${cell}/${row}`)).methods : [];
    const sought = (address().query.get("find") || "").toLowerCase().split(/\s+/).filter(Boolean);
    const n = t.tokens.length - 1, share = (k) => t.correct[k] / t.probes;
    const best = t.correct.indexOf(Math.max(...t.correct)), fall = largestFall(t.correct);
    where(`${t.id}, trajectory ${t.sample}`, [[name, `/${place}`], [title, `/${place}/cell/${cell}`], [`${t.id}, ${t.sample}`]]);

    const asked = Number(address().query.get("k"));
    let chosen = address().query.has("k") && Number.isInteger(asked) && asked >= 0 && asked <= n ? asked : fall.k || best;
    let dispatch = () => {};
    const list = el("ol", { class: "steps", start: "0", "aria-label": "Positions and steps" });
    const items = t.tokens.map((_, k) => stepItem(t, k, { best, fall, stops, sought, choose, hover }));
    list.append(...items);
    const panel = el("div", { "aria-live": "polite" }), slider = el("input", { type: "range", min: "0", max: n, value: chosen, "aria-label": "Position", oninput: () => choose(Number(slider.value)) });

    function choose(k, scroll = true) {
      chosen = Math.min(n, Math.max(0, k));
      slider.value = chosen;
      remember({ k: chosen });
      items.forEach((item, i) => {
        item.className = `step ${i < chosen ? "kept" : i === chosen ? "kept current" : "dropped"}${i === fall.k && i ? " ruin" : ""}`;
        item.firstChild.setAttribute("aria-pressed", String(i === chosen));
      });
      // Near the top, below the end of the step before it: seen without scrolling the page, the last steps too.
      if (scroll) {
        const top = Math.max(0, items[chosen].offsetTop - CONTEXT);
        list.style.paddingBottom = "0";
        if (list.scrollHeight > list.clientHeight) list.style.paddingBottom = `${Math.max(0, top + list.clientHeight - list.scrollHeight)}px`;
        list.scrollTop = top;
      }
      panel.replaceChildren(el("p", { class: "position" }, `k = ${chosen} of ${n}: ${plural(t.tokens[chosen], "token")} kept; P(k) = ${t.correct[chosen]}/${t.probes} = ${percent(share(chosen))}${chosen ? `, ${points(share(chosen) - share(chosen - 1))} points by step ${chosen}` : ""}`),
        el("ul", { class: "answers" }, t.answers[chosen].map((answer) => answerItem(answer, t.probes))));
      dispatch(chosen, true);
    }
    function hover(k) { dispatch(k, false); items.forEach((item, i) => item.classList.toggle("hovered", i === k)); }

    const drawCurve = () => chart({
      label: `Accuracy P(k) over thinking tokens: ${percent(share(0))} without thinking, ${percent(share(best))} at k* = ${best}, ${percent(share(n))} after all of it`,
      height: 300, save: `curve-${place}-${cell}-${row}`, make: () => curveOption(t, best, fall, stops),
      onReady: (drawn) => {
        dispatch = (k, pinned) => {
          drawn.dispatchAction({ type: "downplay", seriesIndex: 0 });
          drawn.dispatchAction({ type: "highlight", seriesIndex: 0, dataIndex: k });
          if (pinned) drawn.setOption({ series: [{ id: "chosen", data: [[t.tokens[k], share(k)]] }] });
        };
        drawn.on("click", (event) => { if (event.seriesIndex === 0) choose(event.dataIndex); });
        drawn.on("mouseover", (event) => { if (event.seriesIndex === 0) hover(event.dataIndex); });
        drawn.getZr().on("click", (event) => { const at = drawn.convertFromPixel({ gridIndex: 0 }, [event.offsetX, event.offsetY]); if (at && !event.target) choose(nearest(t.tokens, at[0])); });
        dispatch(chosen, true);
      },
    });

    const curve = el("div", {}, drawCurve()), band = cells[cell].band ? el("button", { type: "button", class: "quiet", onclick: showBand }, "Latent band") : null;
    async function showBand() {
      band.disabled = true;
      band.textContent = "Fitting the cell\u2019s latent curves";
      try {
        const fit = await piece(`${place}/band/${cell}`), part = (values) => values.slice(fit.offsets[row], fit.offsets[row + 1]);
        if (!fit.mean) { band.textContent = "No latent band: nothing thinks here"; return; }
        t.band = { mean: part(fit.mean), low: part(fit.low), high: part(fit.high) };
        band.textContent = ["Latent band shown: 95% intervals of the accuracy behind the counts", ...fit.notes].join("; ");
        curve.replaceChildren(drawCurve());
      } catch (error) { band.textContent = `No latent band: ${error.message}`; }
    }

    const ended = ENDS[t.finish] ? [`thinking ${ENDS[t.finish]}`] : [], verdict = { 1: "right", 0: "wrong", "-1": "unknown" }[t.own.right];
    const facts = [`OR ${percent(t.tokens[n] ? (t.tokens[n] - t.tokens[best]) / t.tokens[n] : 0)}`, `AD ${points(t.tokens[n] ? share(best) - share(n) : 0).replace("+", "")} points`, `k* = ${best}`, ...ended, `own answer ${verdict}`, ...(t.split ? [`split: ${t.split}`] : [])];
    const ruin = fall.k ? el("p", { class: "warning" }, fall.ruined ? `Step ${fall.k} ruined it: ` : `Largest fall, recovered later: step ${fall.k}: `, el("b", {}, `P falls from ${percent(share(fall.k - 1), 0)} to ${percent(share(fall.k), 0)}`), ". ", el("button", { type: "button", onclick: () => choose(fall.k) }, "Show the step")) : el("p", { class: "note" }, "No step makes its accuracy fall.");
    const route = (r) => (r >= 0 ? `/${place}/t/${cell}/${r}` : null), [before, after] = neighbours(place, route(row), route(row - 1), null);
    const go = (route) => () => { if (route) location.hash = route; };
    const move = el("span", { class: "stepper" }, el("button", { type: "button", disabled: !before, onclick: go(before) }, "\u2190 Previous"), el("button", { type: "button", disabled: !after, onclick: go(after) }, "Next \u2192"));
    onKeys({ p: go(before), n: go(after), ArrowLeft: () => choose(chosen - 1), ArrowRight: () => choose(chosen + 1), k: () => choose(best), r: () => choose(fall.k || best), Home: () => choose(0), End: () => choose(n) });

    view.append(
      el("div", { class: "card" }, el("div", { class: "bar" }, move, el("span", { class: "note" }, "Keys: n, p next and previous trajectory; \u2190 \u2192 positions; k for k*; r for the step that ruined it")),
        t.steps ? el("div", { class: "question" }, el("pre", { tabindex: "0" }, t.prompt), el("p", {}, "Reference answer: ", el("code", {}, t.reference))) : el("p", { class: "note" }, "A release holds no texts of questions and thinking; open the campaign that it was made from to read them.")),
      ruin,
      el("div", { class: "reader" },
        el("div", { class: "card side" }, el("h2", {}, "Its curve"), el("p", { class: "facts" }, facts.join("; ")), curve, band,
          el("label", { class: "slider" }, el("span", {}, "Position"), slider), panel, stp.stops(t, stops, choose), t.steps ? ownAnswer(t) : null, signals(t)),
        el("div", { class: "card" }, el("h2", {}, t.steps ? "Its thinking, step by step" : "Its positions"), list)));
    choose(chosen);
  }

  /* The step after which the accuracy falls most, the earliest on ties; k = 0: none falls. It ruined the answer if
   * the end is worse than what was there before it. */
  function largestFall(correct) {
    let k = 0, lost = 0;
    for (let i = 1; i < correct.length; i++) if (correct[i - 1] - correct[i] > lost) { lost = correct[i - 1] - correct[i]; k = i; }
    return { k, lost, ruined: k > 0 && correct.at(-1) < correct[k - 1] };
  }
  const nearest = (values, x) => values.reduce((best, value, i) => (Math.abs(value - x) < Math.abs(values[best] - x) ? i : best), 0);

  function stepItem(t, k, { best, fall, stops, sought, choose, hover }) {
    const share = t.correct[k] / t.probes, change = k ? (t.correct[k] - t.correct[k - 1]) / t.probes : 0;
    const text = k && t.steps ? t.steps[k - 1] : "", low = sought.length ? text.toLowerCase() : "";
    const marks = [k === best ? "k*" : "", k && k === fall.k ? (fall.ruined ? "ruined it" : "largest fall") : "", sought.some((word) => low.includes(word)) ? "has the words" : "", ...stops.filter((stop) => stop.live && stop.position === k).map((stop) => `${stop.method} stopped, live`)].filter(Boolean).join(", ");
    const button = el("button", { type: "button", onclick: () => choose(k, false) },
      el("b", {}, k ? `step ${k}` : "no thinking"), el("br"), `P ${percent(share, 0)}`, k && change ? [" ", el("i", { class: change > 0 ? "right" : "wrong" }, points(change, 0))] : null,
      marks ? [el("br"), el("span", { class: "marked" }, marks)] : null);
    const item = el("li", { class: "step", onmouseenter: () => hover(k), onclick: (event) => { if (!event.target.closest("button") && !String(getSelection())) choose(k, false); } },
      button, el("pre", {}, text));
    item.style.setProperty("--share", `${100 * share}%`);
    return item;
  }

  function answerItem([answer, right, count, reply, reason], probes) {
    // A release counts right probes, and does not say which answers they gave.
    const judged = right !== null, bar = el("span", { class: !judged ? "fill plain" : right ? "fill" : "fill bad" });
    bar.style.width = `${(100 * count) / probes}%`;
    return el("li", {}, el("details", {}, el("summary", {},
      answer === null ? el("span", { class: "what none" }, "no answer found") : el("span", { class: "what" }, answer),
      el("span", { class: `verdict ${!judged ? "" : right ? "right" : "wrong"}` }, judged ? `${count} \u00d7 ${right ? "right" : "wrong"}` : `${count} \u00d7`), el("span", { class: "track" }, bar)),
      reply ? el("pre", {}, reply) : null, reason ? el("p", { class: "note" }, reason) : null));
  }

  const ownAnswer = (t) => folded(`Its own answer: ${t.own.answer ?? "none found"}, ${t.own.right ? "right" : "wrong"}`, el("pre", {}, t.own.text || "(empty)"), el("p", { class: "note" }, `${t.own.reason}; output ended by: ${t.own.finish}`));

  function signals(t) {
    const names = Object.keys(t.signals || {});
    if (!names.length) return null;
    const host = el("div"), box = el("select", { "aria-label": "Signal", onchange: () => draw() }, names.map((name) => el("option", { value: name }, SIGNALS[name] || name)));
    const draw = () => host.replaceChildren(chart({
      label: SIGNALS[box.value], height: 200, make: () => ({
        grid: { left: 52, right: 16, top: 14, bottom: 44 }, xAxis: axis("Thinking tokens kept", { format: (value) => number(value) }), yAxis: axis("", { scale: true }),
        tooltip: tooltip(({ dataIndex, data }) => tip([`k = ${dataIndex}`, `${SIGNALS[box.value]}: ${data[1]}`])),
        series: [{ type: "line", data: t.signals[box.value].map((value, k) => [t.tokens[k], value]), itemStyle: { color: colour("series-4") }, lineStyle: { color: colour("series-4"), width: 1.5 }, symbolSize: 5 }],
      }),
    }));
    const details = folded("Signals at every position", el("div", { class: "bar" }, box), host);
    details.addEventListener("toggle", () => { if (details.open && !host.children.length) draw(); });
    return details;
  }

  function curveOption(t, best, fall, stops) {
    const share = (k) => t.correct[k] / t.probes, data = t.tokens.map((tokens, k) => [tokens, share(k)]);
    const text = (k) => [`k = ${k}: P(k) = ${percent(share(k))}`, `${number(t.tokens[k])} tokens kept`, k ? `step ${k}: ${points(share(k) - share(k - 1))} points` : "no thinking", ...t.answers[k].slice(0, 3).map(([answer, right, count]) => `${count} \u00d7 ${answer === null ? "no answer" : answer.slice(0, 40)}${right === null ? "" : right ? " (right)" : " (wrong)"}`), ...stops.filter((stop) => stop.position === k).map((stop) => `${stop.method} ${stop.live ? "stopped" : "would stop"} here (setting ${stop.setting})`)];
    const band = t.band ? [
      { type: "line", stack: "band", data: t.band.low.map((value, k) => [t.tokens[k], value]), symbol: "none", lineStyle: { opacity: 0 }, silent: true },
      { type: "line", stack: "band", name: "latent band", data: t.band.low.map((value, k) => [t.tokens[k], t.band.high[k] - value]), symbol: "none", lineStyle: { opacity: 0 }, areaStyle: { color: colour("accent"), opacity: 0.16 }, silent: true },
      { type: "line", name: "latent accuracy", data: t.band.mean.map((value, k) => [t.tokens[k], value]), symbol: "none", lineStyle: { color: colour("accent"), width: 1, type: "dashed" }, silent: true },
    ] : [];
    const line = (x, name, shade) => ({ xAxis: x, label: { formatter: name, color: shade, fontWeight: 600, position: "end", distance: 10 }, lineStyle: { color: shade, type: "dashed" } });
    return {
      grid: { left: 52, right: 20, top: 34, bottom: 48 },
      xAxis: axis("Thinking tokens kept, L(k)", { format: (value) => number(value), grid: false, max: Math.max(1, t.tokens.at(-1)) }),
      yAxis: axis("", { min: 0, max: 1, format: (value) => percent(value, 0) }),
      tooltip: tooltip((mark) => tip(text(mark.dataIndex))),
      series: [
        { type: "line", data, symbol: "circle", symbolSize: t.tokens.length > 120 ? 4 : 8, itemStyle: { color: colour("accent"), borderColor: colour("card"), borderWidth: 1 }, lineStyle: { color: colour("accent"), width: 2 }, emphasis: { scale: 1.8 }, z: 3,
          markLine: { symbol: "none", silent: true, data: [line(t.tokens[best], "k*", colour("right")), ...(fall.k && fall.k !== best ? [line(t.tokens[fall.k], `step ${fall.k}`, colour("wrong"))] : [])] } },
        { id: "chosen", type: "scatter", data: [], symbol: "circle", symbolSize: 16, itemStyle: { color: "transparent", borderColor: colour("ink"), borderWidth: 2 }, silent: true, z: 4 },
        { name: "methods stop", type: "scatter", data: [...new Set(stops.map((stop) => stop.position))].filter((k) => k < data.length).map((k) => [t.tokens[k], share(k)]), symbol: "diamond", symbolSize: 20, itemStyle: { color: colour("series-2"), opacity: 0.75 }, silent: true, z: 2 },
        ...band,
      ],
    };
  }

  stp.trajectory = trajectory;
})();
