// The page is complete without its script, which draws the plots and lets levels, rows and tables be explored.
// The files page.js, drawing.js, plots.js and rows.js follow one another in one scope.
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

// ---------------------------------------------------------------- what is folded: on small screens more, in print nothing
if (matchMedia("(max-width: 40rem)").matches) for (const part of all("details.unfolded")) part.open = false;
let unfolded = [];
addEventListener("beforeprint", () => {
  unfolded = all("details:not(.aside):not([open])");
  for (const part of unfolded) part.open = true;
});
addEventListener("afterprint", () => { for (const part of unfolded) part.open = false; });

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
      const lines = [...table.tBodies[0].rows];
      lines.sort((a, b) => sign * compare(value(a.cells[j]), value(b.cells[j])));
      table.tBodies[0].append(...lines);
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
const data = JSON.parse(holder.textContent), rows = data.rows ?? {};
let level = rows.headline, filter = null, current = -1;
