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
    // A page that is one file has it already.
    library ||= window.echarts ? Promise.resolve(window.echarts) : new Promise((resolve, reject) => {
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
    return el("div", {}, host, el("p", { class: "save" }, "Save as ", button("svg"), " ", button("png"), " ", button("pdf")));
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
    const size = { type: kind === "svg" ? "svg" : "png", pixelRatio: 4, backgroundColor: "#ffffff" };
    const address = kind === "pdf" ? URL.createObjectURL(await pdf(copy.getRenderedCanvas(size))) : copy.getDataURL(size);
    copy.dispose();
    host.remove();
    if (before) root.dataset.theme = before; else delete root.dataset.theme;
    el("a", { href: address, download: `${name}.${kind}` }).click();
  }

  /* A PDF of one page that holds a canvas as it is, 6 inches wide (600 dots an inch). */
  async function pdf(canvas) {
    const { width, height } = canvas, pixels = canvas.getContext("2d").getImageData(0, 0, width, height).data, colours = new Uint8Array(3 * width * height);
    for (let i = 0, j = 0; i < pixels.length; i += 4) { colours[j++] = pixels[i]; colours[j++] = pixels[i + 1]; colours[j++] = pixels[i + 2]; }
    const packed = new Uint8Array(await new Response(new Blob([colours]).stream().pipeThrough(new CompressionStream("deflate"))).arrayBuffer());
    const wide = 432, high = (wide * height) / width, draw = `q ${wide} 0 0 ${high.toFixed(2)} 0 0 cm /I Do Q`, parts = [], offsets = [];
    let size = 0;
    const put = (part) => { parts.push(part); size += part.length; };
    const object = (text, stream) => { offsets.push(size); put(`${offsets.length} 0 obj ${text}`); if (stream) { put("\nstream\n"); put(stream); put("\nendstream"); } put("\nendobj\n"); };
    put("%PDF-1.4\n");
    object("<< /Type /Catalog /Pages 2 0 R >>");
    object("<< /Type /Pages /Kids [3 0 R] /Count 1 >>");
    object(`<< /Type /Page /Parent 2 0 R /MediaBox [0 0 ${wide} ${high.toFixed(2)}] /Contents 4 0 R /Resources << /XObject << /I 5 0 R >> >> >>`);
    object(`<< /Length ${draw.length} >>`, draw);
    object(`<< /Type /XObject /Subtype /Image /Width ${width} /Height ${height} /ColorSpace /DeviceRGB /BitsPerComponent 8 /Filter /FlateDecode /Length ${packed.length} >>`, packed);
    const start = size;
    put(`xref\n0 ${offsets.length + 1}\n0000000000 65535 f \n${offsets.map((at) => `${String(at).padStart(10, "0")} 00000 n \n`).join("")}trailer << /Size ${offsets.length + 1} /Root 1 0 R >>\nstartxref\n${start}\n%%EOF\n`);
    return new Blob(parts, { type: "application/pdf" });
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
