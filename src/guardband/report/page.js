// The page is complete without this script: it draws the plots, and lets levels, rows and tables be explored.
(() => {
  "use strict";
  const body = document.body, root = document.documentElement;
  body.classList.add("js");
  const find = (id) => document.getElementById(id);
  const all = (selector, within = document) => [...within.querySelectorAll(selector)];

  // ---------------------------------------------------------------- light and dark
  const toggle = find("theme");
  if (toggle) {
    const system = matchMedia("(prefers-color-scheme: dark)");
    const dark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
    const name = () => { toggle.textContent = dark() ? "Light" : "Dark"; };
    toggle.addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; name(); });
    system.addEventListener("change", name);
    name();
  }

  // ---------------------------------------------------------------- tables that sort
  const value = (cell) => {
    const given = cell.dataset.v;
    return given === undefined ? cell.textContent : given === "" ? Infinity : Number(given);
  };
  const compare = (a, b) => (typeof a === "number" && typeof b === "number"
    ? (a === b ? 0 : a - b) : String(a).localeCompare(String(b), "en", { numeric: true }));
  for (const table of all("table.sortable")) {
    all("thead th", table).forEach((head, j) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = head.textContent;
      head.replaceChildren(button);
      head.setAttribute("aria-sort", "none");
      button.addEventListener("click", () => {
        const sign = head.getAttribute("aria-sort") === "descending" ? 1 : -1;
        for (const other of all("thead th", table)) other.setAttribute("aria-sort", "none");
        head.setAttribute("aria-sort", sign === 1 ? "ascending" : "descending");
        const rows = [...table.tBodies[0].rows];
        rows.sort((a, b) => sign * compare(value(a.cells[j]), value(b.cells[j])));
        table.tBodies[0].append(...rows);
      });
    });
  }

  // ---------------------------------------------------------------- one column at a time
  const chooser = find("column");
  if (chooser) {
    const show = () => {
      for (const part of all("[data-column]")) part.hidden = part.dataset.column !== chooser.value;
    };
    chooser.addEventListener("change", show);
    show();
  }

  const holder = find("data");
  if (!holder) return;
  const data = JSON.parse(holder.textContent), rows = data.rows;
  let level = rows.headline, filter = null, current = -1;

  // ---------------------------------------------------------------- drawing
  const NS = "http://www.w3.org/2000/svg";
  const draw = (parent, tag, attributes, text) => {
    const element = document.createElementNS(NS, tag);
    for (const [key, entry] of Object.entries(attributes)) element.setAttribute(key, entry);
    if (text !== undefined) element.textContent = text;
    parent.append(element);
    return element;
  };
  const number = (v) => (v === null || v === undefined ? "∞"
    : v.toLocaleString("en", Math.abs(v) >= 1000 && Math.abs(v) < 1e9 ? { maximumFractionDigits: 0 } : { maximumSignificantDigits: 4 }));
  const percent = (v) => `${Number((100 * v).toFixed(2))}%`;
  const ticks = (low, high, most) => {
    const raw = (high - low) / most, power = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 2.5, 5, 10].find((s) => s * power >= raw) * power;
    const out = [], first = Math.ceil(low / step - 1e-9) * step;
    for (let i = 0, t = first; i <= 2 * most && t <= high + step * 1e-9; i++, t = first + i * step) out.push(Math.abs(t) < step * 1e-9 ? 0 : t);
    return out;
  };
  const scale = (low, high, from, to) => (v) => from + ((v - low) / (high - low || 1)) * (to - from);
  const canvas = (place, ratio, least, most) => {
    const width = Math.max(280, Math.round(place.clientWidth));
    const height = Math.round(Math.min(most, Math.max(least, width * ratio)));
    place.replaceChildren();
    const svg = draw(place, "svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": place.dataset.label });
    return { svg, width, height };
  };
  const axis = (svg, marks, y, left, right, words) => {
    for (const t of marks) {
      draw(svg, "line", { class: "grid", x1: left, x2: right, y1: y(t), y2: y(t) });
      draw(svg, "text", { x: left - 8, y: y(t) + 4, "text-anchor": "end" }, words(t));
    }
  };

  // ---------------------------------------------------------------- the picture of intervals
  const picture = find("picture");
  const quantile = (sorted, share) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];
  const shown = () => {
    const out = [];
    for (let i = 0; i < rows.sampled; i++) if (accepts(i)) out.push(i);
    return out;
  };
  const accepts = (i) => !filter || rows.strata[filter.family][i] === filter.place;
  const range = (() => {
    const ends = [...rows.lower[rows.headline], ...rows.upper[rows.headline], ...rows.y].filter((v) => v !== null).sort((a, b) => a - b);
    const low = quantile(ends, 0.002), high = quantile(ends, 0.998), pad = (high - low || 1) * 0.04;
    return [low - pad, high + pad];
  })();
  let drawn = [], place = null;
  const drawPicture = () => {
    const { svg, width, height } = canvas(picture, 0.36, 250, 400);
    const left = 52, right = width - 6, top = 22, bottom = height - 26;
    const mine = shown(), most = Math.floor((right - left) / 2.6);
    drawn = mine.length <= most ? mine : Array.from({ length: most }, (_, i) => mine[Math.floor(((i + 0.5) * mine.length) / most)]);
    const y = scale(range[0], range[1], bottom, top);
    const at = (v, otherwise) => Math.min(bottom, Math.max(top, v === null ? otherwise : y(v)));
    const step = (right - left - 8) / Math.max(drawn.length, 1);
    const x = (j) => left + 6 + (j + 0.5) * step;
    axis(svg, ticks(range[0], range[1], 5).filter((t) => y(t) <= bottom && y(t) >= top), y, left, right, number);
    draw(svg, "text", { class: "name", x: 0, y: 11 }, data.response);
    draw(svg, "text", { x: right, y: height - 6, "text-anchor": "end" }, `rows in order of prediction, ${drawn.length} drawn`);
    const thick = Math.max(1.2, Math.min(5, step * 0.5));
    let hold = "", lost = "", dots = "", crosses = "", points = "";
    drawn.forEach((i, j) => {
      const stroke = `M${x(j).toFixed(1)} ${at(rows.lower[level][i], bottom).toFixed(1)}V${at(rows.upper[level][i], top).toFixed(1)}`;
      const yy = at(rows.y[i], bottom), r = Math.min(4, Math.max(2.6, step));
      if (rows.inside[level][i] === "1") { hold += stroke; dots += `M${x(j).toFixed(1)} ${yy.toFixed(1)}h0`; }
      else { lost += stroke; crosses += `M${(x(j) - r).toFixed(1)} ${(yy - r).toFixed(1)}l${2 * r} ${2 * r}m0 ${-2 * r}l${-2 * r} ${2 * r}`; }
      points += `${j ? "L" : "M"}${x(j).toFixed(1)} ${at(rows.point[i], bottom).toFixed(1)}`;
    });
    draw(svg, "path", { class: "hold", d: hold, "stroke-width": thick });
    draw(svg, "path", { class: "lost", d: lost, "stroke-width": thick });
    draw(svg, "path", { class: "point", d: points });
    draw(svg, "path", { class: "dot", d: dots, "stroke-width": Math.max(2.4, Math.min(6, step * 1.1)) });
    draw(svg, "path", { class: "cross", d: crosses });
    const now = draw(svg, "path", { class: "now" });
    place = { svg, x, y: at, step, left, now, width, bottom, top };
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
      const j = Math.min(drawn.length - 1, Math.max(0, current + move));
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

  // ---------------------------------------------------------------- what a row is
  const describe = (i, px, py) => {
    const tip = find("tip"), list = document.createElement("dl"), head = document.createElement("b");
    const inside = rows.inside[level][i] === "1";
    head.textContent = `Row ${rows.row[i].toLocaleString("en")}: ${inside ? "inside" : "missed"}`;
    const entries = [[data.response, number(rows.y[i])], ["interval", `${rows.lower[level][i] === null ? "−∞" : number(rows.lower[level][i])} to ${number(rows.upper[level][i])}`],
      ["prediction", number(rows.point[i])], ...rows.columns.slice(0, 12).map((name, c) => [name, rows.cells[i][c]])];
    for (const [name, text] of entries) {
      const dt = document.createElement("dt"), dd = document.createElement("dd");
      dt.textContent = name; dd.textContent = text;
      list.append(dt, dd);
    }
    tip.replaceChildren(head, list);
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    const beside = px + 16 + box.width > innerWidth ? px - 16 - box.width : px + 16;
    tip.style.left = `${Math.max(8, beside)}px`;
    tip.style.top = `${Math.max(8, Math.min(py - 20, innerHeight - box.height - 8))}px`;
  };
  addEventListener("scroll", leave, { passive: true });
  const watch = (line) => {
    const i = Number(line.dataset.i), button = line.querySelector("button");
    line.addEventListener("pointermove", (event) => describe(i, event.clientX, event.clientY));
    line.addEventListener("pointerleave", leave);
    if (!button) return;
    button.addEventListener("focus", () => { const box = button.getBoundingClientRect(); describe(i, box.right, box.bottom); });
    button.addEventListener("blur", leave);
  };

  // ---------------------------------------------------------------- curves over all levels
  const drawCurves = () => {
    const curve = data.curve, parts = [find("curve"), find("lengths")];
    if (!curve || !parts[0]) return;
    const x0 = curve.levels[0], x1 = curve.levels[curve.levels.length - 1];
    parts.forEach((part, which) => {
      const { svg, width, height } = canvas(part, 0.62, 230, 320);
      const left = 50, right = width - 14, top = 22, bottom = height - 36;
      const own = which ? curve.mean_width : curve.covered.map((c) => c / data.n);
      const low = which ? own : curve.low.map((c) => c / data.n), high = which ? own : curve.high.map((c) => c / data.n);
      const bottomValue = which ? 0 : Math.min(...low, ...own, x0), topValue = which ? Math.max(...own) * 1.04 : 1;
      const x = scale(x0, x1, left + 4, right), y = scale(bottomValue, topValue, bottom, top), words = which ? number : percent;
      axis(svg, ticks(bottomValue, topValue, 5), y, left, right, words);
      draw(svg, "text", { class: "name", x: 0, y: 11 }, which ? "mean width" : "rows inside");
      for (const t of ticks(x0, x1, 5)) draw(svg, "text", { x: x(t), y: bottom + 18, "text-anchor": "middle" }, percent(t));
      draw(svg, "text", { x: right, y: height - 3, "text-anchor": "end" }, "level asked for");
      const path = (values) => values.map((v, i) => `${i ? "L" : "M"}${x(curve.levels[i]).toFixed(1)} ${y(v).toFixed(1)}`).join("");
      if (!which) {
        const back = [...curve.levels.keys()].reverse().map((i) => `L${x(curve.levels[i]).toFixed(1)} ${y(low[i]).toFixed(1)}`).join("");
        draw(svg, "path", { class: "ribbon", d: `${path(high)}${back}Z` });
        draw(svg, "line", { class: "ideal", x1: x(x0), y1: y(x0), x2: x(x1), y2: y(x1) });
      }
      draw(svg, "path", { class: "line", d: path(own) });
      draw(svg, "line", { class: "ideal", x1: x(curve.levels[level]), x2: x(curve.levels[level]), y1: top, y2: bottom });
      draw(svg, "circle", { class: "mark", cx: x(curve.levels[level]), cy: y(own[level]), r: 6 });
    });
  };

  // ---------------------------------------------------------------- how wide the intervals are
  const drawWidths = () => {
    const part = find("widths"), own = data.widths;
    if (!part || !own) return;
    const { svg, width, height } = canvas(part, 0.28, 200, 260);
    const left = 50, right = width - 14, top = 22, bottom = height - 36, edges = own.edges;
    const x = scale(edges[0], edges[edges.length - 1], left + 4, right), y = scale(0, Math.max(...own.counts), bottom, top);
    axis(svg, ticks(0, Math.max(...own.counts), 4).filter(Number.isInteger), y, left, right, number);
    draw(svg, "text", { class: "name", x: 0, y: 11 }, "rows");
    for (const t of ticks(edges[0], edges[edges.length - 1], width > 500 ? 8 : 4)) draw(svg, "text", { x: x(t), y: bottom + 18, "text-anchor": "middle" }, number(t));
    draw(svg, "text", { x: right, y: height - 3, "text-anchor": "end" }, "width of the interval");
    own.counts.forEach((count, i) => {
      const box = { x: x(edges[i]) + 0.5, width: Math.max(0.5, x(edges[i + 1]) - x(edges[i]) - 1) };
      const pillar = draw(svg, "rect", { ...box, class: "pillar", y: y(count), height: bottom - y(count) });
      draw(pillar, "title", {}, `${number(edges[i])} to ${number(edges[i + 1])}: ${count} rows, ${own.missed[i]} missed`);
      draw(svg, "rect", { ...box, class: "pillar gone", y: y(own.missed[i]), height: bottom - y(own.missed[i]), "pointer-events": "none" });
    });
  };

  // ---------------------------------------------------------------- the level
  const dial = find("level");
  const setLevel = (index) => {
    level = index;
    const words = data.words[index];
    dial.setAttribute("aria-valuetext", words.level);
    for (const key of ["level", "covered", "expected", "width"]) find(`at-${key}`).textContent = words[key];
    leave();
    drawPicture();
    drawCurves();
  };
  if (dial) dial.addEventListener("input", () => setLevel(Number(dial.value)));

  // ---------------------------------------------------------------- filters
  const saved = new Map(all("table[data-rows]").map((table) => [table, [...table.tBodies[0].rows]]));
  const fill = (table) => {
    const by = rows[table.dataset.rows];
    const mine = rows.row.map((_, i) => i).filter((i) => accepts(i) && (table.dataset.rows === "width" || by[i] > 0));
    mine.sort((a, b) => compare(by[b] === null ? Infinity : by[b], by[a] === null ? Infinity : by[a]));
    const head = all("thead th", table).length - 7;
    table.tBodies[0].replaceChildren(...mine.slice(0, data.table_rows).map((i) => {
      const line = document.createElement("tr"), texts = [rows.row[i], rows.y[i], rows.point[i], rows.lower[rows.headline][i], rows.upper[rows.headline][i], rows.width[i], rows.beyond[i]];
      line.dataset.i = i;
      texts.forEach((v, j) => {
        const cell = line.insertCell(), text = j === 3 && v === null ? "−∞" : j ? number(v) : v.toLocaleString("en");
        cell.className = "number"; cell.dataset.v = v === null ? "" : v;
        if (j) { cell.textContent = text; return; }
        const button = document.createElement("button");
        button.type = "button"; button.className = "pick"; button.textContent = text;
        cell.append(button);
      });
      for (let c = 0; c < head; c++) { const cell = line.insertCell(); cell.className = "words"; cell.textContent = rows.cells[i][c]; }
      watch(line);
      return line;
    }));
  };
  const setFilter = (next) => {
    filter = next;
    for (const button of all("[data-family]")) {
      button.setAttribute("aria-pressed", String(!!next && button.dataset.family === next.family && button.dataset.place === next.place));
    }
    const bar = find("filter"), mine = shown().length;
    bar.hidden = !next;
    if (next) find("filter-words").textContent = `${next.words}: ${mine.toLocaleString("en")} of the ${rows.sampled.toLocaleString("en")} rows drawn`;
    for (const [table, lines] of saved) {
      for (const head of all("thead th", table)) head.setAttribute("aria-sort", "none");
      if (next) fill(table); else table.tBodies[0].replaceChildren(...lines);
    }
    leave();
    drawPicture();
  };
  for (const button of all("[data-family]")) {
    button.addEventListener("click", () => setFilter(button.getAttribute("aria-pressed") === "true" ? null
      : { family: button.dataset.family, place: button.dataset.place, words: button.dataset.words }));
  }
  find("show-all").addEventListener("click", () => setFilter(null));
  addEventListener("keydown", (event) => { if (event.key === "Escape" && filter) setFilter(null); });

  all("tr[data-i]").forEach(watch);
  const everything = () => { drawPicture(); drawCurves(); drawWidths(); };
  let width = 0;
  new ResizeObserver(() => { if (picture.clientWidth !== width) { width = picture.clientWidth; everything(); } }).observe(picture);
})();
