// The data of a trace's timeline, unpacked: columns of events by row and time, with sums that tell how busy a stretch of a row is
// without looking at its events.
"use strict";
const TimelineData = (() => {
  const TYPES = { uint8: Uint8Array, uint16: Uint16Array, uint32: Uint32Array, int32: Int32Array, float64: Float64Array };

  async function inflate(text) {
    const packed = Uint8Array.from(atob(text), (c) => c.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  }

  // The bytes of one significance lie together; an array wants each value's together.
  function unshuffled(bytes, offset, type, count) {
    const size = TYPES[type].BYTES_PER_ELEMENT;
    const out = new Uint8Array(size * count);
    for (let byte = 0; byte < size; byte++)
      for (let i = 0, from = offset + byte * count, to = byte; i < count; i++, to += size) out[to] = bytes[from + i];
    return new TYPES[type](out.buffer);
  }

  const joined = (low, high) => Float64Array.from(low, (value, i) => value + high[i] * 4294967296);

  async function read(head, text) {
    const bytes = await inflate(text);
    const column = {};
    let offset = 0;
    for (const [name, type, count] of head.columns) {
      column[name] = unshuffled(bytes, offset, type, count);
      offset += count * TYPES[type].BYTES_PER_ELEMENT;
    }
    const data = { ...head, ...column, begin: joined(column.begin_low, column.begin_high),
      duration: joined(column.duration_low, column.duration_high), bytes: joined(column.bytes_low, column.bytes_high) };
    data.count = data.begin.length;
    data.rows = head.rows.map(([lane, place, first], i) =>
      ({ lane, place, first, last: i + 1 < head.rows.length ? head.rows[i + 1][2] : data.count }));
    sum(data);
    return data;
  }

  function sum(data) {
    data.row = new Uint16Array(data.count);
    data.busy = new Float64Array(data.count + 1);
    data.rows.forEach((row, number) => {
      let time = 0;
      for (let i = row.first; i < row.last; i++) {
        time = data.begin[i] += i > row.first ? time : 0;
        data.row[i] = number;
      }
    });
    for (let i = 0; i < data.count; i++) data.busy[i + 1] = data.busy[i] + data.duration[i];
    data.classOf = (i) => data.of_kind[data.kind[i]];
    const most = data.classes.length;
    data.inClass = Array.from({ length: most }, () => new Uint32Array(data.count + 1));
    for (let of = 0; of < most; of++) {
      const counts = data.inClass[of];
      for (let i = 0; i < data.count; i++) counts[i + 1] = counts[i] + (data.classOf(i) === of ? 1 : 0);
    }
  }

  // The first event of a row that begins at a time or later.
  function firstFrom(data, row, time, from = row.first) {
    let low = from, high = row.last;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (data.begin[middle] < time) low = middle + 1; else high = middle;
    }
    return low;
  }

  function mostOf(data, from, to) {
    let best = 0, most = -1;
    for (let of = 0; of < data.inClass.length; of++) {
      const count = data.inClass[of][to] - data.inClass[of][from];
      if (count > most) { most = count; best = of; }
    }
    return best;
  }

  const UNITS = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];
  function timeText(ns, resolution = 0) {
    const [unit, name] = UNITS.find(([least]) => Math.abs(ns) >= least) || [1, "ns"];
    const digits = resolution ? Math.max(0, Math.ceil(Math.log10(unit / resolution))) : Math.abs(ns / unit) < 100 && unit > 1 ? 2 : 0;
    return `${(ns / unit).toFixed(Math.min(9, digits))} ${name}`;
  }
  function bytesText(bytes) {
    const power = Math.min(5, Math.floor(Math.log2(Math.max(1, bytes)) / 10));
    return power ? `${Number((bytes / 1024 ** power).toPrecision(4))} ${["", "Ki", "Mi", "Gi", "Ti", "Pi"][power]}B` : `${bytes} B`;
  }

  return { read, firstFrom, mostOf, timeText, bytesText };
})();
