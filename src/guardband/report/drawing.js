// Numbers in words, scales and axes.
const number = (v) => {
  if (v === null || v === undefined) return "∞";
  const size = Math.abs(v);
  let text;
  if (v === 0) text = "0";
  else if (size >= 1e9 && size < 1e15) text = Number(v.toPrecision(4)).toLocaleString("en");
  else if (size >= 1000 && size < 1e15) text = v.toLocaleString("en", { maximumFractionDigits: 0 });
  else if (size < 1e-4 || size >= 1e15) text = Number(v.toPrecision(4)).toExponential().replace("e+", "e");
  else text = String(Number(v.toPrecision(4)));
  return text.replaceAll("-", "−");
};
const amount = (v) => `${number(v)} ${data.unit}`.trimEnd();
const below = (v) => (v === null ? "−∞" : number(v));
const percent = (v) => `${Number((100 * v).toFixed(2))}%`;
const named = (name) => (data.unit ? `${name} (${data.unit})` : name);

const NS = "http://www.w3.org/2000/svg";
const draw = (parent, tag, attributes, text) => {
  const element = document.createElementNS(NS, tag);
  for (const [key, entry] of Object.entries(attributes)) element.setAttribute(key, entry);
  if (text !== undefined) element.textContent = text;
  parent.append(element);
  return element;
};
const ticks = (low, high, most) => {
  const raw = (high - low) / most, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].find((s) => s * power >= raw) * power;
  const out = [], first = Math.ceil(low / step - 1e-9) * step;
  for (let i = 0, t = first; i <= 2 * most && t <= high + step * 1e-9; i++, t = first + i * step) out.push(Math.abs(t) < step * 1e-9 ? 0 : t);
  return out;
};
// One, two and five times the powers of ten, or powers alone if these are too many.
const logTicks = (low, high, most) => {
  const first = Math.floor(Math.log10(low)), last = Math.ceil(Math.log10(high));
  const within = (steps, every) => Array.from({ length: last - first + 1 }, (_, i) => first + i).filter((p) => p % every === 0)
    .flatMap((p) => steps.map((s) => Number(`${s}e${p}`))).filter((t) => low <= t && t <= high);
  let every = 1, found = within([1, 2, 5], 1);
  for (; found.length > most + 1 && every < 100; every++) found = within([1], every);
  return found.length > 1 ? found : ticks(low, high, most);
};
const logScale = (low, high, from, to) => { const at = scale(Math.log(low), Math.log(high), from, to); return (v) => (v > 0 ? at(Math.log(v)) : from); };
const scale = (low, high, from, to) => (v) => from + ((v - low) / (high - low || 1)) * (to - from);
const quantile = (sorted, share) => sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))];

// Measured in the page itself: a canvas may take another font, or digits of another width.
const probe = draw(draw(body, "svg", { class: "probe", "aria-hidden": "true" }), "text", {});
const widthOf = (texts) => Math.ceil(Math.max(0, ...texts.map((text) => { probe.textContent = text; return probe.getComputedTextLength(); })));
// Long numbers are written short, 1.25M, as long as no two marks look alike.
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 2 });
const marked = (marks, words) => {
  const long = marks.map(words);
  if (words !== number || Math.max(0, ...long.map((text) => text.length)) <= 8 || Math.abs(marks[marks.length - 1]) < 1) return long;
  const brief = marks.map((t) => compact.format(t).replaceAll("-", "−"));
  return new Set(brief).size === brief.length ? brief : long;
};

// A plot: where its axes lie depends on how much room the numbers at its left need.
const plot = (place, { ratio, least, most }, yMarks, words, names) => {
  const width = Math.max(280, Math.round(place.clientWidth));
  const height = Math.round(Math.min(most, Math.max(least, width * ratio)));
  place.replaceChildren();
  const svg = draw(place, "svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": place.dataset.label });
  const texts = marked(yMarks, words), left = widthOf(texts) + 12;
  const own = { svg, width, height, left, right: width - 14, top: 24, bottom: height - 36 };
  draw(svg, "text", { class: "name", x: 0, y: 11 }, names[0]);
  if (names[1]) draw(svg, "text", { x: own.right, y: height - 3, "text-anchor": "end" }, names[1]);
  own.yAxis = (y) => yMarks.forEach((t, i) => {
    draw(svg, "line", { class: "grid", x1: left, x2: own.right, y1: y(t), y2: y(t) });
    draw(svg, "text", { x: left - 8, y: y(t) + 4, "text-anchor": "end" }, texts[i]);
  });
  own.xAxis = (low, high, x, say, marksOf = ticks) => {
    const room = (count) => { const found = marksOf(low, high, count); return [found, marked(found, say)]; };
    let count = 8, [marks, labels] = room(count);
    while (count > 2 && (widthOf(labels) + 18) * labels.length > own.right - left) [marks, labels] = room(--count);
    marks.forEach((t, i) => {
      const half = widthOf([labels[i]]) / 2 + 2; // a canvas and a drawing may differ by a pixel
      draw(svg, "text", { x: Math.max(half, Math.min(x(t), own.width - half)), y: own.bottom + 17, "text-anchor": "middle" }, labels[i]);
    });
  };
  return own;
};
