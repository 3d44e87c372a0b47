// Draws a trace's timeline on a canvas: a lane for each thread and stream, with a row for each depth of calls. Where a pixel has many
// events, it shows how busy it was, in the colour of most; arrows of many messages become one with their count, for each receiver.
"use strict";
const TimelineDraw = (() => {
  const { firstFrom, mostOf, timeText } = TimelineData;
  const LEFT = 132, TOP = 26, MOST_ARROWS = 2500;
  const COLORS = ["--line", "--color-0", "--color-5", "--color-1", "--color-3", "--color-4", "--color-2", "--soft"];
  const css = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  // The place of every row, in pixels from the top of all lanes. What goes on beside the calls has rows of six tenths of their height. Where
  // all do not fit, it is left out, and its arrows tell of it.
  function layout(data, height, everything) {
    const lanes = data.lanes.map((lane, number) => ({ ...lane, number, rows: [] }));
    data.rows.forEach((row, number) => {
      if (everything || row.place < data.deepest) lanes[row.lane].rows.push(number);
    });
    const shown = lanes.filter((lane) => lane.rows.length);
    const share = (row) => data.rows[row].place < data.deepest ? 1 : 0.6;
    const rows = shown.reduce((sum, lane) => lane.rows.reduce((more, row) => more + share(row), sum), 0);
    const gap = shown.length > 24 ? 3 : 6;
    const fitting = Math.floor((height - TOP - 6 - shown.length * gap) / Math.max(1, rows));
    const high = Math.max(everything ? 9 : 4, Math.min(20, fitting));
    const top = new Map(), laneTop = new Map(), heights = new Map();
    let at = 0;
    for (const lane of shown) {
      lane.top = at;
      laneTop.set(lane.number, lane);
      for (const row of lane.rows) {
        top.set(row, at);
        heights.set(row, Math.round(high * share(row)));
        at += heights.get(row);
      }
      lane.bottom = at;
      at += gap;
    }
    return { lanes: shown, laneTop, top, heights, high, total: at, fits: fitting >= high };
  }

  class Drawing {
    constructor(canvas, data) {
      this.canvas = canvas;
      this.data = data;
      this.context = canvas.getContext("2d");
      this.most = canvas.clientHeight || 420;  // of the height: what the rows do not need is not taken
      this.everything = layout(data, this.most, true).fits;
      this.resize();
    }

    resize() {
      const scale = window.devicePixelRatio || 1;
      this.width = this.canvas.clientWidth;
      this.places = layout(this.data, this.most, this.everything);
      const height = Math.min(this.most, TOP + this.places.total + 6);
      this.height = height;
      this.canvas.style.height = `${height}px`;
      this.canvas.width = this.width * scale;
      this.canvas.height = height * scale;
      this.context.setTransform(scale, 0, 0, scale, 0, 0);
      this.colors = COLORS.map(css);
      this.text = css("--text"); this.soft = css("--soft"); this.back = css("--card"); this.line = css("--grid"); this.bad = css("--bad");
    }

    x(time) { return LEFT + (time - this.view.begin) / (this.view.end - this.view.begin) * (this.width - LEFT); }
    time(x) { return this.view.begin + (x - LEFT) / (this.width - LEFT) * (this.view.end - this.view.begin); }
    // Of a row that is left out the lane's place.
    y(row) {
      const top = this.places.top.get(row) ?? this.places.laneTop.get(this.data.rows[row].lane)?.top ?? 0;
      return TOP + top - this.view.scroll;
    }

    high(row) { return this.places.heights.get(row) ?? this.places.high; }

    draw(view, state) {
      this.view = view;
      const { context } = this;
      context.font = "11px system-ui, sans-serif";
      context.fillStyle = this.back;
      context.fillRect(0, 0, this.width, this.height);
      this.grid();
      context.save();
      context.beginPath();
      context.rect(LEFT, TOP, this.width - LEFT, this.height - TOP);
      context.clip();
      this.outside();
      let drawn = 0;
      this.data.rows.forEach((row, number) => { if (this.places.top.has(number)) drawn += this.row(row, number, state); });
      if (state.path) this.path();
      const arrows = state.arrows ? this.arrows() : 0;
      if (state.mark) this.mark(state.mark);
      if (state.selected >= 0) this.outline(state.selected, this.text);
      context.restore();
      this.labels();
      return { drawn, arrows };
    }

    grid() {
      const { context, view } = this;
      const least = (view.end - view.begin) / Math.max(2, (this.width - LEFT) / 110);
      const power = 10 ** Math.floor(Math.log10(least));
      const step = Math.max(1, [1, 2, 5, 10].map((n) => n * power).find((n) => n >= least));
      context.textAlign = "center";
      for (let at = Math.ceil(view.begin / step) * step; at <= view.end; at += step) {
        const x = this.x(at);
        if (x < LEFT + 24 || x > this.width - 24) continue;
        context.fillStyle = this.line;
        context.fillRect(x, TOP, 1, this.height - TOP);
        context.fillStyle = this.soft;
        context.fillText(timeText(at, step), x, 16);
      }
    }

    // Of what is not on the page, how busy each thread was.
    outside() {
      const { context, data, view } = this;
      if (data.whole) return;
      const bin = data.span / data.bins;
      context.fillStyle = this.soft;
      for (const lane of this.places.lanes) {
        const top = TOP + lane.top - view.scroll, high = lane.bottom - lane.top;
        for (let i = Math.max(0, Math.floor(view.begin / bin)); i < data.bins && i * bin < view.end; i++) {
          if (data.windows.some(([begin, end]) => begin <= i * bin && (i + 1) * bin <= end + bin)) continue;
          context.globalAlpha = data.summary[lane.number * data.bins + i] / 255 * 0.5;
          context.fillRect(this.x(i * bin), top, Math.max(1, this.x((i + 1) * bin) - this.x(i * bin)), high);
        }
      }
      context.globalAlpha = 1;
    }

    row(row, number, state) {
      const { data, view } = this;
      const y = this.y(number), high = this.high(number) - 1;
      if (y > this.height || y + high < TOP) return 0;
      const from = Math.max(row.first, firstFrom(data, row, view.begin) - 1);
      const to = firstFrom(data, row, view.end, from);
      if (to <= from) return 0;
      if (to - from > 3 * this.width) this.summary(row, from, to, y, high);
      else for (let i = from; i < to; i++) this.event(i, y, high);
      if (state.found) this.highlight(state, row, from, to, y, high);
      return to - from;
    }

    event(i, y, high) {
      const { context, data } = this;
      const x = Math.max(LEFT - 2, this.x(data.begin[i]));
      const right = Math.min(this.width + 2, this.x(data.begin[i] + data.duration[i]));
      if (right < LEFT) return;
      const wide = Math.max(1, right - x), of = data.classOf(i);
      context.fillStyle = this.colors[of];
      context.globalAlpha = of === 7 ? 0.45 : 1;
      context.fillRect(x, y, wide > 3 ? wide - 0.5 : wide, high);
      context.globalAlpha = 1;
      if (wide > 34 && high >= 11) {
        context.fillStyle = of === 0 || of === 7 ? this.text : this.back;
        context.textAlign = "left";
        const text = data.names[data.name[i]] || data.kinds[data.kind[i]];
        context.fillText(text.slice(0, Math.floor((wide - 6) / 5.6)), x + 3, y + high / 2 + 4);
      }
    }

    // One bar for each pixel: the busier, the deeper.
    summary(row, from, to, y, high) {
      const { context, data } = this;
      const pixel = this.time(LEFT + 1) - this.time(LEFT);
      let i = from;
      for (let x = LEFT; x < this.width && i < to; x++) {
        const next = firstFrom(data, row, this.time(x + 1), i);
        if (next === i) continue;
        const share = Math.min(1, (data.busy[next] - data.busy[i]) / pixel);
        context.fillStyle = this.colors[mostOf(data, i, next)];
        context.globalAlpha = 0.25 + 0.75 * share;
        context.fillRect(x, y, 1, high);
        i = next;
      }
      context.globalAlpha = 1;
    }

    highlight(state, row, from, to, y, high) {
      const { context, data } = this;
      context.fillStyle = this.bad;
      let low = 0, top = state.found.length;
      while (low < top) { const middle = (low + top) >> 1; if (state.found[middle] < from) low = middle + 1; else top = middle; }
      let last = -1;
      for (; low < state.found.length && state.found[low] < to; low++) {
        const x = Math.round(this.x(data.begin[state.found[low]]));
        if (x === last) continue;
        context.fillRect(x, y, 2, high);
        last = x;
      }
    }

    path() {
      const { context, data, view } = this;
      context.fillStyle = this.bad;
      for (let i = 0; data.path_begin && i < data.path_begin.length; i++) {
        const lane = this.places.laneTop.get(data.path_lane[i]);
        if (!lane || data.path_end[i] < view.begin || data.path_begin[i] > view.end) continue;
        const x = this.x(data.path_begin[i]);
        context.fillRect(x, TOP + lane.bottom - view.scroll, Math.max(1, this.x(data.path_end[i]) - x), 3);
      }
    }

    // An arrow's ends, as times and heights.
    ends(number) {
      const { data, places } = this;
      const from = data.arrow_from[number], to = data.arrow_to[number];
      const end = data.begin[from] + data.duration[from];
      const begin = data.begin[from], source = data.rows[data.row[from]].lane;
      const middle = (row) => this.y(row) + this.high(row) / 2, y1 = middle(data.row[from]);
      if (to < 0) return { begin, end, source, target: -2 - to, y1, y2: TOP + (places.laneTop.get(-2 - to)?.top ?? 0) + places.high / 2 - this.view.scroll };
      return { begin, end: data.begin[to] + data.duration[to], source, target: data.rows[data.row[to]].lane, y1, y2: middle(data.row[to]) };
    }

    // Messages of one rank to another that begin close together become one arrow; none of the receivers is left out.
    arrows() {
      const { context, data, view } = this;
      const inside = [];
      for (let i = 0; i < data.arrow_from.length; i++) {
        const from = data.arrow_from[i];
        if (data.begin[from] > view.end) break;
        const to = data.arrow_to[i];
        const end = to < 0 ? data.begin[from] + data.duration[from] : data.begin[to] + data.duration[to];
        if (end >= view.begin) inside.push(i);
      }
      let groups;
      for (let wide = inside.length > 400 ? 16 : 0; ; wide = Math.max(16, wide * 2)) {
        groups = new Map();
        const scale = wide ? (this.width - LEFT) / (view.end - view.begin) / wide : 0;
        for (const i of inside) {
          const from = data.arrow_from[i], to = data.arrow_to[i];
          const target = to < 0 ? -2 - to : data.rows[data.row[to]].lane;
          const bucket = Math.floor((data.begin[from] - view.begin) * scale);
          const key = wide ? (bucket * 4096 + data.rows[data.row[from]].lane) * 4096 + target : i;
          const group = groups.get(key);
          if (!group) groups.set(key, { ...this.ends(i), count: 1 });
          else {
            group.count++;
            group.end = Math.max(group.end, to < 0 ? data.begin[from] + data.duration[from] : data.begin[to] + data.duration[to]);
          }
        }
        if (groups.size <= MOST_ARROWS || wide > this.width) break;
      }
      context.strokeStyle = context.fillStyle = this.text;
      const written = new Map();
      for (const { begin, end, y1, y2, count } of groups.values()) {
        const x1 = this.x(begin), x2 = this.x(end);
        context.globalAlpha = groups.size > 600 ? 0.14 : groups.size > 150 ? 0.28 : 0.6;
        context.lineWidth = Math.min(3, 1 + Math.log10(count) * 0.7);
        context.beginPath();
        context.moveTo(x1, y1);
        context.lineTo(x2, y2);
        context.stroke();
        const turn = Math.atan2(y2 - y1, x2 - x1);
        context.beginPath();
        context.moveTo(x2, y2);
        context.lineTo(x2 - 7 * Math.cos(turn - 0.35), y2 - 7 * Math.sin(turn - 0.35));
        context.lineTo(x2 - 7 * Math.cos(turn + 0.35), y2 - 7 * Math.sin(turn + 0.35));
        context.fill();
        context.globalAlpha = 1;
        const text = `×${count.toLocaleString("en")}`, at = (x1 + x2) / 2 + 14, line = Math.round((y1 + y2) / 2);
        if (count > 1 && groups.size < 250 && at > (written.get(line) ?? -Infinity)) {
          context.textAlign = "center";
          context.fillText(text, at, line);
          written.set(line, at + 12 * text.length);
        }
      }
      context.lineWidth = 1;
      return groups.size;
    }

    mark({ begin, end }) {
      const { context } = this;
      context.fillStyle = this.colors[4];
      context.globalAlpha = 0.13;
      context.fillRect(this.x(begin), TOP, Math.max(2, this.x(end) - this.x(begin)), this.height);
      context.globalAlpha = 1;
    }

    outline(i, color) {
      const { context, data } = this;
      const x = this.x(data.begin[i]);
      context.strokeStyle = color;
      context.lineWidth = 2;
      context.strokeRect(x - 1, this.y(data.row[i]) - 1, Math.max(2, this.x(data.begin[i] + data.duration[i]) - x + 2), this.high(data.row[i]) + 1);
      context.lineWidth = 1;
    }

    labels() {
      const { context, view } = this;
      context.fillStyle = this.back;
      context.fillRect(0, TOP, LEFT - 1, this.height);
      context.textAlign = "right";
      let last = null, free = -Infinity;
      for (const lane of this.places.lanes) {
        const y = TOP + lane.top - view.scroll + Math.min(12, this.places.high);
        if (y >= TOP + 3 && y < this.height && y > free) {
          const who = lane.rank >= 0 ? `rank ${lane.rank}` : "no rank";
          context.fillStyle = lane.rank === last ? this.soft : this.text;
          context.fillText(lane.rank === last ? lane.label.slice(0, 22) : `${who}  ${lane.label}`.slice(0, 22), LEFT - 8, y);
          free = y + 9;
        }
        last = lane.rank;
      }
    }

    // The event at a place; -1: none.
    at(x, y) {
      const { data } = this;
      for (const [number, row] of data.rows.entries()) {
        if (!this.places.top.has(number)) continue;
        const top = this.y(number);
        if (y < top || y >= top + this.high(number)) continue;
        const slack = 2 * (this.time(LEFT + 1) - this.time(LEFT)), time = this.time(x);
        let best = -1, distance = slack;
        for (let i = Math.min(row.last - 1, firstFrom(data, row, time + slack)); i >= row.first && best < 0; i--) {
          const away = Math.max(data.begin[i] - time, time - data.begin[i] - data.duration[i], 0);
          if (away <= distance) best = i;
          if (data.begin[i] + data.duration[i] < time - slack) break;
        }
        return best;
      }
      return -1;
    }
  }

  return { Drawing, LEFT, TOP, COLORS };
})();
