"use strict";
/* The report's two interactive parts: the frontiers, and the trajectory explorer.
 *
 * Data, from the JSON element: probes; frontiers [{name, zero, full, tokens?, acc {strategy: [..]}}];
 * cells [[model, benchmark, name]]; questions {index: {id, prompt, reference}}; trajectories
 * [{m, b, q, s: indices, L, C: curve, k: k*, or, ad, steps: [text], answers: [[[answer, right,
 * count, reply]]], reply, final, right: -1|0|1, finish}].
 *
 * Texts come from models and are never parsed as HTML: they only ever become text nodes.
 */
(() => {
  const data = JSON.parse(document.getElementById("report-data").textContent);
  const byId = (id) => document.getElementById(id);
  const SVG = "http://www.w3.org/2000/svg";
  const STRATEGIES = [["early_exit", "Dynamic early exit"], ["fixed_budget", "Fixed budgets"], ["routing", "Dynamic routing"]];
  const percent = (x, digits = 1) => `${(100 * x).toFixed(digits)}%`;
  const points = (x, digits = 1) => `${x > 0 ? "+" : x < 0 ? "\u2212" : "\u00b1"}${Math.abs(100 * x).toFixed(digits)}`;
  const number = (x) => x.toLocaleString("en-US");
  const plural = (n, noun) => `${number(n)} ${noun}${n === 1 ? "" : "s"}`;

  function fill(node, attributes, children) {
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    node.append(...children.filter((child) => child !== null));
    return node;
  }
  const el = (tag, attributes = {}, ...children) => fill(document.createElement(tag), attributes, children);
  const svg = (tag, attributes = {}, ...children) => fill(document.createElementNS(SVG, tag), attributes, children);

  /* A round distance between ticks, so that about `count` of them fit in `span`. */
  function tickStep(span, count) {
    const raw = Math.max(span / count, 1e-9), power = 10 ** Math.floor(Math.log10(raw));
    return power * [1, 2, 5, 10].find((m) => m * power >= raw * 0.999);
  }

  /* Axes with grid lines; returns the drawing and its scales. */
  function frame(host, { height, xMax, yMin, yMax, xText, xTicks, xLabel, label }) {
    const width = Math.max(host.clientWidth, 240);
    const box = { left: 44, right: 14, top: 22, bottom: 40 };
    const x = (v) => box.left + (v / (xMax || 1)) * (width - box.left - box.right);
    const y = (v) => height - box.bottom - ((v - yMin) / (yMax - yMin || 1)) * (height - box.top - box.bottom);
    const root = svg("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": label });
    for (let v = yMin; v <= yMax + 1e-9; v += tickStep(yMax - yMin, 5)) {
      root.append(svg("line", { class: "gridline", x1: x(0), x2: x(xMax), y1: y(v), y2: y(v) }),
        svg("text", { x: box.left - 8, y: y(v) + 4, "text-anchor": "end" }, percent(v, 0)));
    }
    const step = Math.max(tickStep(xMax, Math.min(xTicks, width / 75)), xText(0.5) === "1" ? 1 : 0);
    for (let v = 0; v <= xMax + 1e-9; v += step) {
      root.append(svg("text", { x: x(v), y: height - box.bottom + 18, "text-anchor": "middle" }, xText(v)));
    }
    root.append(svg("line", { class: "axis", x1: x(0), x2: x(xMax), y1: y(yMin), y2: y(yMin) }),
      svg("text", { x: (x(0) + x(xMax)) / 2, y: height - 4, "text-anchor": "middle" }, xLabel));
    host.replaceChildren(root);
    const unproject = (event) => {
      const bounds = root.getBoundingClientRect();
      const across = (event.clientX - bounds.left) * (width / bounds.width);
      return Math.min(1, Math.max(0, (across - box.left) / (width - box.left - box.right))) * xMax;
    };
    return { root, x, y, unproject };
  }

  /* ---- frontiers ---- */

  function frontierPart() {
    const views = data.frontiers, host = byId("frontier-chart"), budget = byId("budget"), choice = byId("frontier-cell");
    if (!views.length) return;
    byId("frontier-view").hidden = false;
    byId("frontier-choice").hidden = views.length === 1;
    views.forEach((view, i) => choice.append(el("option", { value: i }, view.name)));
    let plot = null, marks = [];
    const view = () => views[Number(choice.value)];
    const at = (values, fraction) => values[Math.floor(fraction * (values.length - 1) + 1e-9)];

    function stepPath(values) {
      let path = `M${plot.x(0)},${plot.y(values[0])}`;
      for (let i = 1; i < values.length; i++) {
        if (values[i] !== values[i - 1]) path += `H${plot.x(i / (values.length - 1)).toFixed(2)}V${plot.y(values[i]).toFixed(2)}`;
      }
      return `${path}H${plot.x(1)}`;
    }

    function draw() {
      const { zero, full, acc, name } = view();
      const top = Math.max(full, ...STRATEGIES.map(([id]) => acc[id][acc[id].length - 1]));
      const low = Math.min(zero, full, ...STRATEGIES.map(([id]) => acc[id][0]));
      const span = Math.max(top - low, 0.05), tick = tickStep(span, 5);
      plot = frame(host, { height: Math.min(400, Math.max(270, host.clientWidth * 0.56)), xMax: 1,
        yMin: Math.max(0, Math.floor(low / tick) * tick), yMax: Math.min(1, Math.ceil(top / tick) * tick), xTicks: 5,
        xText: (v) => percent(v, 0), xLabel: "Thinking tokens allowed, of full thinking",
        label: `Best accuracy over token budget for three strategies: ${name}` });
      const { root, x, y } = plot;
      root.append(svg("line", { class: "reference", x1: x(0), x2: x(1), y1: y(full), y2: y(full) }));
      for (const [id] of STRATEGIES.slice().reverse()) root.append(svg("path", { class: `line ${id}`, d: stepPath(acc[id]) }));
      root.append(svg("circle", { class: "end", cx: x(0), cy: y(zero), r: 5.5 }),
        svg("text", { class: "strong", x: x(0) + 10, y: y(zero) + (y(zero) > y(low) - 8 ? -6 : 15) }, `k = 0: ${percent(zero)}`),
        svg("path", { class: "end", d: `M${x(1)},${y(full) - 7}l7,7l-7,7l-7,-7z` }),
        // Where routing is far below and the others are past it; under the line if they lie on it.
        svg("text", { class: "strong", x: x(0.62), y: y(full) + (y(full) - y(top) > 24 ? -7 : 17), "text-anchor": "middle" },
          `full thinking: ${percent(full)}`));
      const cursor = svg("line", { class: "cursor", y1: y(top), y2: y(low) });
      marks = [cursor, ...STRATEGIES.map(([id]) => svg("circle", { class: `dot-${id}`, r: 4.5 }))];
      root.append(...marks);
      const follow = (event) => { budget.value = Math.round(1000 * plot.unproject(event)); readout(); };
      root.addEventListener("pointermove", follow);
      root.addEventListener("pointerdown", follow);
      readout();
    }

    function readout() {
      const { zero, full, acc, tokens } = view(), steps = acc[STRATEGIES[0][0]].length - 1;
      // Named is the budget that the numbers belong to, where the grid is coarser than the slider.
      const fraction = Math.floor((Number(budget.value) / 1000) * steps + 1e-9) / steps;
      const allowed = tokens === undefined ? "" : ` (${number(Math.floor(fraction * tokens + 1e-6))} tokens)`;
      byId("readout-title").textContent = `With ${percent(fraction)} of the thinking tokens${allowed}`;
      budget.setAttribute("aria-valuetext", `${percent(fraction)} of full thinking`);
      marks[0].setAttribute("x1", plot.x(fraction));
      marks[0].setAttribute("x2", plot.x(fraction));
      const rows = STRATEGIES.map(([id, label], i) => {
        const value = at(acc[id], fraction);
        marks[i + 1].setAttribute("cx", plot.x(fraction));
        marks[i + 1].setAttribute("cy", plot.y(value));
        const key = svg("svg", { viewBox: "0 0 34 12", "aria-hidden": "true" }, svg("line", { class: `line ${id}`, x1: 0, x2: 34, y1: 6, y2: 6 }));
        return el("tr", {}, el("td", {}, key), el("td", {}, label), el("td", {}, percent(value)), el("td", { class: "gain" }, `${points(value - full)} pp`));
      });
      const mark = (shape) => svg("svg", { viewBox: "0 0 34 12", "aria-hidden": "true" }, shape);
      const diamond = svg("path", { class: "end", d: "M17,0l6,6l-6,6l-6,-6z" }), disc = svg("circle", { class: "end", cx: 17, cy: 6, r: 5 });
      byId("readout").replaceChildren(...rows,
        el("tr", {}, el("td", {}, mark(diamond)), el("td", {}, "Full thinking"), el("td", {}, percent(full)), el("td", { class: "gain" }, "at 100%")),
        el("tr", {}, el("td", {}, mark(disc)), el("td", {}, "No thinking (k\u00a0=\u00a00)"), el("td", {}, percent(zero)), el("td", { class: "gain" }, "at 0%")));
    }

    choice.addEventListener("change", draw);
    budget.addEventListener("input", readout);
    redrawOnResize(host, draw);
  }

  function redrawOnResize(host, draw) {
    let width = host.clientWidth;
    draw();
    new ResizeObserver(() => {
      if (host.clientWidth !== width) { width = host.clientWidth; draw(); }
    }).observe(host);
  }

  /* ---- explorer ---- */

  const FINISH = { end: "the model ended its thinking", limit: "cut at the thinking limit", stop: "output ended without closing the thinking" };
  const star = (x, y, r) => {
    let path = "";
    for (let i = 0; i < 10; i++) {
      const angle = -Math.PI / 2 + (i * Math.PI) / 5, radius = i % 2 ? r * 0.42 : r;
      path += `${i ? "L" : "M"}${(x + radius * Math.cos(angle)).toFixed(2)},${(y + radius * Math.sin(angle)).toFixed(2)}`;
    }
    return svg("path", { class: "star", d: `${path}z` });
  };

  function explorerPart() {
    const all = data.trajectories;
    if (!all.length) return;
    byId("explorer-view").hidden = false;
    const cellBox = byId("cell"), questionBox = byId("question"), slider = byId("position");
    const state = { index: 0, pinned: 0, group: "" };
    const current = () => all[state.index];
    const group = () => all.map((t, i) => [t, i]).filter(([t]) => t.m === current().m && t.q === current().q);
    let curvePlot = null, cursorMarks = null, stepRows = [];

    function remember() {
      // Opened from disk, some browsers refuse to change the address; the page works without it.
      try { history.replaceState(null, "", `#t=${state.index}&k=${state.pinned}`); } catch (error) { console.debug(error); }
    }

    function questionsOfCell(m, b) {
      return [...new Set(all.filter((t) => t.m === m && t.b === b).map((t) => t.q))];
    }

    function questionLabel(m, q) {
      const own = all.filter((t) => t.m === m && t.q === q), mean = (key) => own.reduce((sum, t) => sum + t[key], 0) / own.length;
      const id = (data.questions[q] || { id: `question ${q}` }).id;
      return `${id}  (OR ${percent(mean("or"), 0)}, AD ${(100 * mean("ad")).toFixed(1)} pp)`;
    }

    function showChoices() {
      const { m, b, q } = current();
      cellBox.value = data.cells.findIndex(([cm, cb]) => cm === m && cb === b);
      questionBox.replaceChildren(...questionsOfCell(m, b).map((id) => el("option", { value: id }, questionLabel(m, id))));
      questionBox.value = q;
      const question = data.questions[q] || { prompt: "", reference: "" };
      byId("prompt").textContent = question.prompt;
      byId("reference").textContent = question.reference;
    }

    function miniChart(t, longest) {
      const x = (v) => 3 + (v / (longest || 1)) * 114, y = (c) => 56 - (c / data.probes) * 48;
      const root = svg("svg", { viewBox: "0 0 120 62", preserveAspectRatio: "none", "aria-hidden": "true" });
      const line = t.L.map((l, k) => `${k ? "L" : "M"}${x(l).toFixed(1)},${y(t.C[k]).toFixed(1)}`).join("");
      root.append(svg("line", { class: "gridline", x1: 3, x2: 117, y1: y(0), y2: y(0) }),
        svg("line", { class: "gridline", x1: 3, x2: 117, y1: y(data.probes), y2: y(data.probes) }),
        svg("rect", { class: "after", x: x(t.L[t.k]), y: y(data.probes), width: x(t.L[t.L.length - 1]) - x(t.L[t.k]), height: 48 }),
        svg("path", { class: "curve", d: line, "vector-effect": "non-scaling-stroke" }), star(x(t.L[t.k]), y(t.C[t.k]), 6));
      return root;
    }

    function showMultiples() {
      const members = group(), longest = Math.max(...members.map(([t]) => t.L[t.L.length - 1]));
      byId("multiples-title").textContent = members.length === 1 ? "One trajectory of this question" : `${members.length} trajectories of this question, on shared axes`;
      byId("multiples").replaceChildren(...members.map(([t, i]) => {
        const button = el("button", { type: "button", class: "mini", "aria-pressed": String(i === state.index),
          "aria-label": `Trajectory ${t.s}: overthinking ratio ${percent(t.or, 0)}, accuracy degradation ${(100 * t.ad).toFixed(0)} points` },
        miniChart(t, longest), el("span", {}, el("b", {}, `s${t.s}`), el("i", {}, `OR ${percent(t.or, 0)}`), el("i", {}, `AD ${(100 * t.ad).toFixed(0)}`)));
        button.addEventListener("click", () => choose(i, all[i].k));
        button.dataset.index = i;
        return button;
      }));
    }

    function drawCurve() {
      const t = current(), n = t.L.length - 1, host = byId("curve-chart");
      curvePlot = frame(host, { height: 270, xMax: Math.max(t.L[n], 1), yMin: 0, yMax: 1, xTicks: 8, xText: (v) => number(Math.round(v)),
        xLabel: "Thinking tokens kept, L(k)", label: `Accuracy over thinking tokens kept, trajectory ${t.s}` });
      const { root, x, y } = curvePlot, p = (k) => t.C[k] / data.probes;
      root.append(svg("rect", { class: "after", x: x(t.L[t.k]), width: Math.max(0, x(t.L[n]) - x(t.L[t.k])), y: y(1), height: y(0) - y(1) }),
        svg("line", { class: "kline", x1: x(t.L[t.k]), x2: x(t.L[t.k]), y1: y(1), y2: y(0) }),
        svg("text", { class: "marked", x: x(t.L[t.k]), y: y(1) - 9, "text-anchor": t.k === 0 ? "start" : t.k === n ? "end" : "middle" }, `k* = ${t.k}`));
      const cursor = svg("line", { class: "cursor", y1: y(1), y2: y(0) }), ring = svg("circle", { class: "ring", r: 8 });
      root.append(cursor, svg("path", { class: "curve", d: t.L.map((l, k) => `${k ? "L" : "M"}${x(l)},${y(p(k))}`).join("") }));
      t.L.forEach((l, k) => root.append(svg("circle", { class: "point", cx: x(l), cy: y(p(k)), r: n > 60 ? 2.5 : 4.2, "data-k": k },
        svg("title", {}, `k = ${k}, L(k) = ${number(l)}, P(k) = ${percent(p(k), 0)}`))));
      root.append(star(x(t.L[t.k]), y(p(t.k)), 9), ring);
      cursorMarks = { cursor, ring };
      const nearest = (event) => {
        const tokens = curvePlot.unproject(event);
        return t.L.reduce((best, l, k) => (Math.abs(l - tokens) < Math.abs(t.L[best] - tokens) ? k : best), 0);
      };
      root.addEventListener("pointermove", (event) => { if (event.pointerType === "mouse") showPosition(nearest(event), false); });
      root.addEventListener("pointerleave", () => showPosition(state.pinned, false));
      root.addEventListener("click", (event) => pin(nearest(event)));
      showPosition(state.pinned, false);
    }

    function stepRow(t, k) {
      const change = k === 0 ? 0 : (t.C[k] - t.C[k - 1]) / data.probes;
      const sign = change > 0 ? "right" : change < 0 ? "wrong" : "";
      const head = el("button", { type: "button", "data-k": k }, el("b", {}, `k = ${k}`),
        k === t.k ? el("span", { class: "marked" }, " \u2605\u00a0k*") : null, el("br"),
        `P ${percent(t.C[k] / data.probes, 0)} `, k === 0 ? null : el("i", { class: sign }, change ? points(change, 0) : "="), el("br"),
        k === 0 ? "0 tokens" : `+${number(t.L[k] - t.L[k - 1])} tok.`);
      const text = k === 0 ? "(no thinking: the model answers at once)" : t.steps[k - 1] || "";
      // Blank lines are shown as a small gap, so that many short paragraphs stay readable.
      const paragraphs = text.replace(/\n+$/, "").split(/\n{2,}/).map((part) => el("span", {}, part));
      const row = el("li", { class: "step", "data-k": k }, head, el("pre", {}, ...paragraphs));
      row.addEventListener("click", () => pin(k));
      return row;
    }

    function showTrajectory() {
      const t = current(), n = t.L.length - 1;
      byId("trajectory-title").textContent = `Trajectory ${t.s}`;
      byId("trajectory-facts").replaceChildren(el("b", {}, `OR ${percent(t.or)}`), "  \u00b7  ", el("b", {}, `AD ${(100 * t.ad).toFixed(1)} pp`),
        `  \u00b7  ${plural(t.L[n], "thinking token")} in ${plural(n, "step")}; ${FINISH[t.finish] || t.finish}`);
      slider.max = n;
      stepRows = t.L.map((_, k) => stepRow(t, k));
      byId("steps").replaceChildren(...stepRows);
      byId("steps").scrollTop = 0;
      const [summary, reply] = byId("final").children;
      const verdict = t.right === 1 ? "right" : t.right === 0 ? "wrong" : "not judged";
      summary.replaceChildren("Its own final answer: ", el("code", {}, t.final === null ? "none found" : t.final), " ",
        el("span", { class: t.right < 0 ? "" : verdict }, `${t.right === 1 ? "\u2713 " : t.right === 0 ? "\u2717 " : ""}${verdict}`));
      reply.textContent = t.reply || "(empty)";
      for (const button of byId("multiples").children) button.setAttribute("aria-pressed", String(Number(button.dataset.index) === state.index));
      drawCurve();
    }

    function answerItem([answer, right, count, reply]) {
      const bar = el("span", { class: right ? "fill" : "fill bad" });
      bar.style.width = percent(count / data.probes);
      const what = answer === null ? el("span", { class: "what none" }, "no answer found") : el("span", { class: "what" }, answer || "(empty)");
      const verdict = el("span", { class: `verdict ${right ? "right" : "wrong"}` }, `${right ? "\u2713 right" : "\u2717 wrong"}  ${count}/${data.probes}`);
      return el("li", {}, el("details", {}, el("summary", { title: "Show one reply" }, what, verdict, el("span", { class: "track" }, bar)),
        el("pre", {}, reply || "(no reply kept)")));
    }

    function showPosition(k, scroll) {
      const t = current(), n = t.L.length - 1, { x, y } = curvePlot;
      cursorMarks.cursor.setAttribute("x1", x(t.L[k]));
      cursorMarks.cursor.setAttribute("x2", x(t.L[k]));
      cursorMarks.ring.setAttribute("cx", x(t.L[k]));
      cursorMarks.ring.setAttribute("cy", y(t.C[k] / data.probes));
      slider.value = k;
      slider.setAttribute("aria-valuetext", `k = ${k}, ${t.L[k]} tokens kept, accuracy ${percent(t.C[k] / data.probes, 0)}`);
      stepRows.forEach((row, i) => {
        row.className = `step ${i < k ? "kept" : i === k ? "kept current" : "dropped"}`;
        row.firstChild.setAttribute("aria-pressed", String(i === k));
      });
      if (scroll) {
        const list = byId("steps"), row = stepRows[k];
        list.scrollTop = row.offsetTop - (list.clientHeight - Math.min(row.offsetHeight, list.clientHeight)) / 2;
      }
      const share = t.L[n] ? `, ${percent(t.L[k] / t.L[n], 0)} of its thinking` : "";
      byId("position-title").textContent = `k = ${k} of ${n}: L(k) = ${number(t.L[k])} tokens${share}; P(k) = ${t.C[k]}/${data.probes} = ${percent(t.C[k] / data.probes)}`;
      byId("answers").replaceChildren(...(t.answers[k] || []).map(answerItem));
    }

    function pin(k) { state.pinned = k; showPosition(k, true); remember(); }

    function choose(index, k) {
      const t = all[index], key = `${t.m} ${t.q}`;
      state.index = index;
      state.pinned = Math.min(Math.max(k, 0), t.L.length - 1);
      if (key !== state.group) { state.group = key; showChoices(); showMultiples(); }
      showTrajectory();
      showPosition(state.pinned, state.pinned > 0);
      remember();
    }

    const first = (test) => all.findIndex(test);
    data.cells.forEach(([, , name], i) => cellBox.append(el("option", { value: i }, name)));
    byId("cell-choice").hidden = data.cells.length === 1;
    cellBox.addEventListener("change", () => {
      const [m, b] = data.cells[Number(cellBox.value)], index = first((t) => t.m === m && t.b === b);
      choose(index, all[index].k);
    });
    const openQuestion = (q) => { const { m } = current(), index = first((t) => t.m === m && t.q === q); choose(index, all[index].k); };
    questionBox.addEventListener("change", () => openQuestion(Number(questionBox.value)));
    const move = (by) => {
      const list = questionsOfCell(current().m, current().b);
      openQuestion(list[(list.indexOf(current().q) + by + list.length) % list.length]);
    };
    byId("previous").addEventListener("click", () => move(-1));
    byId("next").addEventListener("click", () => move(1));
    slider.addEventListener("input", () => pin(Number(slider.value)));

    function openFromAddress() {
      const wanted = new URLSearchParams(location.hash.slice(1)), index = Number(wanted.get("t"));
      const named = wanted.has("t") && Number.isInteger(index) && index >= 0 && index < all.length;
      const start = named ? index : startingTrajectory();
      const k = Number(wanted.get("k"));
      choose(start, named && wanted.has("k") && Number.isInteger(k) ? k : all[start].k);
      if (named) byId("explorer").scrollIntoView();
    }
    /* The page opens where there is something to see: the greatest AD of the selection. */
    function startingTrajectory() {
      return all.reduce((best, t, i) => (t.ad > all[best].ad ? i : best), 0);
    }
    const anchored = location.hash && !location.hash.startsWith("#t=");
    const keep = location.hash;
    openFromAddress();
    if (anchored) try { history.replaceState(null, "", keep); } catch (error) { console.debug(error); }
    window.addEventListener("hashchange", () => { if (location.hash.startsWith("#t=")) openFromAddress(); });
    redrawOnResize(byId("curve-chart"), drawCurve);
  }

  function themePart() {
    const root = document.documentElement;
    byId("theme").addEventListener("click", () => {
      const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
      root.dataset.theme = dark ? "light" : "dark";
    });
  }

  themePart();
  frontierPart();
  if (data.trajectories.length) explorerPart();
})();
