"use strict";
/* Charts by Apache ECharts, as SVG in the page's colours; the library is loaded with the first one. */
(() => {
  const { el, number } = stp;
  const LIBRARY = "app/echarts.common.min.js", PDF = ["app/jspdf.umd.min.js", "app/svg2pdf.umd.min.js"];
  const SERIES = 6, DASHES = ["solid", "dashed", "dotted", [9, 3, 2, 3]];
  const MARKERS = ["circle", "rect", "triangle", "diamond", "pin", "roundRect"];
  const drawn = new Set();
  const loaded = new Map();

  /* Load one of the page's own files, once. */
  function script(address) {
    if (!loaded.has(address)) loaded.set(address, new Promise((resolve, reject) => {
      const own = el("script", { src: address });
      own.addEventListener("load", resolve);
      own.addEventListener("error", () => { loaded.delete(address); reject(new Error(`${address} cannot be loaded`)); });
      document.head.append(own);
    }));
    return loaded.get(address);
  }
  // A page that is one file has the library already, and figures as PDF beside it.
  const single = Boolean(window.echarts);
  async function load() {
    if (!single) await script(LIBRARY);
    return window.echarts;
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
      host, make,
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
    const said = el("span", { role: "status" });
    const button = (kind) => [el("button", { type: "button", class: "quiet", onclick: () => { said.textContent = ""; download(entry, kind, save, height).catch((error) => { said.textContent = error.message; }); } }, kind.toUpperCase()), " "];
    return el("div", {}, host, el("p", { class: "save" }, "Save as ", ["svg", "png", ...(single ? [] : ["pdf"])].map(button), said));
  }

  /* A figure for an article: white paper, the light colours, no buttons. */
  async function download(entry, kind, name, height) {
    const echarts = await load(), root = document.documentElement, before = root.dataset.theme;
    const host = el("div", {});
    Object.assign(host.style, { width: "900px", height: `${height}px`, position: "absolute", left: "-9999px" });
    document.body.append(host);
    const copy = echarts.init(host, null, { renderer: kind === "png" ? "canvas" : "svg" });
    try {
      root.dataset.theme = "light";
      copy.setOption({ animation: false, backgroundColor: "#ffffff", ...entry.make(false) });
      if (before) root.dataset.theme = before; else delete root.dataset.theme;
      // Lines that were switched off stay away.
      const [{ selected } = {}] = entry.chart.getOption().legend || [];
      if (selected) copy.setOption({ legend: { selected } });
      const address = kind === "pdf" ? await pdf(host.querySelector("svg")) : copy.getDataURL({ type: kind, pixelRatio: 4, backgroundColor: "#ffffff" });
      el("a", { href: address, download: `${name}.${kind}` }).click();
    } finally {
      copy.dispose();
      host.remove();
    }
  }

  /* A PDF of one page, 6 inches wide, in lines and letters. Its fonts have Latin letters alone. */
  async function pdf(drawing) {
    for (const text of drawing.querySelectorAll("text")) {
      text.textContent = text.textContent.replaceAll("\u2212", "-").replaceAll("\u2026", "...");
      const strange = /[^\u0000-\u00ff\u2013\u2014\u2018-\u201d\u2022\u20ac]/u.exec(text.textContent);
      if (strange) throw new Error(`a PDF has no letter \u201c${strange[0]}\u201d: save as SVG or PNG`);
    }
    for (const address of PDF) await script(address);
    const { width, height } = drawing.getBoundingClientRect(), wide = 432, high = (wide * height) / width;
    drawing.setAttribute("viewBox", `0 0 ${width} ${height}`);
    const paper = new window.jspdf.jsPDF({ unit: "pt", format: [wide, high], orientation: wide > high ? "landscape" : "portrait", compress: true });
    await paper.svg(drawing, { x: 0, y: 0, width: wide, height: high });
    return URL.createObjectURL(paper.output("blob"));
  }

  const redraw = () => [...drawn].forEach((entry) => entry.draw());
  let timer = null, width = window.innerWidth;
  window.addEventListener("resize", () => {
    if (window.innerWidth === width) return;
    width = window.innerWidth;
    clearTimeout(timer);
    timer = setTimeout(redraw, 120);
  });
  const dark = matchMedia("(prefers-color-scheme: dark)"), root = document.documentElement;
  dark.addEventListener("change", redraw);
  document.getElementById("theme").addEventListener("click", () => {
    root.dataset.theme = (root.dataset.theme ? root.dataset.theme === "dark" : dark.matches) ? "light" : "dark";
    redraw();
  });
  const tooltip = (formatter, trigger = "item") => ({
    trigger, confine: true, formatter, backgroundColor: colour("card"), borderColor: colour("line"),
    textStyle: { color: colour("ink"), fontSize: 13 }, extraCssText: "max-width: 22rem; white-space: normal;",
  });

  Object.assign(stp, { chart, colour, look, tip, axis, tooltip, redraw, tokens: (x) => number(x) });
})();
