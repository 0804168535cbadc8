// The history of a monitor: coverage, evidence, width, and how far columns are from the training rows.
const last = data.first.length - 1, total = data.first[last] + data.rows[last];
const middle = (i) => data.first[i] + data.rows[i] / 2, end = (i) => data.first[i] + data.rows[i];
const blockOf = (row) => Math.max(0, data.first.findLastIndex((first) => first <= row));
const timed = data.begin[0] !== "";
const say = (row) => (timed ? data.begin[blockOf(row)].slice(0, 10) : number(row));
const xName = timed ? "time of the rows" : "rows";
const shares = (list) => list.map((count, i) => count / data.rows[i]);
const line = (xs, ys) => ys.map((v, i) => (v === null ? "" : `${i && ys[i - 1] !== null ? "L" : "M"}${xs[i].toFixed(1)} ${v.toFixed(1)}`)).join("");
const titled = (shape, text) => draw(shape, "title", {}, text);
const rowsOf = (i) => `rows ${number(data.first[i] + 1)} to ${number(end(i))}${timed ? `, ${data.begin[i]} to ${data.end[i]}` : ""}`;
const xAxisOf = (own) => { const x = scale(0, total, own.left + 4, own.right); own.xAxis(0, total, x, timed ? say : number); return x; };
// The change and the alarm, as lines with their names in the caption below.
const events = (own, x) => {
  for (const [row, kind] of [[data.since, "began"], [data.alarm, "raised"]]) {
    if (row === null) continue;
    draw(own.svg, "line", { class: kind, x1: x(row), x2: x(row), y1: own.top, y2: own.bottom });
  }
};
const eventWords = data.alarm === null ? "" : ` Dotted line: the change began at about row ${number(data.since ?? 0)}. Solid line: the alarm, at row ${number(data.alarm)}.`;
for (const id of ["marks-coverage", "marks-evidence"]) if (find(id)) find(id).textContent = eventWords;

const drawCoverage = () => {
  const part = find("plot-coverage"), share = shares(data.inside), low = shares(data.low), high = shares(data.high);
  const least = Math.max(0, Math.min(...share, ...low) - 0.02);
  const own = plot(part, { ratio: 0.32, least: 230, most: 340 }, ticks(least, 1, 5), percent, ["rows inside", xName]);
  const y = scale(least, 1, own.bottom, own.top);
  own.yAxis(y);
  const x = xAxisOf(own);
  const stairs = (list) => list.flatMap((v, i) => [data.first[i], end(i)].map((row) => `${x(row).toFixed(1)} ${y(v).toFixed(1)}`));
  draw(own.svg, "path", { class: "ribbon", d: `M${[...stairs(high), ...stairs(low).reverse()].join("L")}Z` });
  events(own, x);
  draw(own.svg, "path", { class: "line", d: line(data.first.map((_, i) => x(middle(i))), share.map(y)) });
  share.forEach((v, i) => {
    const px = x(middle(i)), py = y(v);
    const mark = v < low[i] ? draw(own.svg, "path", { class: "cross", d: `M${px - 4} ${py - 4}l8 8m0 -8l-8 8` })
      : draw(own.svg, "circle", { class: "mark", cx: px, cy: py, r: 4 });
    titled(mark, `${rowsOf(i)}: ${percent(v)} inside, ${percent(low[i])} to ${percent(high[i])} expected`);
  });
};

