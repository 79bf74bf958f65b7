"use strict";
/* Responses of runs: a table to choose from, one response to read, and two models on one question. */
(() => {
  const { el, link, card, folded, number, plural, unknown, MISSING, piece, where, address, source, table, neighbours, onKeys } = stp;
  const verdict = (right) => (right === null ? "undecided" : right ? "right" : "wrong");
  const RATIO = "Tokens of the second over the first";

  async function responses(page, place) {
    const { name } = await source(place), rows = await piece(`${place}/rows`), { sources } = await piece("index");
    where(name, [[name]]);
    const several = new Set(rows.method).size > 1, graded = rows.error.some(Boolean), traced = rows.pattern.some(Boolean);
    const choice = (key, title) => ({ key, name: title, kind: "choice", filter: true, value: (i) => rows[key][i] || MISSING });
    const count = (key, title) => ({ key, name: title, kind: "number", filter: true, value: (i) => rows[key][i] });
    const shown = table({
      title: "Responses", count: rows.key.length, sort: "-tokens", onFilter: (kept) => { stp.order = { place, count: kept.length, at: (i) => `/${place}/r/${kept[i]}`, of: (route) => kept.indexOf(Number(route.split("/").pop())) }; },
      columns: [
        { key: "key", name: "Question", kind: "text", filter: true, value: (i) => `${rows.key[i]} ${rows.answer[i] ?? ""}`, show: (i) => rows.key[i], link: (i) => `/${place}/r/${i}` },
        choice("group", "Group"), choice("task", "Task"), ...(several ? [choice("method", "Method")] : []),
        { key: "right", name: "Verdict", kind: "choice", filter: true, value: (i) => verdict(rows.right[i]) },
        ...(graded ? [choice("error", "Kind of error")] : []), ...(traced ? [choice("pattern", "Pattern")] : []),
        { key: "answer", name: "Answer", kind: "text", value: (i) => rows.answer[i] ?? MISSING },
        count("tokens", "Tokens"), count("thinking_tokens", "Thinking tokens"), choice("finish", "Ended by"),
      ],
    });
    const others = sources.some((other, i) => i !== place && other.responses !== undefined) || several;
    page.append(others ? el("p", { class: "bar" }, link(`/pair?a=${place}`, "Two models on the same questions")) : "", card("Responses", shown.node));
  }

  function part(title, text, open) {
    const details = folded(title, el("pre", { tabindex: "0" }, text));
    details.open = open;
    return details;
  }

  async function body(place, row, rows) {
    const found = await piece(`${place}/r/${row}`);
    return el("div", { class: "card" },
      el("p", { class: "facts" }, el("b", { class: rows.right[row] ? "right" : "wrong" }, rows.reason[row] || verdict(rows.right[row]))),
      el("p", { class: "facts" }, "Extracted: ", el("code", {}, rows.answer[row] ?? "nothing"), `; ${unknown(rows.tokens[row]) ? "tokens unknown" : plural(rows.tokens[row], "token")}, of which thinking ${unknown(rows.thinking_tokens[row]) ? "unknown" : number(rows.thinking_tokens[row])}; ended by ${rows.finish[row]}`,
        rows.error[row] ? `; kind of error: ${rows.error[row]}` : "", rows.pattern[row] ? `; pattern: ${rows.pattern[row]}` : ""),
      found.thinking ? part(`Thinking, ${plural(found.thinking.length, "character")}`, found.thinking, false) : el("p", { class: "note" }, "Its thinking is not known."),
      part("Response", found.text || "(empty)", true));
  }
  const asked = (found) => (found.prompt || found.reference ? el("div", { class: "card question" }, el("pre", { tabindex: "0" }, found.prompt), el("p", {}, "Reference answer: ", el("code", {}, found.reference))) : "");

  async function response(page, place, row) {
    const { name } = await source(place), rows = await piece(`${place}/rows`), found = await piece(`${place}/r/${row}`);
    where(rows.key[row], [[name, `/${place}`], [rows.key[row]]]);
    const route = (i) => (i >= 0 && i < rows.key.length ? `/${place}/r/${i}` : null), [before, after] = neighbours(place, route(row), route(row - 1), route(row + 1));
    const go = (to) => () => { if (to) location.hash = to; };
    onKeys({ p: go(before), n: go(after) });
    page.append(el("p", { class: "bar" }, el("button", { type: "button", disabled: !before, onclick: go(before) }, "\u2190 Previous"), el("button", { type: "button", disabled: !after, onclick: go(after) }, "Next \u2192")),
      asked(found), await body(place, row, rows), found.decisions ? card("What the method decided", stp.decisions(found)) : "");
  }

  /* Two runs, or two methods of one, on the questions that both were asked, by the ratio of tokens. */
  async function pair(page) {
    const { sources } = await piece("index"), query = address().query;
    where("Two models on one question", [["Two models on one question"]]);
    const choices = [];
    for (const [place, found] of sources.entries()) {
      if (found.responses === undefined) continue;
      const rows = await piece(`${place}/rows`);
      for (const method of [...new Set(rows.method)]) choices.push({ place, rows, method, name: [found.name, method, `(${found.folder})`].filter(Boolean).join(" ") });
    }
    if (choices.length < 2) { page.append(el("p", { class: "intro" }, "There is one model here. Name further runs, such as `stp explore FIRST SECOND`, to compare them.")); return; }
    const chosen = (key, fallback) => Math.min(choices.length - 1, Number(query.get(key) ?? fallback) || 0);
    const box = (which, label) => el("select", { "aria-label": label, onchange: () => { location.hash = `/pair?a=${a.value}&b=${b.value}`; } }, choices.map((one, i) => el("option", { value: i, selected: i === which }, one.name)));
    const first = chosen("a", 0), a = box(first, "First"), b = box(chosen("b", first ? 0 : 1), "Second");
    const one = choices[Number(a.value)], other = choices[Number(b.value)];
    const places = (choice) => new Map(choice.rows.key.map((key, i) => [key, i]).filter(([, i]) => choice.rows.method[i] === choice.method));
    // One key may name other questions in a run of another seed: what was asked decides.
    const mine = places(one), theirs = places(other), common = [...mine].filter(([key]) => theirs.has(key)).map(([key, i]) => ({ key, i, j: theirs.get(key) }));
    const shared = common.filter(({ i, j }) => one.rows.asked[i] === other.rows.asked[j]), apart = common.length - shared.length;
    const tokens = (choice, i) => choice.rows.tokens[i], ratio = ({ i, j }) => { const x = tokens(one, i), y = tokens(other, j); return unknown(x) || unknown(y) || !x ? NaN : y / x; };
    const host = el("div");
    const open = async ({ i, j }) => {
      host.replaceChildren(asked(await piece(`${one.place}/r/${i}`)), el("div", { class: "pair" }, el("div", {}, el("h2", {}, one.name), await body(one.place, i, one.rows)), el("div", {}, el("h2", {}, other.name), await body(other.place, j, other.rows))));
    };
    page.append(card(null, el("div", { class: "bar" }, a, el("span", { class: "note" }, "beside"), b)));
    if (!shared.length) { page.append(el("p", { class: "warning" }, `The two were asked no question in common${apart ? `: ${plural(apart, "name")} of a question in both, with other questions behind it (another seed or size)` : ""}.`)); return; }
    const columns = [
      { key: "key", name: "Question", kind: "text", filter: true, value: (r) => shared[r].key, link: (r) => `/pair?a=${a.value}&b=${b.value}&open=${encodeURIComponent(shared[r].key)}` },
      { key: "ratio", name: "Ratio", kind: "number", hint: RATIO, filter: true, value: (r) => ratio(shared[r]), show: (r) => number(ratio(shared[r]), 2) },
      { key: "ta", name: "Tokens, first", kind: "number", value: (r) => tokens(one, shared[r].i) }, { key: "tb", name: "Tokens, second", kind: "number", value: (r) => tokens(other, shared[r].j) },
      { key: "ra", name: "First", kind: "choice", filter: true, value: (r) => verdict(one.rows.right[shared[r].i]) }, { key: "rb", name: "Second", kind: "choice", filter: true, value: (r) => verdict(other.rows.right[shared[r].j]) },
    ];
    page.append(el("p", { class: "intro" }, `${RATIO}, the largest first; ${plural(shared.length, "question")} in common${apart ? `; ${number(apart)} left out: asked differently in the other run` : ""}.`), host, card("Questions", table({ title: "Questions in common", count: shared.length, sort: "-ratio", columns }).node));
    const named = shared.find(({ key }) => key === query.get("open")) || shared.reduce((best, each) => (ratio(each) > ratio(best) ? each : best), shared[0]);
    await open(named);
  }

  Object.assign(stp, { responses, response, pair });
})();
