// The plots.
const accepts = (i) => !filter || rows.strata[filter.family][i] === filter.place;
const shown = () => Array.from({ length: rows.sampled }, (_, i) => i).filter(accepts);
const inside = (i, at = level) => rows.inside[at][i] === "1";
const known = (...lists) => lists.flatMap((list) => list.slice(0, rows.sampled)).filter((v) => v !== null).sort((a, b) => a - b);
// The axis of the target. It is logarithmic if all values are positive and a few are far larger than the others.
const SKEWED = 8, AXIS_SHARE = 0.995;
const truths = known(rows.y), values = known(rows.y, rows.point);
const skewed = values[0] > 0 && quantile(truths, AXIS_SHARE) / quantile(truths, 0.5) > SKEWED;
const range = (() => {
  const ends = known(rows.y, rows.point, rows.upper[rows.headline], skewed ? [] : rows.lower[rows.headline]);
  const low = quantile(ends, 1 - AXIS_SHARE), high = quantile(ends, AXIS_SHARE), pad = (high - low || 1) * 0.04;
  return skewed ? [low / 1.1, high * 1.1] : [low - pad, high + pad];
})();
const marksOf = skewed ? logTicks : ticks, scaleOf = skewed ? logScale : scale;
const outOfAxis = (v) => v === null || v < range[0] || v > range[1];
// The bounds at a level; a side that has none is infinite in every row.
const bounded = (at) => [rows.lower[at], rows.upper[at]].filter((side) => side.some((v) => v !== null));
const rowsAre = (count) => (count === 1 ? "row has" : "rows have");
const sayBeyond = (id, count, what) => {
  find(id).textContent = (skewed ? " The axis is logarithmic: each step multiplies the value." : "")
    + (count ? ` ${number(count)} ${rowsAre(count)} ${what} beyond the axis. It is drawn at the edge.` : "");
};
// Rows as dots, and as crosses if they lie outside their interval.
const marks = (svg, mine, x, y, at) => {
  let dots = "", crosses = "";
  for (const i of mine) {
    const px = x(i).toFixed(1), py = y(i).toFixed(1);
    if (inside(i, at)) dots += `M${px} ${py}h0`; else crosses += `M${(px - 3.5).toFixed(1)} ${(py - 3.5).toFixed(1)}l7 7m0 -7l-7 7`;
  }
  draw(svg, "path", { class: "dot", d: dots, "stroke-width": 4.5 });
  draw(svg, "path", { class: "cross", d: crosses });
};
const clamp = (v, low, high) => Math.min(high, Math.max(low, v));

