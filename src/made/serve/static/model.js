// Model: what it is, how it was trained, which columns depend on each other, and its card.

import { about, ask, h, kindOf, number, percent, problem } from "./dom.js";
import { curve, heat, spark } from "./charts.js";

const MOST_PAIRS = 12;
const MOST_VALUES = 6;
const NARROW = 500;

// The distribution of a column in a few words.
function summary(column, found) {
  if (!found) return column.about;
  if (found.values.length) {
    const order = found.values.map((_, index) => index).sort((a, b) => found.probabilities[b] - found.probabilities[a]);
    const texts = order.slice(0, MOST_VALUES).map((index) => `${found.values[index] ?? "missing"} ${percent(found.probabilities[index])}`);
    return texts.join(", ") + (order.length > MOST_VALUES ? `, … (${order.length} in all)` : "");
  }
  const [low, median, high] = found.quantiles.map((each) => about(each, column));
  return `5 %: ${low}, median: ${median}, 95 %: ${high}${found.missing > 0 ? `, missing: ${percent(found.missing)}` : ""}`;
}

export async function start(main, model) {
  const [info, alone] = await Promise.all([ask(`${model.path}/info`),
    ask(`${model.path}/conditionals`, { body: {} }).catch(() => ({ columns: [] }))]); // refused, if the orderings are fixed
  const distribution = new Map(alone.columns.map((each) => [each.name, each]));
  const fact = (name, value) => h("div", {}, h("dt", {}, name), h("dd", {}, value));
  const table = (names, rows, wide = "scroll") => h("div", { class: wide, tabindex: "0", role: "region", "aria-label": names.join(", ") }, h("table", {}, h("thead", {}, h("tr", {}, names.map((name) => h("th", { scope: "col" }, name)))),
    h("tbody", {}, rows.map((row) => h("tr", {}, row.map((text, index) => (index ? h("td", { title: typeof text === "string" ? text : null }, text) : h("th", { scope: "row" }, text))))))));
  const dependence = h("section", { class: "panel" }, h("h2", {}, "Which columns depend on each other"), h("p", { class: "quiet" }, "Computing …"));
  const strongest = h("section", { class: "panel", "aria-label": "Strongest dependences", hidden: true });
  main.append(h("h1", {}, model.name),
    h("section", { class: "panel", "aria-label": "Facts" }, h("dl", { class: "facts" },
      fact("training rows", info.rows.toLocaleString("en-US")), fact("validation rows", info.valid_rows.toLocaleString("en-US")), fact("columns", String(info.columns)),
      fact("weights", info.weights.toLocaleString("en-US")), fact("epochs", `${info.epochs}${info.finished ? "" : " (not finished)"}`),
      fact("validation NLL", info.valid_nll === null ? "–" : `${number(info.valid_nll, 5)} nats`), fact("best epoch", String(info.best_epoch ?? "–")), fact("masks", String(info.masks)),
      fact("target", info.target ?? "none"), fact("answers", info.any_order ? "any question" : "in its ordering"), fact("version", `made ${info.made}`))),
    h("div", { class: "two" }, h("div", {}, h("section", { class: "panel" }, h("h2", {}, "Learning curve"), curve(info.history, main.clientWidth < NARROW ? 380 : 640), h("p", { class: "quiet small" }, "Mean negative log-likelihood of a row, by epoch: of validation rows, and of training rows under the masks of training.")), strongest), dependence),
    h("section", { class: "panel" }, h("h2", {}, "Columns"), h("p"), table(["column", "distribution", "values", "kind", "type"], model.columns.map((each) => [each.name,
      distribution.has(each.name) ? spark(distribution.get(each.name)) : "", summary(each, distribution.get(each.name)), kindOf(each), each.dtype]), "scroll wrap columns"),
      info.dropped.length ? h("p", { class: "quiet" }, `Left out: ${info.dropped.join(", ")}.`) : null),
    h("details", { class: "panel" }, h("summary", {}, "How it was made: the parameters"), h("p"), table(["parameter", "value"], Object.entries(info.settings).map(([name, value]) => [name, typeof value === "string" ? value : JSON.stringify(value)]))),
    h("details", { class: "panel" }, h("summary", {}, "Model card"), h("pre", {}, info.card)));
  ask(`${model.path}/dependence`).then(({ columns, strength }) => {
    const pairs = [];
    columns.forEach((one, i) => columns.forEach((other, j) => { if (i < j) pairs.push([one, other, Math.max(strength[i][j], strength[j][i])]); }));
    pairs.sort((a, b) => b[2] - a[2]);
    dependence.replaceChildren(h("h2", {}, "Which columns depend on each other"),
      h("p", { class: "quiet small" }, "How much a column (across) tells of another (down), by their mutual information I under the model: √(1 − exp(−2 I)), from 0 to 1."),
      h("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Dependences" }, heat(columns, strength)));
    strongest.hidden = pairs.length === 0;
    strongest.replaceChildren(h("h2", {}, "Strongest dependences"), h("p"), table(["columns", "strength"], pairs.slice(0, MOST_PAIRS).map(([one, other, value]) => [`${one} – ${other}`, value.toFixed(2)]), "scroll wrap"));
  }).catch((error) => dependence.append(problem(error)));
  return { update: () => null };
}
