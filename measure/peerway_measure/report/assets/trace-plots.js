// Draws the messages of each path beside the measured curve, and distributions of bursts, from #plots (JSON): in the colours of the reader's
// scheme, and each plot only when it comes near the screen.
"use strict";
(() => {
  const source = document.getElementById("plots");
  if (!source) return;
  const plots = JSON.parse(source.textContent);
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const drawn = new Set();

  function axis(title, of) {
    return { type: "log", title: { text: title, font: { size: 13, color: css("--soft") } },
      gridcolor: css("--grid"), linecolor: css("--line"), showline: true, mirror: true, tickvals: of.values, ticktext: of.texts,
      range: of.range };
  }

  const upward = (of) => ({ ...of, title: { ...of.title, standoff: 10 } });

  function linear(title, more) {
    return { ...axis(title, {}), type: "linear", tickvals: undefined, ticktext: undefined, range: undefined, ...more };
  }

  /** As many ticks as have room beside each other. */
  function thinned(of, width) {
    const step = Math.ceil(of.tickvals.length / Math.max(2, Math.floor((width - 104) / 80)));
    const few = (texts) => texts.filter((_, at) => at % step === 0);
    return { ...of, tickangle: 0, tickvals: few(of.tickvals), ticktext: few(of.ticktext) };
  }

  const forms = { scatter: (of) => scatter(of), cdf: (of) => ({
    traces: [{ type: "scatter", mode: "lines", line: { shape: "hv", color: css("--color-0"), width: 2 }, x: of.values, y: of.shares, text: of.texts,
      hovertemplate: "%{text}<extra></extra>" }],
    xaxis: axis(`${of.axis}, log scale`, of.x), yaxis: upward(linear("share of bursts", { range: [0, 102], ticksuffix: " %" })) }), bars: (of) => ({
    traces: [{ type: "bar", x: of.labels, y: of.counts, marker: { color: css("--color-0") }, hovertemplate: "%{x}: %{y}<extra></extra>" }],
    xaxis: linear("message size", { type: "category", tickvals: of.labels, ticktext: of.labels }),
    yaxis: upward(linear(of.axis, { rangemode: "tozero" })) }) };

  function scatter({ messages, curve, x, y }) {
    const traces = [{ type: "scatter", mode: "markers", name: "message", x: messages.sizes, y: messages.ns, text: messages.texts,
      hovertemplate: "%{text}<extra></extra>", marker: { size: 5, opacity: 0.5, color: css("--color-0") } }];
    if (curve) traces.push({ type: "scatter", mode: "lines", name: "measured", x: curve.sizes, y: curve.ns, text: curve.texts,
      hovertemplate: "measured: %{text}<extra></extra>", line: { color: css("--color-1"), width: 2 } });
    return { traces, named: Boolean(curve), xaxis: axis("message size", x), yaxis: upward(axis("time, log scale", y)) };
  }

  function draw(element) {
    drawn.add(element);
    const of = plots[Number(element.dataset.plot)];
    const { traces, named, xaxis, yaxis } = forms[of.kind](of);
    return Plotly.react(element, traces, {
      paper_bgcolor: css("--card"), plot_bgcolor: css("--card"), showlegend: Boolean(named), legend: { x: 0.02, y: 0.98, bgcolor: "rgba(0,0,0,0)" },
      font: { family: getComputedStyle(document.body).fontFamily, size: 13, color: css("--text") }, margin: { l: 90, r: 30, t: 14, b: 46 },
      hoverlabel: { bgcolor: css("--back"), bordercolor: css("--line"), font: { color: css("--text") } },
      xaxis: thinned(xaxis, element.clientWidth), yaxis,
    }, { displayModeBar: false, responsive: true });
  }

  const near = new IntersectionObserver((entries) => entries.filter((one) => one.isIntersecting).forEach((one) => {
    near.unobserve(one.target);
    draw(one.target);
  }), { rootMargin: "600px" });
  const all = [...document.querySelectorAll(".plot")];
  all.forEach((element) => near.observe(element));
  addEventListener("beforeprint", () => all.filter((element) => !drawn.has(element)).forEach(draw));
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawn.forEach(draw));
})();
