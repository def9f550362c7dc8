// Distributions as SVG: what it was before in grey, what it is now in colour.

import { h, s, shown } from "./dom.js";

const WIDTH = 300;
const HEIGHT = 92;

export function shareBar(now, before) {
  const wide = (share) => Math.max(share > 0 ? 0.6 : 0, WIDTH * share);
  return s("svg", { viewBox: `0 0 ${WIDTH} 9`, preserveAspectRatio: "none", "aria-hidden": "true" },
    s("rect", { class: "track", x: 0, y: 0, width: WIDTH, height: 9 }),
    s("rect", { class: "before", x: 0, y: 0, width: wide(before), height: 9 }),
    s("rect", { class: "now", x: 0, y: 2.5, width: wide(now), height: 4 }));
}

// Places of values on the horizontal axis, from 0 to 1.
export function scaleOf(column) {
  const { edges } = column;
  const to = column.scale === "log" ? Math.log : (x) => x;
  const back = column.scale === "log" ? Math.exp : (x) => x;
  const low = to(edges[0]), high = to(edges[edges.length - 1]);
  return {
    place: (value) => Math.min(1, Math.max(0, (to(value) - low) / (high - low || 1))),
    value: (place) => back(low + place * (high - low)),
    width: (index) => (to(edges[index + 1]) - to(edges[index])) / (high - low || 1),
  };
}

const heights = (column, scale) => column.probabilities.map((share, index) => share / Math.max(scale.width(index), 1e-9));

function outline(column, scale, tall) {
  const high = heights(column, scale);
  let path = `M${(WIDTH * scale.place(column.edges[0])).toFixed(1)},${HEIGHT}`;
  high.forEach((each, index) => {
    const y = (HEIGHT - (HEIGHT - 10) * Math.min(1, each / tall)).toFixed(1);
    const [from, to] = [column.edges[index], column.edges[index + 1]].map((edge) => (WIDTH * scale.place(edge)).toFixed(1));
    path += `L${from},${y}L${to},${y}`;
  });
  return `${path}L${WIDTH},${HEIGHT}Z`;
}

