// Draws the plots of a report from the JSON in #data: colours by the reader's scheme, one legend for the whole page,
// and each plot only when it comes near the screen, so that a page with hundreds of them opens at once.
"use strict";
(() => {
  const { styles, plots, maps } = JSON.parse(document.getElementById("data").textContent);
  const hidden = new Set();
  const drawn = new Set();
  const config = { displayModeBar: false, responsive: true };

  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const colorOf = (via) => {
    const style = styles[via];
    return !style || style.color < 0 ? css("--text") : css(`--color-${style.color}`);
  };

  function axis(own) {
    const grid = css("--grid");
    const title = own.title && { ...own.title, font: { size: 13.5, color: css("--soft") } };
    return { gridcolor: grid, zerolinecolor: grid, linecolor: css("--line"), showline: true, mirror: true, ticks: "outside",
      ticklen: 4, tickcolor: css("--line"), ...own, ...(title && { title }) };
  }

  function frame(layout) {
    return {
      ...layout,
      paper_bgcolor: css("--card"), plot_bgcolor: css("--card"),
      font: { family: getComputedStyle(document.body).fontFamily, size: 13, color: css("--text") },
      margin: { l: 56, r: 14, t: 22, b: 48, ...layout.margin },
      hoverlabel: { bgcolor: css("--back"), bordercolor: css("--line"), font: { color: css("--text"), size: 13 }, namelength: -1 },
      xaxis: axis({ ...layout.xaxis, spikecolor: css("--soft"), spikethickness: 1, spikedash: "dot" }), yaxis: axis(layout.yaxis),
    };
  }

  function shape(own) {
    if (own.type === "line") return { ...own, line: { color: css("--soft"), width: 1, dash: "dot" } };
    return { ...own, fillcolor: colorOf(own.name.slice("strip:".length)) };
  }

  function trace(own) {
    const color = colorOf(own.meta.via);
    const marker = { ...own.marker, color };
    const visible = !hidden.has(own.meta.via);
    return { ...own, visible, marker, ...(own.line && { line: { ...own.line, color } }) };
  }

  // On a narrow screen every second tick, so that none is turned.
  function thinned(own) {
    if (!own.tickvals || own.tickvals.length < 5) return own;
    const kept = (_, index) => index % 2 === 0;
    return { ...own, tickvals: own.tickvals.filter(kept), ticktext: own.ticktext.filter(kept) };
  }

  function draw(element) {
    const { data, layout: wide } = plots[element.id];
    const layout = element.clientWidth < 360 ? { ...wide, xaxis: thinned(wide.xaxis) } : wide;
    drawn.add(element);
    return Plotly.react(element, data.map(trace), frame({ ...layout, shapes: (layout.shapes || []).map(shape) }), config);
  }

  const SHAPES = {
    "circle": '<circle cx="13" cy="6" r="4"/>', "circle-open": '<circle cx="13" cy="6" r="4" fill="none" stroke-width="2"/>',
    "square": '<rect x="9" y="2" width="8" height="8"/>', "diamond": '<path d="M13 1l5 5-5 5-5-5z"/>',
    "triangle-up": '<path d="M13 1.5l4.5 8h-9z"/>', "triangle-down": '<path d="M13 10.5l4.5-8h-9z"/>',
    "cross": '<path d="M11.5 2h3v2.5h2.5v3h-2.5v2.5h-3v-2.5h-2.5v-3h2.5z"/>', "x": '<path d="M9.5 2.5l7 7m0-7l-7 7" stroke-width="3"/>',
    "star": '<path d="M13 1l1.5 3.5 3.8.3-2.9 2.5.9 3.7-3.3-2-3.3 2 .9-3.7-2.9-2.5 3.8-.3z"/>',
  };
  const DASHES = { solid: "", dash: "6 3", dot: "2 2", dashdot: "6 2 2 2" };

  function swatch(element, via) {
    const { dash, marker, width, opacity } = styles[via];
    const color = colorOf(via);
    element.innerHTML = `<svg width="26" height="12" viewBox="0 0 26 12" fill="${color}" stroke="${color}" stroke-width="0" opacity="${opacity}" aria-hidden="true">` +
      `<path d="M0 6h26" stroke-width="${width}" stroke-dasharray="${DASHES[dash]}"/>${opacity < 1 ? "" : SHAPES[marker]}</svg>`;
  }

  function toggle(chip) {
    const via = chip.dataset.via;
    if (!hidden.delete(via)) hidden.add(via);
    chip.setAttribute("aria-pressed", String(!hidden.has(via)));
    drawn.forEach(draw);
  }

  const pick = (id) => document.getElementById(`map-${id}`);

  function fillSizes() {
    const { sizes } = maps[pick("test").selectedIndex];
    pick("size").replaceChildren(...sizes.map(({ text }) => new Option(text)));
    pick("size").selectedIndex = sizes.length - 1;
  }

  function drawMap() {
    const map = maps[pick("test").selectedIndex];
    const measure = pick("measure").value;
    const { z, text, via } = map.sizes[pick("size").selectedIndex][measure];
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    const scale = [[0, dark ? "#18304a" : "#e8f1fa"], [1, dark ? "#7cc4ff" : "#0a5c9e"]];
    const most = Math.max(...z.flat().filter((value) => value !== null));
    const better = measure === "bandwidth" ? scale : [[0, scale[1][1]], [1, scale[0][1]]];
    const data = [{
      type: "heatmap", x: map.targets, y: map.sources, z, text, customdata: via, texttemplate: "%{text}", colorscale: better,
      zmin: 0, zmax: most, textfont: { size: 14 },
      hovertemplate: "%{y} to %{x}: <b>%{text}</b> via %{customdata}<extra></extra>", hoverongaps: false, xgap: 2, ygap: 2,
      showscale: false,
    }];
    const names = { type: "category", automargin: true, showgrid: false };
    const layout = frame({
      height: 150 + 46 * map.sources.length, margin: { t: 14 },
      xaxis: { ...names, title: { text: "target" } }, yaxis: { ...names, title: { text: "source" }, autorange: "reversed" },
    });
    return Plotly.react("map", data, layout, config);
  }

  function dress() {
    document.querySelectorAll(".chip .swatch").forEach((e) => swatch(e, e.parentElement.dataset.via));
    document.querySelectorAll(".swatch.small").forEach((e) => swatch(e, e.dataset.via));
    drawn.forEach(draw);
    if (maps.length) drawMap();
  }

  document.querySelectorAll(".chip").forEach((chip) => chip.addEventListener("click", () => toggle(chip)));
  if (maps.length) {
    fillSizes();
    pick("test").addEventListener("change", () => { fillSizes(); drawMap(); });
    pick("size").addEventListener("change", drawMap);
    pick("measure").addEventListener("change", drawMap);
  }
  dress();
  const watcher = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (isIntersecting) { watcher.unobserve(target); draw(target); }
    }
  }, { rootMargin: "800px" });
  document.querySelectorAll(".plot").forEach((element) => watcher.observe(element));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", dress);
  addEventListener("beforeprint", () => document.querySelectorAll(".plot").forEach(draw));
})();
