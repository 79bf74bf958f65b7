"use strict";
/* The first page, and which view an address opens. */
(() => {
  const { el, link, card, piece, where, address, onKeys } = stp;
  const KINDS = { campaign: "Campaign", release: "Release", otbench: "OTBench run", think: "LLMThinkBench run", optimal: "OptimalThinkingBench run", live: "Live run", board: "Leaderboard" };
  const view = document.getElementById("view");

  async function home(page) {
    const { sources } = await piece("index");
    if (sources.length === 1 || sources[0].kind === "board") { location.replace("#/0"); return; }
    where("Explorer", []);
    page.append(card("Folders", el("ul", {}, sources.map((source, place) => el("li", {}, link(`/${place}`, source.name), ` \u2013 ${KINDS[source.kind]}, ${source.folder}`)))));
    if (sources.filter((source) => source.cells).length > 1 || sources.some((source) => source.cells?.length > 1)) page.append(el("p", {}, link("/compare", "Compare two cells side by side")));
  }

  async function open(page, place) {
    const source = (await piece("index")).sources[place];
    if (!source) throw new Error(`there is no folder ${place} here`);
    const opened = { campaign: stp.campaign, release: stp.campaign, live: stp.responses, otbench: stp.methods, think: stp.responses, optimal: stp.responses, board: stp.board }[source.kind];
    await opened(page, place);
  }

  const routes = [
    [/^\/$/, home],
    [/^\/(\d+)$/, open],
    [/^\/(\d+)\/all$/, (page, place) => stp.trajectories(page, place, null)],
    [/^\/(\d+)\/cell\/(\d+)$/, (page, place, cell) => stp.trajectories(page, place, cell)],
    [/^\/(\d+)\/t\/(\d+)\/(\d+)$/, (page, place, cell, row) => stp.trajectory(page, place, cell, row)],
    [/^\/(\d+)\/frontiers$/, (page, place) => stp.frontiers(page, place)],
    [/^\/(\d+)\/r\/(\d+)$/, (page, place, row) => stp.response(page, place, row)],
    [/^\/compare$/, (page) => stp.compare(page)],
    [/^\/pair$/, (page) => stp.pair(page)],
  ];

  /* Every view is built in an element of its own: one that was left early writes nowhere. */
  async function show() {
    const { route } = address(), page = el("div");
    view.replaceChildren(page);
    delete view.dataset.ready;
    onKeys({});
    try {
      const [pattern, act] = routes.find(([known]) => known.test(route)) || [];
      if (!act) throw new Error(`there is no view ${route}`);
      await act(page, ...route.match(pattern).slice(1).map(Number));
    } catch (error) {
      page.append(el("p", { class: "warning", role: "alert" }, `This cannot be shown: ${error.message}`));
    }
    if (page.isConnected) view.dataset.ready = route;
  }

  window.addEventListener("hashchange", show);
  document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); view.focus(); });
  show();
})();
