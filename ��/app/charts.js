"use strict";
/* Charts by Apache ECharts, as SVG in the page's colours; the library is loaded with the first one. */
(() => {
  const { el, number } = stp;
  const LIBRARY = "app/echarts.common.min.js";
  const SERIES = 6, DASHES = ["solid", "dashed", "dotted", [9, 3, 2, 3]];
  const MARKERS = ["circle", "rect", "triangle", "diamond", "pin", "roundRect"];
  const drawn = new Set();
  let library = null;

  function load() {
    library ||= new Promise((resolve, reject) => {
      const script = el("script", { src: LIBRARY });
      script.addEventListener("load", () => resolve(window.echarts));
      script.addEventListener("error", () => reject(new Error("the charting library cannot be loaded")));
      document.head.append(script);
    });
    return library;
  }

  const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();
  /* The look of a series by its place: colours, then other dashes, and markers throughout. */
  const look = (place) => ({
    color: colour(`series-${(place % SERIES) + 1}`),
    dash: DASHES[Math.floor(place / SERIES) % DASHES.length],
    marker: MARKERS[place % MARKERS.length],
  });
  /* What stands in a tooltip: lines of text, as an element, so that none of it is read as HTML. */
  const tip = (lines) => el("div", { class: "tip" }, lines.map((line, i) => el(i ? "div" : "b", {}, line)));

  function axis(name, options) {
    const text = colour("muted");
    return {
      type: "value", name, nameLocation: "middle", nameGap: options.gap || 30,
      nameTextStyle: { color: text, fontSize: 12 },
      axisLabel: { color: text, fontSize: 12, hideOverlap: true, formatter: options.format },
      axisLine: { show: true, lineStyle: { color: text } },
      splitLine: { show: options.grid !== false, lineStyle: { color: colour("line") } },
      min: options.min, max: options.max, scale: options.scale,
    };
  }

  /* Draw a chart that is drawn again when the page's width or its colours change.
   *
   * make(narrow): the library's option, asked anew each time. onReady(chart) is told of the chart
   * each time that it is made. Returns the element, with the chart's download buttons.
   */
  function chart({ label, height = 360, make, onReady, save }) {
    const host = el("div", { class: "echart", role: "img", "aria-label": label });
    host.style.height = `${height}px`;
    const entry = {
      host,
      draw() {
        if (!host.isConnected) { this.close(); return; }
        load().then((echarts) => {
          if (!host.isConnected) return;
          this.chart?.dispose();
          this.chart = echarts.init(host, null, { renderer: "svg" });
          this.chart.setOption({
            animation: false, textStyle: { fontFamily: getComputedStyle(document.body).fontFamily }, ...make(host.clientWidth < 520),
          });
          onReady?.(this.chart);
          host.dataset.drawn = "yes";
        }).catch((error) => host.replaceChildren(el("p", { class: "warning" }, error.message)));
      },
      close() { this.chart?.dispose(); drawn.delete(this); },
    };
    drawn.add(entry);
    requestAnimationFrame(() => entry.draw());
    if (!save) return host;
    const button = (kind) => el("button", { type: "button", class: "quiet", onclick: () => download(entry, kind, save, height) }, kind.toUpperCase());
    return el("div", {}, host, el("p", { class: "save" }, "Save as ", button("svg"), " ", button("png")));
  }

  /* A figure for an article: white paper, the light colours, no buttons. */
  async function download(entry, kind, name, height) {
    const echarts = await load(), root = document.documentElement, before = root.dataset.theme;
    root.dataset.theme = "light";
    const host = el("div", {});
    Object.assign(host.style, { width: "900px", height: `${height}px`, position: "absolute", left: "-9999px" });
    document.body.append(host);
    const copy = echarts.init(host, null, { renderer: kind === "svg" ? "svg" : "canvas" });
    copy.setOption({ animation: false, backgroundColor: "#ffffff", ...entry.make?.(false), ...entry.chart.getOption() });
    const address = copy.getDataURL({ type: kind, pixelRatio: 3, backgroundColor: "#ffffff" });
    copy.dispose();
    host.remove();
    if (before) root.dataset.theme = before; else delete root.dataset.theme;
    el("a", { href: address, download: `${name}.${kind}` }).click();
  }

  const redraw = () => [...drawn].forEach((entry) => entry.draw());
  let timer = null, width = window.innerWidth;
  window.addEventListener("resize", () => {
    if (window.innerWidth === width) return;
    width = window.innerWidth;
    clearTimeout(timer);
    timer = setTimeout(redraw, 120);
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  const tooltip = (formatter, trigger = "item") => ({
    trigger, confine: true, formatter, backgroundColor: colour("card"), borderColor: colour("line"),
    textStyle: { color: colour("ink"), fontSize: 13 }, extraCssText: "max-width: 22rem; white-space: normal;",
  });

  Object.assign(stp, { chart, colour, look, tip, axis, tooltip, redraw, tokens: (x) => number(x) });
})();
