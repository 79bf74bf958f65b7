"use strict";
/* The report's frontiers: the explorer's view of them, on the numbers that stand in the page. */
(() => {
  const { el, frontierView, data } = stp, { frontiers } = data, host = document.getElementById("frontier-view");
  if (!frontiers.length) return;
  const box = el("select", { "aria-label": "Frontiers of", onchange: () => draw() }, frontiers.map((view, i) => el("option", { value: i }, view.name)));
  const shown = el("div");
  const draw = () => shown.replaceChildren(frontierView(frontiers[Number(box.value)], `frontiers-${box.value}`));
  host.append(...(frontiers.length > 1 ? [el("div", { class: "bar" }, box)] : []), shown);
  host.hidden = false;
  draw();
})();
