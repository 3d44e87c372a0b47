// The timeline of a trace: zoom and pan by mouse and keyboard, search, the fields of an event, and links of findings into it.
"use strict";
(async () => {
  const canvas = document.getElementById("timeline-canvas");
  if (!canvas) return;
  const note = document.getElementById("timeline-note");
  if (!("DecompressionStream" in window)) {
    note.textContent = "This browser is too old to draw the timeline (it lacks DecompressionStream); the tables have the numbers.";
    return;
  }
  const { timeText, bytesText } = TimelineData;
  const { Drawing, LEFT, COLORS } = TimelineDraw;
  const data = await TimelineData.read(JSON.parse(document.getElementById("timeline-head").textContent),
    document.getElementById("timeline-data").textContent);
  document.getElementById("timeline-data").remove();
  const drawing = new Drawing(canvas, data);
  const whole = () => ({ begin: 0, end: data.span * 1.002, scroll: 0 });
  let view = whole();
  const state = { selected: -1, found: null, at: -1, arrows: true, path: true, mark: null };
  const fields = document.getElementById("timeline-fields"), search = document.getElementById("timeline-search");
  const count = document.getElementById("timeline-count");

  let waiting = false;
  function redraw() {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      const { drawn, arrows } = drawing.draw(view, state);
      Object.assign(canvas.dataset, { begin: view.begin, end: view.end, drawn, arrows, selected: state.selected });
    });
  }

  function show(begin, end, scroll = view.scroll) {
    const length = Math.min(data.span * 1.002, Math.max(20, end - begin));
    const first = Math.max(Math.min(0, data.span - length), Math.min(begin, data.span * 1.002 - length));
    const lowest = Math.max(0, drawing.places.total + 40 - drawing.height);
    view = { begin: first, end: first + length, scroll: Math.max(0, Math.min(lowest, scroll)) };
    redraw();
  }

  function zoom(factor, around = (view.begin + view.end) / 2) {
    show(around - (around - view.begin) * factor, around + (view.end - around) * factor);
  }
  const pan = (share) => show(view.begin + share * (view.end - view.begin), view.end + share * (view.end - view.begin));

  function select(i) {
    state.selected = i;
    fields.replaceChildren();
    if (i < 0) { redraw(); return; }
    const lane = data.lanes[data.rows[data.row[i]].lane];
    const kind = data.kinds[data.kind[i]];
    const rows = [["what", data.names[data.name[i]] || kind], ["kind", kind],
      ["rank", lane.rank >= 0 ? `${lane.rank}, ${lane.label}` : lane.label],
      ["begins at", timeText(data.begin[i], 1)], ["takes", timeText(data.duration[i])]];
    if (kind === "signal") rows.push(["waits for value", data.bytes[i].toLocaleString("en")]);
    else if (data.bytes[i]) rows.push(["bytes", bytesText(data.bytes[i])]);
    if (data.peer[i] >= 0) rows.push(["peer", `rank ${data.peer[i]}`]);
    if (data.tag[i] >= 0) rows.push([["put", "notify", "signal"].includes(kind) ? "signal" : "tag", data.tag[i]]);
    if (data.names[data.where[i]]) rows.push(["path or communicator", data.names[data.where[i]]]);
    if (data.names[data.site[i]]) rows.push(["called", data.names[data.site[i]]]);
    for (const [other, text] of others(i)) {
      const of = data.lanes[data.rows[data.row[other]].lane];
      rows.push([text, `${data.names[data.name[other]]} of rank ${of.rank} at ${timeText(data.begin[other], 1)}`, other]);
    }
    for (const [name, value, other] of rows) {
      const term = document.createElement("dt"), text = document.createElement("dd");
      term.textContent = name;
      text.textContent = value;
      if (other !== undefined) {
        const button = document.createElement("button");
        button.textContent = "show";
        button.addEventListener("click", () => { reveal(other); select(other); });
        text.append(" ", button);
      }
      fields.append(term, text);
    }
    redraw();
  }

  function others(i) {
    const found = [];
    for (let n = 0; n < data.arrow_from.length && found.length < 20; n++) {
      if (data.arrow_to[n] < 0) continue;
      if (data.arrow_from[n] === i) found.push([data.arrow_to[n], "goes to"]);
      if (data.arrow_to[n] === i) found.push([data.arrow_from[n], "comes from"]);
    }
    return found;
  }

  // Bring an event to the middle, so large that it can be seen.
  function reveal(i) {
    const length = Math.max(data.duration[i] * 8, Math.min(view.end - view.begin, data.duration[i] * 200 + 2000));
    const middle = data.begin[i] + data.duration[i] / 2;
    show(middle - length / 2, middle + length / 2, (drawing.places.top.get(data.row[i]) ?? view.scroll) - drawing.height / 2);
  }

  // Words that a name, a path or a place has, and conditions: rank:3, peer:2, tag:7, bytes>4096, takes>100us.
  function parse(text) {
    const scale = { "": 1, ns: 1, us: 1e3, "µs": 1e3, ms: 1e6, s: 1e9, k: 1024, kib: 1024, m: 1 << 20, mib: 1 << 20, g: 2 ** 30, gib: 2 ** 30 };
    const tests = text.trim().toLowerCase().split(/\s+/).filter(Boolean).map((word) => {
      const own = /^(rank|peer|tag):(\d+)$/.exec(word);
      if (own && own[1] === "rank") return (i) => data.lanes[data.rows[data.row[i]].lane].rank === Number(own[2]);
      if (own) return (i) => data[own[1]][i] === Number(own[2]);
      const more = /^(bytes|takes)([<>])([\d.]+)([a-zµ]*)$/.exec(word);
      if (more && scale[more[4]]) {
        const limit = Number(more[3]) * scale[more[4]], values = more[1] === "bytes" ? data.bytes : data.duration;
        return more[2] === ">" ? (i) => values[i] > limit : (i) => values[i] < limit;
      }
      const good = data.names.map((name) => name.toLowerCase().includes(word));
      return (i) => good[data.name[i]] || good[data.where[i]] || good[data.site[i]];
    });
    return (i) => tests.every((test) => test(i));
  }

  function find() {
    state.at = -1;
    state.found = null;
    count.textContent = "";
    if (search.value.trim()) {
      const test = parse(search.value), found = [];
      for (let i = 0; i < data.count; i++) if (test(i)) found.push(i);
      state.found = found;
      state.inTime = [...found].sort((a, b) => data.begin[a] - data.begin[b]);
      count.textContent = found.length === 1 ? "1 event" : `${found.length.toLocaleString("en")} events`;
    }
    redraw();
  }

  function next(step) {
    if (!state.inTime || !state.found || !state.found.length) return;
    state.at = (state.at + step + state.found.length) % state.found.length;
    count.textContent = `${(state.at + 1).toLocaleString("en")} of ${state.found.length.toLocaleString("en")}`;
    reveal(state.inTime[state.at]);
    select(state.inTime[state.at]);
  }

  // #t=BEGIN,END&rank=N, in ns: where a finding points.
  function follow() {
    const at = new URLSearchParams(location.hash.slice(1));
    if (!at.has("t")) return;
    const [begin, end = begin] = at.get("t").split(",").map(Number);
    if (!Number.isFinite(begin) || !Number.isFinite(end)) return;
    const room = Math.max(20, end - begin) / 3;
    state.mark = { begin: begin + room / 2, end: end - room / 2 };
    const lane = drawing.places.lanes.find((one) => one.rank === Number(at.get("rank") ?? -1));
    show(begin - room, end + room, lane ? lane.top - drawing.height / 3 : view.scroll);
    document.getElementById("timeline").scrollIntoView();
  }

  let drag = null;
  canvas.addEventListener("pointerdown", (event) => {
    canvas.setPointerCapture(event.pointerId);
    drag = { x: event.offsetX, y: event.offsetY, view, moved: false };
  });
  canvas.addEventListener("pointermove", (event) => {
    if (!drag) {
      const i = event.offsetX > LEFT ? drawing.at(event.offsetX, event.offsetY) : -1;
      canvas.title = i < 0 ? "" : `${data.names[data.name[i]] || data.kinds[data.kind[i]]}: ${timeText(data.duration[i])}`;
      return;
    }
    drag.moved ||= Math.abs(event.offsetX - drag.x) + Math.abs(event.offsetY - drag.y) > 4;
    if (!drag.moved) return;
    const shift = (drag.x - event.offsetX) / (drawing.width - LEFT) * (drag.view.end - drag.view.begin);
    show(drag.view.begin + shift, drag.view.end + shift, drag.view.scroll + drag.y - event.offsetY);
  });
  canvas.addEventListener("pointerup", (event) => {
    if (drag && !drag.moved) select(drawing.at(event.offsetX, event.offsetY));
    drag = null;
  });
  canvas.addEventListener("pointercancel", () => { drag = null; });
  canvas.addEventListener("dblclick", (event) => {
    const i = drawing.at(event.offsetX, event.offsetY);
    if (i >= 0) reveal(i); else zoom(0.4, drawing.time(event.offsetX));
  });
  // The wheel belongs to the page until the timeline is chosen by a press or a key.
  canvas.addEventListener("wheel", (event) => {
    if (document.activeElement !== canvas && !event.ctrlKey) return;
    event.preventDefault();
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) pan((event.deltaX || event.deltaY) / 800);
    else if (event.altKey) show(view.begin, view.end, view.scroll + event.deltaY);
    else zoom(1.0015 ** event.deltaY, drawing.time(event.offsetX));
  }, { passive: false });
  const KEYS = {
    "+": () => zoom(0.6), "=": () => zoom(0.6), "-": () => zoom(1 / 0.6), w: () => zoom(0.6), s: () => zoom(1 / 0.6),
    ArrowLeft: () => pan(-0.15), ArrowRight: () => pan(0.15), a: () => pan(-0.15), d: () => pan(0.15),
    ArrowUp: () => show(view.begin, view.end, view.scroll - 60), ArrowDown: () => show(view.begin, view.end, view.scroll + 60),
    Home: () => { view = whole(); redraw(); }, "0": () => { view = whole(); redraw(); },
    f: () => { if (state.selected >= 0) reveal(state.selected); },
    n: () => next(1), N: () => next(-1), Escape: () => select(-1), "/": () => search.focus(),
  };
  canvas.addEventListener("keydown", (event) => {
    const act = KEYS[event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    act();
  });
  search.addEventListener("input", find);
  search.addEventListener("keydown", (event) => {
    if (event.key === "Enter") { event.preventDefault(); next(event.shiftKey ? -1 : 1); }
    if (event.key === "Escape") canvas.focus();
  });
  for (const [id, act] of Object.entries({ in: () => zoom(0.6), out: () => zoom(1 / 0.6), all: KEYS.Home, next: () => next(1), previous: () => next(-1) }))
    document.getElementById(`timeline-${id}`).addEventListener("click", act);
  for (const name of ["arrows", "path"])
    document.getElementById(`timeline-${name}`).addEventListener("change", (event) => { state[name] = event.target.checked; redraw(); });
  const rows = document.getElementById("timeline-rows");
  rows.checked = drawing.everything;
  rows.addEventListener("change", () => { drawing.everything = rows.checked; drawing.resize(); show(view.begin, view.end); });
  document.querySelectorAll("#timeline-legend i").forEach((swatch, i) => { swatch.style.background = `var(${COLORS[i]})`; });
  new ResizeObserver(() => { drawing.resize(); redraw(); }).observe(canvas);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { drawing.resize(); redraw(); });
  addEventListener("hashchange", follow);
  redraw();
  follow();
  canvas.dataset.ready = "true";
})();