const power = (v) => (Math.abs(v) <= 6 ? number(Number(`1e${Math.round(v)}`)) : `1e${number(Math.round(v))}`);
const LARGEST = 12;
const drawEvidence = () => {
  const part = find("plot-evidence"), levels = [0, ...data.evidence], every = [...levels, ...data.highest];
  const low = Math.floor(Math.min(...every)), most = Math.max(...every, data.limit), high = Math.min(Math.ceil(most + 0.2), LARGEST);
  find("beyond-evidence").textContent = most > high ? ` Evidence beyond ${power(high)} is drawn at the edge.` : "";
  const marks = [...new Set(ticks(low, high, 6).map(Math.round))];
  const own = plot(part, { ratio: 0.32, least: 230, most: 340 }, marks, power, ["evidence", xName]);
  const at = scale(low, high, own.bottom, own.top), y = (v) => at(Math.min(v, high));
  own.yAxis(y);
  const x = xAxisOf(own);
  draw(own.svg, "line", { class: "ideal limit", x1: own.left, x2: own.right, y1: y(data.limit), y2: y(data.limit) });
  events(own, x);
  draw(own.svg, "path", { class: "line", d: line([x(0), ...data.first.map((_, i) => x(end(i)))], levels.map(y)) });
  data.highest.forEach((v, i) => {
    const over = v >= data.limit;
    const mark = draw(own.svg, "circle", { class: over ? "mark over" : "mark", cx: x(end(i)), cy: y(v), r: 4 });
    titled(mark, `${rowsOf(i)}: at most ${power(v)}`);
  });
};

const drawWidths = () => {
  const part = find("plot-widths"), known = data.width.filter((v) => v !== null);
  if (!known.length) return;
  const high = Math.max(...known) * 1.05 || 1;
  const own = plot(part, { ratio: 0.24, least: 200, most: 260 }, ticks(0, high, 4), number, ["mean width", xName]);
  const y = scale(0, high, own.bottom, own.top);
  own.yAxis(y);
  const x = xAxisOf(own), xs = data.first.map((_, i) => x(middle(i)));
  events(own, x);
  draw(own.svg, "path", { class: "line", d: line(xs, data.width.map((v) => (v === null ? null : y(v)))) });
  data.width.forEach((v, i) => v !== null && titled(draw(own.svg, "circle", { class: "mark", cx: xs[i], cy: y(v), r: 4 }), `${rowsOf(i)}: ${number(v)}`));
};

const drawDrift = () => {
  const part = find("plot-drift");
  if (!part || !data.columns.length) return;
  const width = Math.max(280, Math.round(part.clientWidth)), tall = 20, most = Math.floor(width * 0.3);
  const cut = (name) => { let own = name; while (own.length > 3 && widthOf([own]) > most) own = `${own.slice(0, -2)}…`; return own; };
  const names = data.columns.map((own) => cut(own.name)), left = Math.min(most, widthOf(names)) + 10;
  const height = data.columns.length * tall + 26;
  part.replaceChildren();
  const svg = draw(part, "svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": part.dataset.label });
  const x = scale(0, total, left, width - 14);
  data.columns.forEach((column, j) => {
    const name = draw(svg, "text", { x: left - 8, y: j * tall + 14, "text-anchor": "end" }, names[j]);
    titled(name, column.name);
    column.gaps.forEach((gap, i) => {
      const from = x(data.first[i]), box = { x: from, y: j * tall + 1, width: Math.max(1, x(end(i)) - from - 0.5), height: tall - 2 };
      draw(svg, "rect", { ...box, class: "cell" });
      const shade = draw(svg, "rect", { ...box, class: column.moved[i] ? "cell far" : "cell near", "fill-opacity": Math.min(1, 0.08 + gap) });
      titled(shade, `${column.name}, ${rowsOf(i)}: ${percent(gap)}${column.moved[i] ? ", beyond chance" : ""}`);
      if (column.moved[i]) draw(svg, "circle", { class: "cell dotted", cx: from + box.width / 2, cy: j * tall + tall / 2, r: 1.5, "pointer-events": "none" });
    });
  });
  const bottom = data.columns.length * tall + 17;
  draw(svg, "text", { x: left, y: bottom }, timed ? say(0) : "first row");
  draw(svg, "text", { x: width - 14, y: bottom, "text-anchor": "end" }, timed ? data.end[last].slice(0, 10) : `row ${number(total)}`);
};

const drawAll = () => { drawCoverage(); drawEvidence(); drawWidths(); drawDrift(); };
let drawnAt = 0;
new ResizeObserver(() => { if (body.clientWidth !== drawnAt) { drawnAt = body.clientWidth; drawAll(); } }).observe(body);
addEventListener("beforeprint", drawAll);
