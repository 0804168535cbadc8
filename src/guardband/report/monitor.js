// The history of a monitor: coverage, width, and how far columns are from the training rows.
find("marks-coverage").textContent = past.words;
const shares = (list) => list.map((count, i) => count / past.rows[i]);

const drawCoverage = () => {
  const part = find("plot-coverage"), share = shares(data.inside), low = shares(data.low), high = shares(data.high);
  const least = Math.max(0, Math.min(...share, ...low) - 0.02);
  const own = plot(part, { ratio: 0.32, least: 230, most: 340 }, ticks(least, 1, 5), percent, ["rows inside", past.xName]);
  const y = scale(least, 1, own.bottom, own.top);
  own.yAxis(y);
  const x = past.xAxis(own);
  const stairs = (list) => list.flatMap((v, i) => [past.first[i], past.end(i)].map((row) => `${x(row).toFixed(1)} ${y(v).toFixed(1)}`));
  draw(own.svg, "path", { class: "ribbon", d: `M${[...stairs(high), ...stairs(low).reverse()].join("L")}Z` });
  past.events(own, x);
  draw(own.svg, "path", { class: "line", d: line(past.first.map((_, i) => x(past.middle(i))), share.map(y)) });
  share.forEach((v, i) => {
    const px = x(past.middle(i)), py = y(v);
    const mark = v < low[i] ? draw(own.svg, "path", { class: "cross", d: `M${px - 4} ${py - 4}l8 8m0 -8l-8 8` })
      : draw(own.svg, "circle", { class: "mark", cx: px, cy: py, r: 4 });
    titled(mark, `${past.rowsOf(i)}: ${percent(v)} inside, ${percent(low[i])} to ${percent(high[i])} expected`);
  });
};

const drawWidths = () => {
  const part = find("plot-widths"), known = data.width.filter((v) => v !== null);
  if (!known.length) return;
  const high = Math.max(...known) * 1.05 || 1;
  const own = plot(part, { ratio: 0.24, least: 200, most: 260 }, ticks(0, high, 4), number, ["mean width", past.xName]);
  const y = scale(0, high, own.bottom, own.top);
  own.yAxis(y);
  const x = past.xAxis(own), xs = past.first.map((_, i) => x(past.middle(i)));
  past.events(own, x);
  draw(own.svg, "path", { class: "line", d: line(xs, data.width.map((v) => (v === null ? null : y(v)))) });
  data.width.forEach((v, i) => v !== null && titled(draw(own.svg, "circle", { class: "mark", cx: xs[i], cy: y(v), r: 4 }), `${past.rowsOf(i)}: ${number(v)}`));
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
  const x = scale(0, past.total, left, width - 14);
  data.columns.forEach((column, j) => {
    const name = draw(svg, "text", { x: left - 8, y: j * tall + 14, "text-anchor": "end" }, names[j]);
    titled(name, column.name);
    column.gaps.forEach((gap, i) => {
      const from = x(past.first[i]), box = { x: from, y: j * tall + 1, width: Math.max(1, x(past.end(i)) - from - 0.5), height: tall - 2 };
      draw(svg, "rect", { ...box, class: "cell" });
      const shade = draw(svg, "rect", { ...box, class: column.moved[i] ? "cell far" : "cell near", "fill-opacity": Math.min(1, 0.08 + gap) });
      titled(shade, `${column.name}, ${past.rowsOf(i)}: ${percent(gap)}${column.moved[i] ? ", beyond chance" : ""}`);
      if (column.moved[i]) draw(svg, "circle", { class: "cell dotted", cx: from + box.width / 2, cy: j * tall + tall / 2, r: 1.5, "pointer-events": "none" });
    });
  });
  const bottom = data.columns.length * tall + 17;
  draw(svg, "text", { x: left, y: bottom }, past.timed ? past.say(0) : "first row");
  draw(svg, "text", { x: width - 14, y: bottom, "text-anchor": "end" }, past.timed ? data.history.end[past.last].slice(0, 10) : `row ${number(past.total)}`);
};

const drawAll = () => { drawCoverage(); drawWidths(); drawDrift(); };
let bodyAt = 0;
new ResizeObserver(() => { if (body.clientWidth !== bodyAt) { bodyAt = body.clientWidth; drawAll(); } }).observe(body);
addEventListener("beforeprint", drawAll);