// ---------------------------------------------------------------- intervals in order of prediction
const picture = find("picture");
let drawn = [], place = null;
const drawPicture = () => {
  if (!picture) return;
  const own = plot(picture, { ratio: 0.36, least: 260, most: 400 }, marksOf(...range, 5), number, [named(data.response), ""]);
  const { svg, width, left, right, top, bottom } = own;
  const mine = shown(), most = Math.floor((right - left) / 2.6);
  drawn = mine.length <= most ? mine : Array.from({ length: most }, (_, i) => mine[Math.floor(((i + 0.5) * mine.length) / most)]);
  const y = scaleOf(range[0], range[1], bottom, top);
  const at = (v, otherwise) => clamp(v === null ? otherwise : y(v), top, bottom);
  const step = (right - left - 8) / Math.max(drawn.length, 1);
  const x = (j) => left + 6 + (j + 0.5) * step;
  own.yAxis(y);
  draw(svg, "text", { x: right, y: bottom + 20, "text-anchor": "end" }, `rows in order of prediction, ${number(drawn.length)}${filter ? "" : ` of ${number(data.n)}`} drawn`);
  sayBeyond("beyond-picture", drawn.filter((i) => [rows.y, rows.point, ...bounded(level)].some((side) => outOfAxis(side[i]))).length,
    "a true value or an end of the interval");
  const thick = clamp(step * 0.5, 1.2, 5);
  let hold = "", lost = "", dots = "", crosses = "", points = "";
  drawn.forEach((i, j) => {
    const stroke = `M${x(j).toFixed(1)} ${at(rows.lower[level][i], bottom).toFixed(1)}V${at(rows.upper[level][i], top).toFixed(1)}`;
    const yy = at(rows.y[i], bottom), r = clamp(step, 2.6, 4);
    if (inside(i)) { hold += stroke; dots += `M${x(j).toFixed(1)} ${yy.toFixed(1)}h0`; }
    else { lost += stroke; crosses += `M${(x(j) - r).toFixed(1)} ${(yy - r).toFixed(1)}l${2 * r} ${2 * r}m0 ${-2 * r}l${-2 * r} ${2 * r}`; }
    points += `${j ? "L" : "M"}${x(j).toFixed(1)} ${at(rows.point[i], bottom).toFixed(1)}`;
  });
  draw(svg, "path", { class: "hold", d: hold, "stroke-width": thick });
  draw(svg, "path", { class: "lost", d: lost, "stroke-width": thick });
  draw(svg, "path", { class: "point", d: points });
  draw(svg, "path", { class: "dot", d: dots, "stroke-width": clamp(step * 1.1, 2.4, 6) });
  draw(svg, "path", { class: "cross", d: crosses });
  place = { x, y: at, now: draw(svg, "path", { class: "now" }), bottom, top };
  svg.setAttribute("tabindex", "0");
  svg.addEventListener("pointermove", (event) => {
    const box = svg.getBoundingClientRect();
    const j = Math.floor((((event.clientX - box.left) / box.width) * width - left - 6) / step);
    if (j >= 0 && j < drawn.length) point(j, event.clientX, event.clientY); else leave();
  });
  svg.addEventListener("pointerleave", leave);
  svg.addEventListener("blur", leave);
  svg.addEventListener("keydown", (event) => {
    const move = { ArrowRight: 1, ArrowLeft: -1, PageDown: 20, PageUp: -20, Home: -1e6, End: 1e6 }[event.key];
    if (event.key === "Escape") leave();
    if (move === undefined || !drawn.length) return;
    event.preventDefault();
    const j = clamp(current + move, 0, drawn.length - 1);
    const box = svg.getBoundingClientRect(), grow = box.width / width;
    point(j, box.left + x(j) * grow, box.top + at(rows.y[drawn[j]], bottom) * grow);
  });
};
const point = (j, px, py) => {
  current = j;
  const i = drawn[j], { x, y, now, bottom, top } = place, cy = y(rows.y[i], bottom);
  now.setAttribute("d", `M${x(j)} ${y(rows.lower[level][i], bottom)}V${y(rows.upper[level][i], top)}M${x(j) - 6} ${cy}a6 6 0 1 0 12 0a6 6 0 1 0 -12 0`);
  describe(i, px, py);
};
const leave = () => { current = -1; if (place) place.now.removeAttribute("d"); find("tip").hidden = true; };

// ---------------------------------------------------------------- true values against predictions
const drawScatter = () => {
  const part = find("scatter");
  if (!part) return;
  const own = plot(part, { ratio: 0.42, least: 260, most: 380 }, marksOf(...range, 5), number, ["true value", "prediction"]);
  const { svg, left, right, top, bottom } = own;
  const points = rows.point.slice(0, rows.sampled).filter((v) => v !== null), low = Math.min(...points), high = Math.max(...points);
  const pad = (high - low || 1) * 0.03, from = skewed ? low / 1.1 : low - pad, to = skewed ? high * 1.1 : high + pad;
  const x = scaleOf(from, to, left + 6, right), y = scaleOf(range[0], range[1], bottom, top);
  own.yAxis(y);
  own.xAxis(from, to, x, number, marksOf);
  const start = Math.max(from, range[0]), end = Math.min(to, range[1]);
  if (start < end) draw(svg, "line", { class: "ideal", x1: x(start), y1: y(start), x2: x(end), y2: y(end) });
  const mine = shown().filter((i) => rows.point[i] !== null && rows.y[i] !== null);
  marks(svg, mine, (i) => x(rows.point[i]), (i) => clamp(y(rows.y[i]), top, bottom), level);
  sayBeyond("beyond-scatter", mine.filter((i) => outOfAxis(rows.y[i])).length, "a true value");
};

