// Draws the graphs of a job: lines with Plotly, a strip for each core on a canvas, the steps as SVG.
"use strict";
// This file is loaded before Plotly, so that the data is requested while the browser still reads Plotly.
let asked = fetch(document.getElementById("graphs").dataset.series);
document.addEventListener("DOMContentLoaded", () => {
  const place = document.getElementById("graphs");
  const titles = JSON.parse(place.dataset.titles);
  const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  const COLORS = matchMedia("(prefers-color-scheme: dark)").matches
    ? ["#4aa8e8", "#f0863a", "#35c796", "#d98ac4", "#f0bb61", "#9bd3ff", "#a98be0", "#c9c94a"]
    : ["#0072b2", "#d55e00", "#009e73", "#b3589a", "#c98500", "#3d9fd8", "#7a5cc0", "#8a8a00"];
  const russian = place.dataset.language === "ru";
  const SCALED = { // factor between units, and their names: powers of 2 for memory, as in the page's tables, powers of 10 for rates
    bytes: [1024, russian ? ["Б", "КиБ", "МиБ", "ГиБ", "ТиБ"] : ["B", "KiB", "MiB", "GiB", "TiB"]],
    bytes_s: [1000, russian ? ["Б/с", "кБ/с", "МБ/с", "ГБ/с", "ТБ/с"] : ["B/s", "kB/s", "MB/s", "GB/s", "TB/s"]],
  };
  const UNITS = {percent: " %", watts: russian ? " Вт" : " W", cores: "", per_second: russian ? "/с" : "/s"};
  // All times are UTC, as in the page's tables. Plotly converts numbers and Dates to the browser's time zone, but not texts.
  const moment = (ms) => `${new Date(ms).toLocaleString(place.dataset.language, {timeZone: "UTC"})} UTC`;
  // Plotly's names of months are English, so Russian axes have numbers, such as 28.11.
  const DATES = russian ? {
    hoverformat: "%d.%m.%Y %H:%M:%S",
    tickformatstops: [
      {dtickrange: [null, 60000], value: "%H:%M:%S\n%d.%m"}, {dtickrange: [60000, 86400000], value: "%H:%M\n%d.%m"},
      {dtickrange: [86400000, null], value: "%d.%m.%Y"},
    ],
  } : {};
  let known = "", opened = false;

  const figure = (title, whole, into = place) => {
    const made = document.createElement("figure");
    if (whole) made.className = "whole";
    const caption = document.createElement("figcaption");
    caption.textContent = title;
    made.append(caption);
    into.append(made);
    return made;
  };

  // The divisor of a plot's figures, the unit of the result, and the axis. Bytes are never divided into smaller units.
  const scale = (plot) => {
    const top = plot.lines.reduce((high, line) => line.y.reduce((most, each) => Math.max(most, each), high), 0);
    if (plot.unit === "percent") return {by: 1, suffix: UNITS.percent, range: [0, 102]};
    if (!(plot.unit in SCALED)) return {by: 1, suffix: UNITS[plot.unit]};
    const [step, names] = SCALED[plot.unit];
    let by = 1, at = 0;
    while (top / by >= step && at < names.length - 1) { by *= step; at += 1; }
    return {by, suffix: ` ${names[at]}`, ...(top < 10 ? {range: [0, 10]} : {})};
  };

  // Plotly draws numbers and Dates in the browser's zone, texts as they are.
  const utc = (ms) => new Date(ms).toISOString().slice(0, -1).replace("T", " ");
  const layout = ({suffix, range}, narrow, span) => ({
    margin: {l: 68, r: 20, t: 8, b: 42}, paper_bgcolor: "rgba(0,0,0,0)", plot_bgcolor: "rgba(0,0,0,0)",
    font: {color: style("--soft"), size: 12}, hovermode: "x unified", hoverlabel: {bgcolor: style("--card"), font: {color: style("--text")}},
    // "allow": else Plotly has the browser lay out the page again for each label, a fifth of all drawing.
    xaxis: {type: "date", ticklabeloverflow: "allow", tickangle: 0, nticks: narrow ? 3 : 6, ...DATES, gridcolor: style("--line"), linecolor: style("--line"), ...(span ? {range: span.map((time) => utc(time * 1000))} : {})},
    yaxis: {gridcolor: style("--line"), zerolinecolor: style("--line"), rangemode: "tozero", ticksuffix: suffix, hoverformat: ",.2~f", ...(range ? {range} : {})},
    showlegend: false, autosize: true, separators: russian ? ",\u00a0" : ".,",
  });

  const lines = (plot, span, into = place) => {
    const box = document.createElement("div");
    box.className = "plot";
    const holder = figure(titles[plot.set], plot.set === "use", into);
    const all = plot.lines.length + plot.left_out;
    if (plot.left_out) note(holder, place.dataset.leftOut.replace("{shown}", plot.lines.length).replace("{all}", all));
    if (all > 1 && all <= COLORS.length) holder.append(key(plot.lines));
    holder.append(box);
    return () => draw(box, plot, span);
  };

  const note = (holder, text) => {
    const said = document.createElement("span");
    said.className = "small";
    said.textContent = ` ${text}`;
    holder.querySelector("figcaption").append(said);
  };

  // The legend: which colour is which device.
  const key = (several) => {
    const made = document.createElement("div");
    made.className = "key";
    several.forEach((line, i) => {
      const each = document.createElement("span");
      each.style.setProperty("--state", COLORS[i]);
      each.textContent = short(line.name);
      made.append(each);
    });
    return made;
  };
  const short = (name) => name.replace(/((?:GPU|MIG)-[0-9a-f]{8})-[0-9a-f-]+/, "$1"); // enough of a UUID to recognise it

  const draw = (box, plot, span) => {
    const scaled = scale(plot);
    const data = plot.lines.map((line, i) => ({
      type: "scatter", mode: line.x.length === 1 ? "markers" : "lines", name: short(line.name), x: line.x.map(utc),
      y: line.y.map((each) => each === null ? null : each / scaled.by),
      line: {width: 1.5, color: COLORS[i % COLORS.length], dash: i < COLORS.length ? "solid" : "dot"}, connectgaps: false,
    }));
    Plotly.newPlot(box, data, layout(scaled, box.clientWidth < 420, span), {responsive: true, displayModeBar: false});
  };

  const strips = (cores, into = place) => {
    const holder = figure(place.dataset.cores, true, into);
    const ramp = document.createElement("span");
    ramp.className = "small";
    ramp.innerHTML = ' 0 %<span class="ramp"></span>100 %';
    holder.querySelector("figcaption").append(ramp);
    const box = document.createElement("div");
    box.className = "strips";
    const canvas = document.createElement("canvas");
    const told = document.createElement("output");
    const high = Math.max(3, Math.min(14, Math.floor(320 / cores.rows.length)));
    const columns = cores.rows[0].length;
    canvas.width = columns;
    canvas.height = cores.rows.length * high;
    canvas.style.height = `${canvas.height}px`;
    canvas.setAttribute("role", "img");
    canvas.setAttribute("aria-label", place.dataset.cores);
    box.append(canvas, told);
    holder.append(box);
    const draw = canvas.getContext("2d");
    const full = style("--c-busy"), none = style("--none-back");
    for (let value = 0; value <= 100; value++) {
      draw.globalAlpha = 1; draw.fillStyle = none; draw.fillRect(value, 0, 1, 1);
      draw.globalAlpha = value / 100; draw.fillStyle = full; draw.fillRect(value, 0, 1, 1);
    }
    const colors = new Uint32Array(draw.getImageData(0, 0, 101, 1).data.buffer);
    const image = draw.createImageData(columns, canvas.height), pixels = new Uint32Array(image.data.buffer);
    cores.rows.forEach((row, y) => row.forEach((value, x) => {
      if (value < 0) return;
      for (let line = y * high; line < (y + 1) * high - 1; line++) pixels[line * columns + x] = colors[value];
    }));
    draw.putImageData(image, 0, 0);
    canvas.addEventListener("pointermove", (event) => {
      const area = canvas.getBoundingClientRect();
      const x = Math.min(columns - 1, Math.floor((event.clientX - area.left) / area.width * columns));
      const y = Math.min(cores.rows.length - 1, Math.floor((event.clientY - area.top) / area.height * cores.rows.length));
      const at = (cores.start + (cores.end - cores.start) * (x + 0.5) / columns) * 1000;
      const value = cores.rows[y][x];
      told.textContent = `${cores.labels[y]} · ${moment(at)} · ${value < 0 ? "–" : `${value} %`}`;
    });
  };

  const steps = (several) => {
    const names = [...new Set(several.map((each) => each.step))].slice(0, 200);
    const start = Math.min(...several.map((each) => each.start)), end = Math.max(...several.map((each) => each.end), start + 1);
    const NS = "http://www.w3.org/2000/svg", svg = document.createElementNS(NS, "svg");
    svg.setAttribute("class", "steps");
    svg.setAttribute("height", String(names.length * 22 + 4));
    const put = (kind, settings, text) => {
      const made = document.createElementNS(NS, kind);
      for (const [name, value] of Object.entries(settings)) made.setAttribute(name, value);
      if (text) made.textContent = text;
      svg.append(made);
      return made;
    };
    names.forEach((name, i) => {
      const mine = several.filter((each) => each.step === name);
      const from = Math.min(...mine.map((each) => each.start)), to = Math.max(...mine.map((each) => each.end));
      const share = (time) => 12 + (time - start) / (end - start) * 87;
      put("text", {x: 0, y: i * 22 + 16}, name);
      const bar = put("rect", {x: `${share(from)}%`, y: i * 22 + 4, width: `${Math.max(0.2, share(to) - share(from))}%`, height: 15, rx: 3});
      const hint = document.createElementNS(NS, "title");
      hint.textContent = `${name}: ${moment(from * 1000)} – ${moment(to * 1000)}`;
      bar.append(hint);
    });
    figure(place.dataset.timeline, true).append(svg);
  };

  // Graphs in which nothing changes, as one sentence; their pictures are drawn when somebody wants them.
  const quiet = (plots, cores, span) => {
    const value = (plot) => {
      const {by, suffix} = scale(plot);
      const figure = (plot.flat / by).toLocaleString(place.dataset.language, {maximumSignificantDigits: 3});
      return `${titles[plot.set]} ${figure}${suffix}`;
    };
    const sentence = plots.map(value);
    if (cores) sentence.push(`${place.dataset.cores} ${cores.flat} %`);
    paragraph("whole quiet", `${place.dataset.stayed} ${sentence.join(", ")}.`);
    const folded = document.createElement("details"), summary = document.createElement("summary");
    const inside = document.createElement("div");
    folded.className = "whole";
    inside.className = "graphs";
    summary.textContent = place.dataset.showStayed;
    folded.append(summary, inside);
    folded.addEventListener("toggle", () => {
      opened = folded.open;
      if (!opened || inside.childElementCount) return;
      const later = plots.map((plot) => lines(plot, span, inside));
      if (cores) strips(cores, inside);
      later.forEach((each) => each());
    });
    place.append(folded);
    folded.open = opened;
  };

  const paragraph = (name, text) => {
    const told = document.createElement("p");
    told.className = name;
    told.textContent = text;
    place.append(told);
  };

  const say = (text) => {
    place.replaceChildren();
    paragraph("note", text);
    place.setAttribute("aria-busy", "false");
  };

  const show = async () => {
    const first = asked;
    asked = null;
    const answer = await (first || fetch(place.dataset.series));
    if (!answer.ok) {
      if (!known) say(`${place.dataset.failed}: ${(await answer.json()).detail}`); // otherwise the old drawing stays
      return;
    }
    const text = await answer.text();
    if (text === known) return;
    known = text;
    const data = JSON.parse(text);
    place.querySelectorAll(".plot").forEach((each) => Plotly.purge(each));
    place.replaceChildren();
    if (!data.plots.length && !data.cores) say(place.dataset.none);
    if (data.unreadable.length) paragraph("whole alert", `${place.dataset.unreadable}: ${data.unreadable.join(", ")}`);
    const moving = data.plots.filter((plot) => plot.flat === null);
    const whole = data.efficiency;
    if (whole) moving.unshift({...whole, lines: whole.lines.map((line) => ({...line, name: titles[line.name]}))});
    const later = moving.map((plot) => lines(plot, data.span)); // all places first: they share the width
    const stayed = data.plots.filter((plot) => plot.flat !== null);
    const still = data.cores && data.cores.flat !== null;
    if (stayed.length || still) quiet(stayed, still ? data.cores : null, data.span);
    if (data.cores && !still) strips(data.cores);
    if (data.steps.length) steps(data.steps);
    later.forEach((each) => each());
    place.setAttribute("aria-busy", "false");
  };
  show();
  if (place.dataset.running) document.addEventListener("peerway-live", show);
});
