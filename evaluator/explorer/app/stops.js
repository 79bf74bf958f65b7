"use strict";
/* Where methods stop a trajectory: those of OTBench runs that would, and those of live runs that did. */
(() => {
  const { el, folded, percent, number, unknown, MISSING, chart, colour, tip, axis, tooltip } = stp;

  function scrolled(label, heads, lines) {
    return el("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label }, el("table", {},
      el("thead", {}, el("tr", {}, heads.map((text, i) => el("th", { scope: "col", class: i ? null : "first" }, text)))), el("tbody", {}, lines)));
  }

  /* Whether a live trajectory went through the positions that were measured here. */
  const same = (t, stop) => !stop.lengths || stop.lengths.every((length, k) => t.tokens[k] === length);
  const setting = (stop) => (stop.setting === "None" ? MISSING : stop.setting);

  /* The methods of one trajectory; choose(k) shows a position. */
  function stops(t, found, choose) {
    if (!found.length) return null;
    const n = t.tokens.length - 1, last = t.tokens[n];
    const sorted = found.slice().sort((a, b) => b.live - a.live || a.position - b.position);
    const lines = sorted.map((stop) => {
      const known = same(t, stop) && stop.position <= n;
      return el("tr", {}, el("th", { scope: "row" }, stop.method + (stop.own ? " (yours)" : ""), el("br"), el("small", {}, stop.where)), el("td", {}, setting(stop)),
        el("td", {}, known ? el("button", { type: "button", class: "quiet", onclick: () => choose(stop.position) }, `k = ${stop.position}`) : `k = ${stop.position}`),
        el("td", {}, known ? percent(last ? t.tokens[stop.position] / last : 1, 0) : number(stop.tokens)), el("td", {}, known ? percent(t.correct[stop.position] / t.probes, 0) : MISSING), el("td", {}, number(stop.signal_tokens)));
    });
    const live = sorted.filter((stop) => stop.live);
    return el("div", { class: "stops" }, folded(`Where ${found.length === 1 ? "a method stops" : `${found.length} methods stop`}`,
      scrolled("Where methods stop", ["Method", "Setting", "Stops at", "Of its tokens", "P(k) there", "Signal tokens"], lines),
      live.map((stop) => el("div", {}, el("h3", {}, `${stop.method}, ${stop.where}`), same(t, stop) ? null : el("p", { class: "warning" }, "The live trajectory has other steps than this one: its positions are its own."), decisions(stop, same(t, stop) ? t : null)))));
  }

  /* Every decision of a live method: position, score, threshold; and P(k) where the curve is known. */
  function decisions(stop, t) {
    const made = stop.decisions, threshold = Number(stop.setting), scored = made.filter(([, , score]) => typeof score === "number");
    const share = (k) => (t && k < t.correct.length ? percent(t.correct[k] / t.probes, 0) : MISSING);
    const score = (x) => (unknown(x) ? MISSING : typeof x === "number" ? number(x, 4) : x);
    const lines = made.map(([k, tokens, value, stops]) => el("tr", {}, el("th", { scope: "row" }, `k = ${k}`), el("td", {}, number(tokens)), el("td", {}, score(value)), el("td", {}, setting(stop)), el("td", {}, stops ? el("b", {}, "stops") : "goes on"), ...(t ? [el("td", {}, share(k))] : [])));
    const plot = scored.length > 1 ? chart({
      label: `Score of ${stop.method} at every position that it decided on, and its threshold`, height: 200, make: () => ({
        grid: { left: 52, right: 16, top: 14, bottom: 44 }, xAxis: axis("Thinking tokens kept", { format: (value) => number(value) }), yAxis: axis("", { scale: true }),
        tooltip: tooltip(({ dataIndex }) => tip([`k = ${scored[dataIndex][0]}`, `score ${score(scored[dataIndex][2])}, setting ${setting(stop)}`, `P(k) ${share(scored[dataIndex][0])}`])),
        series: [{ type: "line", data: scored.map(([, tokens, value]) => [tokens, value]), symbolSize: 7, itemStyle: { color: colour("series-2") }, lineStyle: { color: colour("series-2"), width: 1.5 },
          ...(Number.isFinite(threshold) ? { markLine: { symbol: "none", silent: true, data: [{ yAxis: threshold, label: { formatter: `setting ${stop.setting}`, position: "insideEndTop", color: colour("ink") }, lineStyle: { color: colour("ink"), type: "dashed" } }] } } : {}) }],
      }),
    }) : null;
    const reason = { method: "the method stopped it", end: "the model closed it", limit: "its limit was reached", turn_end: "the model ended its turn" }[stop.reason] || stop.reason;
    return el("div", {}, el("p", { class: "facts" }, `Stopped at k = ${stop.position} after ${number(stop.tokens)} tokens: ${reason}. Its answer was ${stop.right ? "right" : "wrong"}.`), plot,
      lines.length ? scrolled(`Decisions of ${stop.method}, ${stop.where}`, ["Position", "Tokens", "Score", "Threshold", "Decision", ...(t ? ["P(k)"] : [])], lines) : el("p", { class: "note" }, "It decided before the thinking began: no score at a position."));
  }

  Object.assign(stp, { stops, decisions });
})();