// ---------------------------------------------------------------- error against width
const drawErrors = () => {
  const part = find("errors");
  if (!part) return;
  const mine = shown().filter((i) => rows.width[i] !== null && rows.point[i] !== null && rows.y[i] !== null);
  const error = (i) => Math.abs(rows.y[i] - rows.point[i]);
  const sorted = (values) => values.sort((a, b) => a - b);
  const every = Array.from({ length: rows.sampled }, (_, i) => i).filter((i) => rows.width[i] !== null && rows.point[i] !== null && rows.y[i] !== null);
  const widths = sorted(every.map((i) => rows.width[i])), errors = sorted(every.map(error));
  const from = widths[0], to = quantile(widths, 0.995), high = (quantile(errors, 0.995) || 1) * 1.04;
  const own = plot(part, { ratio: 0.62, least: 240, most: 320 }, ticks(0, high, 5), number, [named("error"), "width of the interval"]);
  const { svg, left, right, top, bottom } = own;
  const x = scale(from, to, left + 6, right), y = scale(0, high, bottom, top);
  own.yAxis(y);
  own.xAxis(from, to, x, number);
  marks(svg, mine, (i) => clamp(x(rows.width[i]), left, right), (i) => clamp(y(error(i)), top, bottom), rows.headline);
};

// ---------------------------------------------------------------- curves over all levels
const drawCurves = () => {
  const curve = data.curve, parts = [find("curve"), find("costs")];
  if (!curve || !parts[0]) return;
  const x0 = curve.levels[0], x1 = curve.levels[curve.levels.length - 1];
  parts.forEach((part, which) => {
    const values = which ? curve.mean_width : curve.covered.map((c) => c / data.n);
    const low = which ? values : curve.low.map((c) => c / data.n), high = which ? values : curve.high.map((c) => c / data.n);
    const bottomValue = which ? 0 : Math.min(...low, ...values, x0), topValue = which ? Math.max(...values) * 1.04 : 1;
    const own = plot(part, { ratio: 0.62, least: 230, most: 320 }, ticks(bottomValue, topValue, 5), which ? number : percent,
      [which ? named("mean width") : "rows inside", "confidence level"]);
    const { svg, left, right, top, bottom } = own;
    const x = scale(x0, x1, left + 4, right), y = scale(bottomValue, topValue, bottom, top);
    own.yAxis(y);
    own.xAxis(x0, x1, x, percent);
    const path = (list) => list.map((v, i) => `${i ? "L" : "M"}${x(curve.levels[i]).toFixed(1)} ${y(v).toFixed(1)}`).join("");
    if (!which) {
      const back = [...curve.levels.keys()].reverse().map((i) => `L${x(curve.levels[i]).toFixed(1)} ${y(low[i]).toFixed(1)}`).join("");
      draw(svg, "path", { class: "ribbon", d: `${path(high)}${back}Z` });
      draw(svg, "line", { class: "ideal", x1: x(x0), y1: y(x0), x2: x(x1), y2: y(x1) });
    }
    draw(svg, "path", { class: "line", d: path(values) });
    draw(svg, "line", { class: "ideal", x1: x(curve.levels[level]), x2: x(curve.levels[level]), y1: top, y2: bottom });
    draw(svg, "circle", { class: "mark", cx: x(curve.levels[level]), cy: y(values[level]), r: 6 });
  });
};

