// Rows: a file's rows, the oddest first, with the entries that make them odd, filled gaps, and predictions.

import { ask, h, number, percent, problem, say, shown } from "./dom.js";
import { cell, download, isNumber } from "./table.js";

const PAGE = 50;
const TYPES = { csv: "text/csv", parquet: "application/vnd.apache.parquet", arrows: "application/vnd.apache.arrow.stream" };
const LEVELS = [1, 2, 4, 7]; // nats above what is usual in the column

export async function start(main, model) {
  const input = h("input", { type: "file", id: "file", accept: ".csv,.parquet,.arrows", onchange: () => input.files[0] && read(input.files[0]) });
  const drop = h("div", { class: "drop" }, h("p", {}, h("label", { for: "file" }, h("strong", {}, "Drop a CSV or Parquet file here"), ", or choose one: "), input),
    h("p", { class: "quiet small" }, `With the columns of ${model.name}; empty fields are missing values. The file goes to your server and is not kept.`));
  for (const [kind, over] of [["dragover", true], ["dragleave", false], ["drop", false]]) {
    drop.addEventListener(kind, (event) => {
      event.preventDefault();
      drop.classList.toggle("over", over);
      if (kind === "drop" && event.dataTransfer.files[0]) read(event.dataTransfer.files[0]);
    });
  }
  const result = h("div");
  main.append(h("h1", { class: "unseen" }, "Rows"), drop, result);
  let file = null, found = null;

  const about = (path) => ask(`${model.path}/${path}`, { body: file.content, type: file.type });

  async function read(chosen) {
    const suffix = chosen.name.split(".").pop().toLowerCase();
    result.replaceChildren(h("p", { class: "quiet" }, "Reading …"));
    try {
      if (!TYPES[suffix]) throw new Error(`'${chosen.name}' is neither .csv nor .parquet.`);
      file = { name: chosen.name, content: chosen, type: TYPES[suffix] };
      const [odd, filled] = await Promise.all([about("explain"), about("impute?strategy=mode&uncertainty=true")]);
      found = { ...odd, surprise: odd.rows, rows: filled.rows, filled: new Map((filled.filled || []).map((each) => [`${each.row} ${each.column}`, each])), target: null, predicted: null };
      found.order = found.log_prob.map((value, row) => row).sort((a, b) => found.log_prob[a] - found.log_prob[b]);
      found.page = PAGE;
      say(`${found.rows.length} rows, the oddest first.`);
      show();
    } catch (error) { result.replaceChildren(problem(error)); }
  }

  async function predict(name) {
    found.target = name || null;
    found.predicted = null;
    try {
      if (name) found.predicted = (await about(`predict?target=${encodeURIComponent(name)}`)).rows;
      show();
    } catch (error) { result.prepend(problem(error)); }
  }

  function prediction(row) {
    const values = found.predicted[row];
    if (values.mean !== undefined) return [shown(values.mean, model.byName.get(found.target)), `${values["q0.05"]} to ${values["q0.95"]} (5 % to 95 %)`];
    const value = values[found.target];
    return [value === null ? "missing" : String(value), percent(Math.max(...Object.entries(values).filter(([key]) => key.startsWith("p(")).map(([, share]) => share)))];
  }

  function entry(row, column) {
    const filled = found.filled.get(`${row} ${column.name}`), value = found.rows[row][column.name];
    if (filled) {
      const how = filled.probability !== null ? `${percent(filled.probability)} likely` : `± ${number(filled.standard_deviation, 3)}, ${number(filled.low)} to ${number(filled.high)} (5 % to 95 %)`;
      return cell(value, column, { class: "filled", title: `filled in: ${how}` });
    }
    const surprise = found.surprise[row][column.name];
    const above = surprise === null ? 0 : surprise - found.usual[column.name];
    const level = LEVELS.filter((least) => above >= least).length;
    return cell(value, column, { class: level ? `odd${level}` : "", title: surprise === null ? null : `surprise ${number(surprise, 3)} nats, usually ${number(found.usual[column.name], 3)}` });
  }

  function save() {
    const names = model.columns.map((column) => column.name);
    const header = ["row", "log_prob", ...names, ...names.map((name) => `surprise(${name})`), ...(found.predicted ? Object.keys(found.predicted[0]).map((name) => `predicted ${name}`) : [])];
    download(`${file.name.replace(/\.[^.]*$/, "")}-made.csv`, header, found.order.map((row) => [row, found.log_prob[row], ...names.map((name) => found.rows[row][name]),
      ...names.map((name) => found.surprise[row][name]), ...(found.predicted ? Object.values(found.predicted[row]) : [])]));
  }

  function show() {
    const select = h("select", { onchange: () => predict(select.value) }, h("option", { value: "" }, "none"), model.columns.map((column) => h("option", { selected: column.name === found.target }, column.name)));
    const swatch = (name, text) => h("span", {}, h("span", { class: `swatch ${name}` }), text);
    const counts = `${found.rows.length.toLocaleString("en-US")} rows of ${file.name}; mean log p ${number(found.log_prob.reduce((sum, each) => sum + Number(each), 0) / found.rows.length, 5)}; ${found.filled.size.toLocaleString("en-US")} missing values filled`;
    const head = h("tr", {}, h("th", { scope: "col", class: "right" }, "row"), h("th", { scope: "col", class: "right" }, "log p"),
      found.predicted ? [h("th", { scope: "col" }, `predicted ${found.target}`), h("th", { scope: "col" }, "certainty")] : [],
      model.columns.map((column) => h("th", { scope: "col", class: isNumber(column) ? "right" : null }, column.name)));
    const rows = found.order.slice(0, found.page).map((row) => h("tr", {}, h("th", { scope: "row", class: "right" }, String(row)), h("td", { class: "right" }, number(found.log_prob[row], 5)),
      found.predicted ? prediction(row).map((text) => h("td", {}, text)) : [], model.columns.map((column) => entry(row, column))));
    result.replaceChildren(h("div", { class: "legend" }, h("strong", {}, counts), h("span", { class: "tools push" }, h("label", {}, "Predict ", select),
      h("button", { class: "btn", type: "button", onclick: save }, "Download"))),
    h("div", { class: "legend small quiet" }, "Least likely first. Nats above what is usual in the column:", swatch("s1", "1"), swatch("s2", "2"), swatch("s3", "4"), swatch("s4", "7 and more"), h("span", {}, h("em", {}, "italic"), ": was missing, filled with its most likely value")),
    found.unseen ? h("p", { class: "problem" }, `Training never saw some values of ${Object.keys(found.unseen).join(", ")}.`) : "",
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Rows, the oddest first" }, h("table", {}, h("thead", {}, head), h("tbody", {}, rows))),
    found.page < found.rows.length ? h("p", {}, h("button", { class: "btn", type: "button", onclick: () => { found.page += PAGE; show(); } }, `Show ${PAGE} more`)) : "");
  }
  return { update: () => null };
}