export function histogram(about, now, before, set) {
  const scale = scaleOf(before);
  const tall = Math.max(...heights(before, scale), ...(now ? heights(now, scale) : [0]), 1e-12);
  const at = (value) => (WIDTH * scale.place(value)).toFixed(1);
  const parts = [s("path", { class: "area", d: outline(before, scale, tall) })];
  if (now) {
    parts.push(s("path", { class: "curve", d: outline(now, scale, tall) }));
    const [low, , high] = now.quantiles;
    parts.push(s("line", { class: "range", x1: at(low), x2: at(high), y1: HEIGHT, y2: HEIGHT }));
  }
  parts.push(s("line", { class: "axis", x1: 0, x2: WIDTH, y1: HEIGHT, y2: HEIGHT }));
  if (set !== null) parts.push(s("line", { class: "mark", x1: at(set), x2: at(set), y1: 0, y2: HEIGHT }));
  const label = now ? `${about.name}: mean ${shown(now.mean, about)}, 5 % to 95 % from ${shown(now.quantiles[0], about)} to ${shown(now.quantiles[2], about)}` : `${about.name} is set`;
  return s("svg", { class: "plot", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", role: "img", "aria-label": label }, ...parts);
}

// The least and the greatest value in the bins; an edge lies half a step beyond.
export const firstValue = (about, column) => column.edges[0] + about.step / 2;
export const lastValue = (about, column) => column.edges[column.edges.length - 1] - about.step / 2;

// The total variation distance between two distributions of a column, from 0 to 1.
export function distance(now, before) {
  let total = 0;
  now.probabilities.forEach((share, index) => { total += Math.abs(share - before.probabilities[index]); });
  for (const part of ["below", "above", "missing"]) total += Math.abs(now[part] - before[part]);
  return total / 2;
}

// A distribution as small as a word.
export function spark(column) {
  const high = column.values.length ? column.probabilities : null, tall = Math.max(...(high || []), 1e-12), step = WIDTH / (high || [0]).length;
  const picture = high ? high.map((share, index) => s("rect", { class: "before", x: (index + 0.1) * step, y: HEIGHT * (1 - share / tall), width: 0.8 * step, height: HEIGHT * share / tall }))
    : s("path", { class: "area", d: outline(column, scaleOf(column), Math.max(...heights(column, scaleOf(column)), 1e-12)) });
  return s("svg", { class: "spark", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, preserveAspectRatio: "none", "aria-hidden": "true" }, picture);
}

export function curve(history, W = 640) {
  const H = 260, left = 66, bottom = 30;
  const lines = [["valid_nll", "validation", "now"], ["train_nll", "training", "before"]];
  const points = lines.map(([name]) => history.map((each) => [each.number, each[name]]).filter(([, y]) => Number.isFinite(y)));
  const ys = points.flat().map(([, y]) => y).sort((a, b) => a - b);
  if (!ys.length) return h("p", { class: "quiet" }, "There is no history.");
  const low = ys[0], high = Math.max(ys[Math.floor(0.97 * (ys.length - 1))], low + 1e-9), last = history[history.length - 1].number;
  const x = (epoch) => left + (W - left - 90) * (epoch - history[0].number) / Math.max(1, last - history[0].number);
  const y = (nll) => 12 + (H - bottom - 12) * (1 - Math.min(1, (nll - low) / (high - low)));
  const paths = points.map((each, index) => each.length ? s("path", {
    d: `M${each.map(([e, v]) => `${x(e).toFixed(1)},${y(v).toFixed(1)}`).join("L")}`, fill: "none",
    class: index ? "learning training" : "learning validation" }) : null);
  const marks = [low, (low + high) / 2, high].map((each, index) => [s("line", { class: "axis", x1: left, x2: W - 90, y1: y(each), y2: y(each) }),
    s("text", { x: left - 6, y: y(each) + 4, "text-anchor": "end" }, `${each.toFixed(1)}${index === 2 ? " nats" : ""}`)]);
  const lasts = points.map((each) => (each.length ? y(each[each.length - 1][1]) + 4 : 0));
  if (Math.abs(lasts[0] - lasts[1]) < 14) lasts[1] = lasts[0] + (lasts[1] < lasts[0] ? -14 : 14);
  const names = points.map((each, index) => each.length ? s("text", { x: W - 84, y: lasts[index] }, lines[index][1]) : null);
  return s("svg", { class: "figure", viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": `Learning curve: the NLL of validation rows falls to ${low.toFixed(2)} nats in ${last} epochs` },
    ...marks.flat(), ...paths.reverse(), ...names, s("text", { x: left, y: H - 6 }, `epoch ${history[0].number}`),
    s("text", { x: W - 90, y: H - 6, "text-anchor": "end" }, `${last}`));
}

export function heat(names, values) {
  const short = (name) => (name.length > 18 ? `${name.slice(0, 17)}…` : name);
  const cell = 22, left = 128, top = 118, size = names.length * cell;
  const cells = values.map((row, i) => row.map((value, j) => i === j ? null : s("rect", {
    x: left + j * cell, y: top + i * cell, width: cell, height: cell, class: "heat-cell", "fill-opacity": Math.min(1, value).toFixed(3) },
    s("title", {}, `${names[j]} tells of ${names[i]}: ${value.toFixed(2)}`))));
  const rows = names.map((name, i) => s("text", { x: left - 6, y: top + i * cell + 15, "text-anchor": "end" }, short(name)));
  const columns = names.map((name, j) => s("text", { transform: `translate(${left + j * cell + 15} ${top - 6}) rotate(-60)` }, short(name)));
  return s("svg", { class: names.length < 13 ? "figure heat few" : "figure heat", viewBox: `0 0 ${left + size + 40} ${top + size + 6}`, role: "img",
    "aria-label": "How much each column (across) tells of each other column (down); the table below lists the strongest pairs" }, ...cells.flat(), ...rows, ...columns);
}