// ---------------------------------------------------------------- how many rows have which width
const drawWidths = () => {
  const part = find("widths"), bins = data.widths;
  if (!part || !bins) return;
  const edges = bins.edges, most = Math.max(...bins.counts), last = edges[edges.length - 1];
  const own = plot(part, { ratio: 0.62, least: 240, most: 320 }, ticks(0, most, 4).filter(Number.isInteger), number, ["rows", "width of the interval"]);
  const { svg, left, right, top, bottom } = own;
  const x = scale(edges[0], last, left + 4, right), y = scale(0, most, bottom, top);
  own.yAxis(y);
  own.xAxis(edges[0], last, x, number);
  bins.counts.forEach((count, i) => {
    const box = { x: x(edges[i]) + 0.5, width: Math.max(0.5, x(edges[i + 1]) - x(edges[i]) - 1) };
    const pillar = draw(svg, "rect", { ...box, class: "pillar", y: y(count), height: bottom - y(count) });
    draw(pillar, "title", {}, `${number(edges[i])} to ${number(edges[i + 1])}: ${count} rows, ${bins.missed[i]} outside`);
    draw(svg, "rect", { ...box, class: "pillar gone", y: y(bins.missed[i]), height: bottom - y(bins.missed[i]), "pointer-events": "none" });
  });
};

// ---------------------------------------------------------------- coverage over time
const drawTimes = () => {
  const part = find("times"), periods = data.times && data.times.periods;
  if (!part || !periods) return;
  const share = (own, key) => own[key] / own.n, aim = data.times.level;
  const least = Math.min(aim, ...periods.map((own) => Math.min(share(own, "covered"), share(own, "low"))));
  const from = Math.max(0, Math.min(0.9, least - 0.02));
  const own = plot(part, { ratio: 0.36, least: 240, most: 360 }, ticks(from, 1, 5), percent, ["rows inside", ""]);
  const { svg, left, right, top, bottom } = own;
  const y = scale(from, 1, bottom, top + 4), step = (right - left - 8) / periods.length, x = (i) => left + 4 + (i + 0.5) * step;
  own.yAxis(y);
  const wide = clamp(step * 0.62, 4, 34), labels = periods.map((period) => period.label);
  const every = Math.ceil((widthOf(labels) + 14) / step);
  let dots = "", crosses = "";
  periods.forEach((period, i) => {
    const high = y(share(period, "high")), low = y(share(period, "low")), at = y(share(period, "covered"));
    const box = draw(svg, "rect", { class: "ribbon", x: x(i) - wide / 2, width: wide, y: high, height: Math.max(1, low - high) });
    draw(box, "title", {}, `${period.label}: ${percent(share(period, "covered"))} of ${number(period.n)} rows inside, ${percent(share(period, "low"))} to ${percent(share(period, "high"))} expected`);
    if (period.flag === "high") draw(svg, "circle", { class: "over", cx: x(i), cy: at, r: clamp(step * 0.25, 2.5, 4.5), "pointer-events": "none" });
    else if (period.flag) crosses += `M${(x(i) - 4).toFixed(1)} ${(at - 4).toFixed(1)}l8 8m0 -8l-8 8`;
    else dots += `M${x(i).toFixed(1)} ${at.toFixed(1)}h0`;
    if (i % every === 0) {
      const half = widthOf([period.label]) / 2;
      draw(svg, "text", { x: clamp(x(i), left + half - 8, own.width - half), y: bottom + 17, "text-anchor": "middle" }, period.label);
    }
  });
  draw(svg, "line", { class: "ideal", x1: left, x2: right, y1: y(aim), y2: y(aim), "pointer-events": "none" });
  draw(svg, "path", { class: "dot", d: dots, "stroke-width": clamp(step * 0.5, 5, 9), "pointer-events": "none" });
  draw(svg, "path", { class: "cross", d: crosses, "pointer-events": "none" });
};
const drawRows = () => { drawPicture(); drawScatter(); drawErrors(); };
