"use strict";
/* A report page's data, and its views (points, lines, bars) as charts: what figures for print show.
 *
 * A page says where a view stands with an element that has its name, data-view.
 */
(() => {
  const { el, percent, number, unknown, MISSING, chart, colour, look, tip, axis, tooltip } = stp;
  const MANY = 40, ROW = 15;

  /* Write numbers by a format specification of Python, such as .0%, .2f or g. */
  function written(spec) {
    const digits = Number(/\.(\d+)/.exec(spec)?.[1] ?? 0);
    return (x) => (unknown(x) ? MISSING : spec.endsWith("%") ? percent(x, digits) : spec.endsWith("f") ? number(x, digits) : String(Number(x.toPrecision(4))));
  }
  const exact = (view) => (view.y_format.endsWith("%") ? (y) => percent(y) : written(view.y_format));
  /* A fraction goes from 0 to 1, an amount from 0. */
  const upright = (view) => axis(view.y_label, { min: 0, max: view.y_format.endsWith("%") ? 1 : null, gap: 44, format: written(view.y_format) });
  const frame = (top) => ({ left: 66, right: 24, top, bottom: 50 });
  const legend = () => ({ top: 0, left: 0, type: "scroll", textStyle: { color: colour("ink") }, inactiveColor: colour("muted") });
  function across(view, xs) {
    const own = axis(view.x_label, { min: 0, format: written(view.x_format) });
    // Equal distances are equal ratios: from one power of two to another.
    return view.log_x ? { ...own, type: "log", logBase: 2, min: 2 ** Math.floor(Math.log2(Math.min(...xs))), max: 2 ** Math.ceil(Math.log2(Math.max(...xs))) } : own;
  }
  const named = (names) => ({ type: "category", data: names, axisTick: { show: false }, axisLine: { lineStyle: { color: colour("muted") } }, axisLabel: { color: colour("muted"), fontSize: 12, hideOverlap: true, width: 110, overflow: "break" } });
  const pairs = (line) => line.x.map((x, i) => [x, line.y[i]]);

  /* Points have a number each: names beside points cover each other. */
  function scatter(view) {
    const x = written(view.x_format), y = exact(view);
    const make = () => ({
      grid: frame(20), yAxis: upright(view), xAxis: across(view, [...view.points, ...view.contours.flatMap((line) => line.x.map((at) => ({ x: at })))].map((point) => point.x)),
      tooltip: tooltip(({ data }) => tip(data.lines || [""])),
      series: [
        ...view.contours.map((line) => ({ type: "line", data: pairs(line).reverse(), symbol: "none", silent: true, lineStyle: { color: colour("muted"), width: 1, type: "dashed" }, endLabel: { show: true, formatter: line.name, color: colour("muted"), offset: [0, -8] } })),
        { type: "scatter", data: view.points.map((point, i) => ({ value: [point.x, point.y], symbol: point.marked ? "diamond" : "circle", symbolSize: point.marked ? 26 : 20, itemStyle: { color: colour(point.marked ? "mark" : "series-1"), borderColor: colour("card"), borderWidth: 1 },
          label: { show: true, formatter: String(i + 1), color: colour("card"), fontSize: 11, fontWeight: 600 }, lines: [point.name, `${view.x_label}: ${x(point.x)}`, `${view.y_label}: ${y(point.y)}`] })) },
      ],
    });
    return [{ make }, el("ol", { class: "names" }, view.points.map((point) => el("li", {}, point.name + (point.marked ? " (marked)" : ""))))];
  }

  function lines(view) {
    const x = written(view.x_format), y = exact(view);
    const make = (narrow) => ({
      grid: frame(narrow ? 56 : 40), legend: legend(), yAxis: upright(view), xAxis: view.ticks.length ? named(view.ticks) : across(view, view.lines.flatMap((line) => line.x)),
      tooltip: tooltip(({ seriesIndex, dataIndex }) => {
        const line = view.lines[seriesIndex], at = line.x[dataIndex];
        return tip([line.name, ...(line.texts[dataIndex] ? [line.texts[dataIndex]] : []), `${view.x_label}: ${view.ticks.length ? view.ticks[at] : x(at)}`, `${view.y_label}: ${y(line.y[dataIndex])}`]);
      }),
      series: view.lines.map((line, i) => {
        const own = look(i), few = line.x.length <= MANY;
        return { name: line.name, type: "line", data: pairs(line), symbol: own.marker, symbolSize: few ? 8 : 4, itemStyle: { color: own.color, opacity: few ? 1 : 0 }, lineStyle: { color: own.color, type: own.dash, width: 2, opacity: 1 }, emphasis: { itemStyle: { opacity: 1 } },
          label: { show: few && line.texts.length > 0, formatter: ({ dataIndex }) => line.texts[dataIndex] || "", position: "top", color: colour("muted"), fontSize: 11 }, labelLayout: { hideOverlap: true } };
      }),
    });
    return [{ make }];
  }

  function bars(view) {
    const y = exact(view), amounts = { ...upright(view), name: view.y_label };
    const make = (narrow) => ({
      legend: legend(), grid: view.flat ? { left: narrow ? 110 : 170, right: 30, top: 40, bottom: 50 } : frame(narrow ? 56 : 40),
      ...(view.flat ? { yAxis: { ...named(view.groups), inverse: true }, xAxis: { ...amounts, nameGap: 30 } } : { xAxis: { ...named(view.groups), name: view.x_label, nameLocation: "middle", nameGap: 30, nameTextStyle: { color: colour("muted"), fontSize: 12 } }, yAxis: amounts }),
      tooltip: tooltip(({ seriesIndex, dataIndex }) => tip([view.groups[dataIndex], `${view.series[seriesIndex][0]}: ${y(view.series[seriesIndex][1][dataIndex])}`, ...(view.notes[dataIndex] ? [view.notes[dataIndex]] : [])])),
      series: view.series.map(([name, values], i) => ({ name, type: "bar", data: values, stack: view.stacked ? "all" : null, barMaxWidth: view.stacked ? null : 60, barCategoryGap: view.stacked ? "6%" : "20%", itemStyle: { color: view.colours.length ? colour(view.colours[i]) : look(i).color } })),
    });
    return [{ make, height: view.flat ? Math.max(260, 100 + ROW * view.groups.length * (1 + view.series.length)) : 360 }];
  }

  const KINDS = { Scatter: scatter, Lines: lines, Bars: bars };
  stp.data = JSON.parse(document.getElementById("page-data").textContent);
  for (const host of document.querySelectorAll("[data-view]")) {
    const view = stp.data.views[host.dataset.view], [drawn, ...below] = KINDS[view.kind](view);
    host.append(chart({ label: `${view.title}: ${view.y_label} over ${view.x_label}`, save: view.stem, ...drawn }), ...below);
  }
})();
