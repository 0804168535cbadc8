// Rows in blocks, one after the other, and the evidence against the promise after each of them.
const LARGEST = 12;
const pastOf = (past) => {
  const last = past.first.length - 1, total = past.first[last] + past.rows[last];
  const end = (i) => past.first[i] + past.rows[i], middle = (i) => past.first[i] + past.rows[i] / 2;
  const timed = past.begin[0] !== "";
  const blockOf = (row) => Math.max(0, past.first.findLastIndex((first) => first <= row));
  const say = timed ? (row) => past.begin[blockOf(row)].slice(0, 10) : number;
  const rowsOf = (i) => `rows ${number(past.first[i] + 1)} to ${number(end(i))}${timed ? `, ${past.begin[i]} to ${past.end[i]}` : ""}`;
  const xAxis = (own) => { const x = scale(0, total, own.left + 4, own.right); own.xAxis(0, total, x, say); return x; };
  // The change and the alarm are lines, which the caption names.
  const events = (own, x) => {
    for (const [row, kind] of [[past.since, "began"], [past.alarm, "raised"]]) {
      if (row !== null) draw(own.svg, "line", { class: kind, x1: x(row), x2: x(row), y1: own.top, y2: own.bottom });
    }
  };
  const words = (past.since === null ? "" : ` Dotted line: the change began at about row ${number(past.since)}.`)
    + (past.alarm === null ? "" : ` Solid line: the alarm, at row ${number(past.alarm)}.`);
  return { ...past, last, total, end, middle, timed, say, rowsOf, xAxis, events, words, xName: timed ? "time of the rows" : "rows" };
};
const past = data.history ? pastOf(data.history) : null;
const line = (xs, ys) => ys.map((v, i) => (v === null ? "" : `${i && ys[i - 1] !== null ? "L" : "M"}${xs[i].toFixed(1)} ${v.toFixed(1)}`)).join("");
const titled = (shape, text) => draw(shape, "title", {}, text);
const power = (v) => (Math.abs(v) <= 6 ? number(Number(`1e${Math.round(v)}`)) : `1e${number(Math.round(v))}`);
const drawEvidence = () => {
  const part = find("plot-evidence"), levels = [0, ...past.evidence], every = [...levels, ...past.highest];
  const low = Math.floor(Math.min(...every)), most = Math.max(...every, past.limit), high = Math.min(Math.ceil(most + 0.2), LARGEST);
  find("beyond-evidence").textContent = most > high ? ` Evidence beyond ${power(high)} is drawn at the edge.` : "";
  find("marks-evidence").textContent = past.words;
  const step = Math.max(1, Math.ceil((high - low) / 6)), from = Math.ceil(low / step);
  const marks = Array.from({ length: Math.floor(high / step) - from + 1 }, (_, i) => (from + i) * step);
  const own = plot(part, { ratio: 0.32, least: 230, most: 340 }, marks, power, ["evidence", past.xName]);
  const at = scale(low, high, own.bottom, own.top), y = (v) => at(Math.min(v, high));
  own.yAxis(y);
  const x = past.xAxis(own);
  draw(own.svg, "line", { class: "ideal limit", x1: own.left, x2: own.right, y1: y(past.limit), y2: y(past.limit) });
  past.events(own, x);
  draw(own.svg, "path", { class: "line", d: line([x(0), ...past.first.map((_, i) => x(past.end(i)))], levels.map(y)) });
  past.highest.forEach((v, i) => {
    const mark = draw(own.svg, "circle", { class: v >= past.limit ? "mark beyond" : "mark", cx: x(past.end(i)), cy: y(v), r: 4 });
    titled(mark, `${past.rowsOf(i)}: at most ${power(v)}`);
  });
};
if (past && find("plot-evidence")) {
  let drawnAt = 0;
  new ResizeObserver(([own]) => { if (own.target.clientWidth !== drawnAt) { drawnAt = own.target.clientWidth; drawEvidence(); } }).observe(find("plot-evidence"));
}
