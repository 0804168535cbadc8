// What a row is, the level, groups of rows, and rows to take away.
const describe = (i, px, py) => {
  const tip = find("tip"), list = document.createElement("dl"), head = document.createElement("b");
  head.textContent = `Row ${rows.row[i]}: ${inside(i) ? "inside" : "outside"}`;
  const entries = [[data.response, amount(rows.y[i])], ["interval", `${below(rows.lower[level][i])} to ${amount(rows.upper[level][i])}`],
    ["prediction", amount(rows.point[i])], ...rows.columns.slice(0, 12).map((name, c) => [name, rows.cells[i][c]])];
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

// ---------------------------------------------------------------- the level
const dial = find("level");
const setLevel = (index) => {
  level = index;
  const words = data.words[index];
  dial.setAttribute("aria-valuetext", words.level);
  for (const key of ["level", "covered", "expected", "width"]) find(`at-${key}`).textContent = words[key];
  leave();
  drawPicture();
  drawScatter();
  drawCurves();
};
if (dial) dial.addEventListener("input", () => setLevel(Number(dial.value)));

// ---------------------------------------------------------------- groups
const saved = new Map(all("table[data-rows]").map((table) => [table, [...table.tBodies[0].rows]]));
const fill = (table) => {
  const by = rows[table.dataset.rows];
  const mine = rows.row.map((_, i) => i).filter((i) => accepts(i) && (table.dataset.rows === "width" || by[i] > 0));
  mine.sort((a, b) => compare(by[b] === null ? Infinity : by[b], by[a] === null ? Infinity : by[a]));
  table.tBodies[0].replaceChildren(...mine.slice(0, data.table_rows).map((i) => {
    const line = document.createElement("tr"), at = rows.headline;
    const texts = [rows.row[i], rows.y[i], rows.point[i], rows.lower[at][i], rows.upper[at][i], rows.width[i], rows.beyond[i]];
    line.dataset.i = i;
    texts.forEach((v, j) => {
      const cell = line.insertCell(), text = j === 3 ? below(v) : j ? number(v) : String(v);
      cell.className = "number"; cell.dataset.v = v === null ? "" : v;
      if (j) { cell.textContent = text; return; }
      const button = document.createElement("button");
      button.type = "button"; button.className = "pick"; button.textContent = text;
      cell.append(button);
    });
    for (const c of rows.telling) { const cell = line.insertCell(); cell.className = "words"; cell.textContent = rows.cells[i][c]; }
    watch(line);
    return line;
  }));
};
const setFilter = (next) => {
  filter = next;
  for (const button of all("[data-family]")) {
    button.setAttribute("aria-pressed", String(!!next && button.dataset.family === next.family && button.dataset.place === next.place));
  }
  find("filter").hidden = !next;
  if (next) find("filter-words").textContent = `${next.words}: ${shown().length.toLocaleString("en")} of the ${rows.sampled.toLocaleString("en")} rows drawn`;
  for (const [table, lines] of saved) {
    for (const head of all("thead th", table)) head.setAttribute("aria-sort", "none");
    if (next) fill(table); else table.tBodies[0].replaceChildren(...lines);
  }
  leave();
  drawRows();
};
for (const button of all("[data-family]")) {
  button.addEventListener("click", () => setFilter(button.getAttribute("aria-pressed") === "true" ? null
    : { family: button.dataset.family, place: button.dataset.place, words: button.dataset.words }));
}
find("show-all").addEventListener("click", () => setFilter(null));
addEventListener("keydown", (event) => { if (event.key === "Escape" && filter) setFilter(null); });
all("tr[data-i]").forEach(watch);

// ---------------------------------------------------------------- CSV
// A spreadsheet runs text that begins like a formula: an apostrophe before it stops that, as in table_writer.py.
const SIGNS = "=+\\-@\uff1d\uff0b\uff0d\uff20";
const NUMBER = /^[+-]?(\d+([.,]\d+)*|[.,]\d+)([eE][+-]?\d+)?%?$|^[+-]?(inf|Inf|nan|NaN)$/;
const harmless = (text) => (NUMBER.test(text) ? text : text
  .replace(new RegExp(`([,;|\\t\\r\\n][ "]*)([${SIGNS}])`, "g"), "$1'$2")
  .replace(new RegExp(`^([ "]*[${SIGNS}]|[\\t\\r\\n])`), "'$1"));
const asCell = (v) => {
  const text = harmless(v === null ? "" : String(v).replace(/^−(?=[\d.])/, "-"));
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
};
const asLines = (lines) => lines.map((line) => line.map(asCell).join(",")).join("\n") + "\n";
const csv = () => {
  const at = rows.headline, end = (v, infinite) => (v === null ? infinite : v);
  const head = ["row", data.response, "prediction", "lower", "upper", "inside", ...rows.columns];
  const lines = rows.row.map((row, i) => [row, rows.y[i], rows.point[i], end(rows.lower[at][i], "-inf"), end(rows.upper[at][i], "inf"),
    inside(i, at) ? "yes" : "no", ...(rows.cells[i] || []).map((cell) => (cell === "missing" ? null : cell))]);
  return asLines([head, ...lines]);
};
const groupsCsv = () => asLines(data.groups);
for (const [id, text, name] of [["download", csv, "guardband-rows.csv"], ["download-groups", groupsCsv, "guardband-groups.csv"]]) {
  find(id)?.addEventListener("click", () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob(["\ufeff", text()], { type: "text/csv" }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });
}

const everything = () => { drawRows(); drawCurves(); drawWidths(); drawTimes(); };
for (const part of all("details")) {
  if (part.querySelector(".plot")) part.addEventListener("toggle", () => { if (part.open) everything(); });
}
let seen = 0;
if (picture) new ResizeObserver(() => { if (picture.clientWidth !== seen) { seen = picture.clientWidth; everything(); } }).observe(picture);
