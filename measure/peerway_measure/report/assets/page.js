// Draws the plots of a report from #data (JSON, gzip, base64): colours by the reader's scheme, one legend for the whole page,
// and each plot only when it comes near the screen, so that a page with hundreds of them opens at once.
"use strict";
(async () => {
  if (!("DecompressionStream" in window)) {
    for (const plot of document.querySelectorAll(".plot"))
      plot.textContent = "This browser is too old to draw the plots (it lacks DecompressionStream); the tables below have the numbers.";
    return;
  }
  const packed = Uint8Array.from(atob(document.getElementById("data").textContent), (c) => c.charCodeAt(0));
  const unpacked = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
  const { styles, plots, maps } = await new Response(unpacked).json();
  const hidden = new Set();
  const drawn = new Set();
  const config = { displayModeBar: false, responsive: true };

  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const named = { [-1]: "--text", [-2]: "--soft" };
  const colorOf = (style) => css(style ? named[style.color] || `--color-${style.color}` : "--text");
  const ofPath = (via) => Object.values(styles).find((style) => style.via === via);

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
    return { ...own, fillcolor: colorOf(ofPath(own.name.slice("strip:".length))) };
  }

  function trace(own) {
    const color = colorOf(styles[own.meta.curve]);
    const pattern = own.marker && own.marker.pattern && { ...own.marker.pattern, fgcolor: color, bgcolor: css("--card") };
    const marker = { ...own.marker, color, ...(pattern && { pattern }) };
    const { via, file } = styles[own.meta.curve];
    const visible = !hidden.has(`via ${via}`) && !hidden.has(`file ${file}`);
    const error_y = own.error_y && { ...own.error_y, color, thickness: 1, width: 2 };
    return { ...own, visible, marker, ...(error_y && { error_y }), ...(own.line && { line: { ...own.line, color } }) };
  }

  // On a narrow screen fewer ticks, so that none lies on another.
  function thinned(own) {
    if (!own.tickvals) return { ...own, nticks: 2 };
    if (own.tickvals.length < 5) return own;
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
    "circle": '<circle cx="13" cy="6" r="4"/>', "square": '<rect x="9" y="2" width="8" height="8"/>',
    "diamond": '<path d="M13 1l5 5-5 5-5-5z"/>', "triangle-up": '<path d="M13 1.5l4.5 8h-9z"/>',
    "triangle-down": '<path d="M13 10.5l4.5-8h-9z"/>',
    "cross": '<path d="M11.5 2h3v2.5h2.5v3h-2.5v2.5h-3v-2.5h-2.5v-3h2.5z"/>', "x": '<path d="M9.5 2.5l7 7m0-7l-7 7"/>',
    "star": '<path d="M13 1l1.5 3.5 3.8.3-2.9 2.5.9 3.7-3.3-2-3.3 2 .9-3.7-2.9-2.5 3.8-.3z"/>',
  };
  const DASHES = { solid: "", dash: "6 3", dot: "2 2", dashdot: "6 2 2 2", longdash: "9 3", longdashdot: "9 2 2 2" };

  function swatch(element, name) {
    const { dash, marker, width, opacity } = styles[name];
    const color = colorOf(styles[name]);
    const open = marker.includes("-open");
    const base = marker.replace(/-open|-dot/g, "");
    const inside = open ? `fill="${css("--card")}" stroke-width="1.5"` : base === "x" ? 'stroke-width="3"' : "";
    const shape = opacity < 1 ? "" : `<g ${inside}>${SHAPES[base]}</g>`;
    element.innerHTML = `<svg width="26" height="12" viewBox="0 0 26 12" fill="${color}" stroke="${color}" stroke-width="0" opacity="${opacity}" aria-hidden="true">` +
      `<path d="M0 6h26" stroke-width="${width}" stroke-dasharray="${DASHES[dash]}"/>${shape}</svg>`;
  }

  function toggle(chip) {
    const name = `${chip.dataset.kind} ${chip.dataset.name}`;
    if (!hidden.delete(name)) hidden.add(name);
    chip.setAttribute("aria-pressed", String(!hidden.has(name)));
    drawn.forEach(draw);
  }

  const pick = (id) => document.getElementById(id ? `map-${id}` : "map");

  function fillSizes() {
    const { sizes } = maps[pick("test").selectedIndex];
    pick("size").replaceChildren(...sizes.map(({ text }) => new Option(text)));
    pick("size").selectedIndex = sizes.length - 1;
  }

  // A table, whose cells can be selected and read aloud; the better a value, the deeper its colour.
  function drawMap() {
    const map = maps[pick("test").selectedIndex];
    const measure = pick("measure").value;
    const { z, text, via } = map.sizes[pick("size").selectedIndex][measure];
    const known = z.flat().filter((value) => value !== null);
    const least = Math.min(...known), most = Math.max(...known);
    const share = (value) => (measure === "bandwidth" ? value / most : least / value);
    const element = (tag, content, scope) => Object.assign(document.createElement(tag), { textContent: content, ...(scope && { scope }) });
    const head = document.createElement("tr");
    head.append(element("th", "from \\ to"), ...map.targets.map((target) => element("th", target, "col")));
    const rows = map.sources.map((source, i) => {
      const row = document.createElement("tr");
      row.append(element("th", source, "row"), ...z[i].map((value, j) => {
        const cell = element("td", text[i][j]);
        if (value !== null) {
          cell.title = `${source} to ${map.targets[j]}: ${text[i][j]} via ${via[i][j]}`;
          cell.style.setProperty("--share", `${Math.round(100 * share(value))}%`);
          cell.className = share(value) > 0.5 ? "deep" : "light";
        }
        return cell;
      }));
      return row;
    });
    pick("").replaceChildren(head, ...rows);
  }

  function dress() {
    document.querySelectorAll(".chip .swatch").forEach((e) => swatch(e, e.parentElement.dataset.curve));
    document.querySelectorAll(".swatch.small").forEach((e) => swatch(e, e.parentElement.textContent.trim()));
    drawn.forEach(draw);
  }

  document.querySelectorAll(".chip").forEach((chip) => chip.addEventListener("click", () => toggle(chip)));
  if (maps.length) {
    fillSizes();
    pick("test").addEventListener("change", () => { fillSizes(); drawMap(); });
    pick("size").addEventListener("change", drawMap);
    pick("measure").addEventListener("change", drawMap);
    drawMap();
  }
  dress();
  const legend = document.getElementById("legend");  // stays on the screen: what is jumped to goes below it
  new ResizeObserver(() => { document.documentElement.style.scrollPaddingTop = `${legend.offsetHeight + 8}px`; }).observe(legend);
  const watcher = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries) {
      if (isIntersecting) { watcher.unobserve(target); draw(target); }
    }
  }, { rootMargin: "800px" });
  document.querySelectorAll(".plot").forEach((element) => watcher.observe(element));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", dress);
  let resized;
  addEventListener("resize", () => { clearTimeout(resized); resized = setTimeout(() => drawn.forEach(draw), 150); });
  addEventListener("beforeprint", () => document.querySelectorAll(".plot").forEach(draw));
})();
