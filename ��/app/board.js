"use strict";
/* Leaderboards: rows that answered the same questions stand together; others stand apart. */
(() => {
  const { el, card, folded, percent, number, plural, unknown, MISSING, piece, where, remember, address, source, chart, colour, look, tip, axis, tooltip, table } = stp;
  const shown = (kind, x) => (unknown(x) ? MISSING : kind === "share" ? percent(x) : kind === "score" ? number(x, 3) : number(x));

  async function board(page, place) {
    const { name, boards } = await source(place), view = await piece(`${place}/rows`);
    where(name, [[name]]);
    const asked = address().query.get("board"), host = el("div");
    const box = el("select", { "aria-label": "Board", onchange: () => draw() }, boards.map((id) => el("option", { value: id, selected: id === asked }, view.boards[id].title)));
    page.append(el("div", { class: "bar" }, box), host);
    function draw() {
      remember({ board: box.value });
      const groups = view.headlines.filter((found) => found.board === box.value);
      host.replaceChildren(...groups.map((group, i) => groupCard(view, group, view.rows.filter((row) => row.board === group.board && row.group === group.group), i)));
    }
    draw();
  }

  function groupCard(view, { board: id, group, text }, rows, place) {
    const title = place ? `Other questions or settings, ${group.slice(0, 8)}` : view.boards[id].title;
    return card(title, el("p", { class: "potential" }, text),
      el("p", { class: "note" }, `${plural(rows.length, "row")} on the same questions under the same settings (${group}).`),
      winners(view, rows), rows.some((row) => row.point) ? plane(view, id, group, rows) : null, rowTable(view, id, group, rows));
  }

  /* The best row of every value; tokens are better when fewer. */
  function winners(view, rows) {
    if (rows.length < 2) return null;
    const named = Object.keys(rows[0].values).map((key) => {
      const known = rows.filter((row) => !unknown(row.values[key])), fewer = view.values[key][1] === "count";
      if (!known.length) return null;
      const best = known.reduce((a, b) => ((fewer ? b.values[key] < a.values[key] : b.values[key] > a.values[key]) ? b : a));
      return [view.values[key][0] + (fewer ? ", fewest" : ""), `${best.name} (${shown(view.values[key][1], best.values[key])})`];
    }).filter(Boolean);
    return folded("Best in each category", el("dl", { class: "reading" }, named.map(([term, value]) => [el("dt", {}, term), el("dd", {}, value)])));
  }

  function plane(view, id, group, rows) {
    const { x, y, title, by } = view.boards[id], known = rows.filter((row) => row.point), best = known.filter((row) => !known.some((other) => other.point[0] > row.point[0] && other.point[1] > row.point[1]));
    const lines = (row) => [row.name, `${x}: ${percent(row.point[0])}`, `${y}: ${percent(row.point[1])}`, `${view.values[by][0]}: ${shown(view.values[by][1], row.values[by])}`];
    return chart({
      label: `${title}: ${y} over ${x} of ${plural(known.length, "row")}`, height: 360, save: `${id}-${group.slice(0, 8)}`,
      make: () => ({
        grid: { left: 52, right: 24, top: 20, bottom: 50 }, xAxis: axis(x, { scale: true, format: (value) => percent(value, 0) }), yAxis: axis(y, { scale: true, format: (value) => percent(value, 0) }),
        tooltip: tooltip(({ dataIndex }) => tip(lines(known[dataIndex]))),
        series: [{ type: "scatter", data: known.map((row, i) => ({ value: row.point, symbol: look(i).marker, symbolSize: best.includes(row) ? 14 : 9, itemStyle: { color: look(i).color },
          label: { show: best.includes(row) && best.length < 12, formatter: row.name.slice(0, 30), position: "top", color: colour("ink") } })) }],
      }),
    });
  }

  function rowTable(view, id, group, rows) {
    const { by } = view.boards[id], facts = [...new Set(rows.flatMap((row) => Object.keys(row.facts)))];
    const filtered = facts.filter((key) => key !== "versions" && new Set(rows.map((row) => row.facts[key])).size > 1);
    const value = (key) => ({ key, name: view.values[key][0], kind: "number", filter: key === by, scale: view.values[key][1] === "share" ? 100 : 1, value: (i) => rows[i].values[key], show: (i) => shown(view.values[key][1], rows[i].values[key]) });
    const node = table({
      title: `Rows of ${view.boards[id].title}`, key: `${group.slice(0, 6)}-`, count: rows.length, sort: `-${by}`, columns: [
        { key: "name", name: "Name", kind: "text", filter: true, value: (i) => rows[i].name, link: (i) => `/${rows[i].folder}` },
        ...Object.keys(rows[0].values).map(value),
        ...filtered.map((key) => ({ key, name: key, kind: "choice", filter: true, value: (i) => rows[i].facts[key] || MISSING })),
      ],
    }).node;
    const common = facts.filter((key) => !filtered.includes(key));
    return el("div", {}, node, folded("Settings and versions", rows.slice(0, 60).map((row) => el("div", {}, el("h3", {}, row.name),
      el("dl", { class: "reading" }, facts.filter((key) => row.facts[key] && (common.includes(key) || key === "versions")).map((key) => [el("dt", {}, key), el("dd", {}, row.facts[key])]))))));
  }

  stp.board = board;
})();
