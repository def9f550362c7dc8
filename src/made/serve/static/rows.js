// Rows: a file's rows, the oddest first, with the entries that make them odd, filled gaps, and predictions.

import { Refused, about as rounded, ask, h, isDate, number, percent, problem, say, unseen } from "./dom.js";
import { cell, download, isNumber } from "./table.js";

const PAGE = 50;
const TYPES = { csv: "text/csv", parquet: "application/vnd.apache.parquet", arrows: "application/vnd.apache.arrow.stream" };
const MOST_ODD = 2;
const LEVELS = [1, 2, 4, 7]; // nats above what is usual in the column

export async function start(main, model) {
  const input = h("input", { type: "file", id: "file", accept: ".csv,.parquet,.arrows", onchange: () => input.files[0] && read(input.files[0]) });
  const drop = h("div", { class: "drop" }, h("p", {}, h("label", { for: "file" }, h("strong", {}, "Drop a CSV or Parquet file here"), ", or choose one: "), input),
    h("p", { class: "quiet small" }, `With the columns of ${model.name}; empty fields are missing values. The file goes to your server and is not kept.`));
  // Anywhere on the page: beside the box, the browser would leave it and open the file.
  for (const [kind, over] of [["dragover", true], ["dragleave", false], ["drop", false]]) {
    document.addEventListener(kind, (event) => {
      if (!main.isConnected) return;
      event.preventDefault();
      drop.classList.toggle("over", over);
      if (kind === "drop" && event.dataTransfer.files[0]) read(event.dataTransfer.files[0]);
    });
  }
  const result = h("div");
  main.append(h("h1", { class: "unseen" }, "Rows"), drop, result);
  let file = null, found = null;

  const about = (file, path) => ask(`${model.path}/${path}absent=missing`, { body: file.content, type: file.type });

  async function read(chosen) {
    const suffix = chosen.name.split(".").pop().toLowerCase();
    const own = file = { name: chosen.name, content: chosen, type: TYPES[suffix] };
    result.replaceChildren(h("p", { class: "quiet" }, "Reading …"));
    try {
      if (!own.type) throw new Refused({ title: "This file cannot be read", detail: `'${chosen.name}' is neither .csv nor .parquet.` });
      const [odd, filled] = await Promise.all([about(own, "explain?"), about(own, "impute?strategy=mode&uncertainty=true&")]);
      if (own !== file) return; // another file has been chosen
      found = { ...odd, surprise: odd.rows, rows: filled.rows, filled: new Map((filled.filled || []).map((each) => [`${each.row} ${each.column}`, each])), target: null, predicted: null };
      found.log_prob = found.log_prob.map(Number); // "-Infinity" is a text
      found.order = found.log_prob.map((value, row) => row).sort((a, b) => (found.log_prob[a] < found.log_prob[b] ? -1 : found.log_prob[a] > found.log_prob[b] ? 1 : a - b));
      found.page = PAGE;
      say(`${found.rows.length} rows, the oddest first.`);
      show();
    } catch (error) {
      if (error instanceof Refused) error.problem.detail = error.problem.detail.replace(/^the body\b/, own.name); // as people know it
      if (own === file) result.replaceChildren(problem(error));
    }
  }

  async function predict(name) {
    const own = found;
    own.target = name;
    own.predicted = null;
    try {
      const rows = name === null ? null : (await about(file, `predict?target=${encodeURIComponent(name)}&`)).rows;
      if (own !== found || own.target !== name) return; // another file or column has been chosen
      own.predicted = rows;
      show();
    } catch (error) { if (own === found) result.prepend(problem(error)); }
  }

  // A number of a column, or a date, which is a text in rows and predictions.
  const short = (value, column) => (typeof value === "string" ? value.slice(0, 16).replace("T", " ") : rounded(value, column));

  function prediction(row) {
    const values = found.predicted[row], column = model.byName.get(found.target);
    if (values.mean !== undefined) return [short(values.mean, column), `${short(values["q0.05"], column)} to ${short(values["q0.95"], column)} (5 % to 95 %)`];
    const value = values[found.target];
    return [value === null ? "missing" : String(value), percent(Math.max(...Object.entries(values).filter(([key]) => key.startsWith("p(")).map(([, share]) => share)))];
  }

  const above = (row, name) => (found.surprise[row][name] === null ? 0 : found.surprise[row][name] - found.usual[name]);

  // The entries that make a row odd, the oddest first: in a wide table they may be far to the right.
  function oddest(row) {
    const odd = model.columns.filter(({ name }) => above(row, name) >= LEVELS[0]).sort((a, b) => above(row, b.name) - above(row, a.name));
    return odd.slice(0, MOST_ODD).map(({ name }) => name).join(", ") + (odd.length > MOST_ODD ? ` and ${odd.length - MOST_ODD} more` : "");
  }

  // Beside a value that was missing, how sure it is; beside an odd one, by how much: colours alone are not for everybody.
  function entry(row, column) {
    const filled = found.filled.get(`${row} ${column.name}`), value = found.rows[row][column.name];
    if (filled) {
      const listed = filled.probability !== null;
      const [low, high] = [filled.low, filled.high].map((each) => (isDate(column) ? short(each, column) : number(each, 3)));
      return cell(value, column, { class: "filled", title: `filled in: ${listed ? `${percent(filled.probability)} likely` : `${low} to ${high} (5 % to 95 %)`}` },
        listed ? percent(filled.probability) : `${low} – ${high}`);
    }
    const surprise = found.surprise[row][column.name];
    const more = above(row, column.name), level = LEVELS.filter((least) => more >= least).length;
    return cell(value, column, { class: level ? `odd${level}` : "", title: surprise === null ? null : `surprise ${number(surprise, 3)} nats, usually ${number(found.usual[column.name], 3)}` },
      level ? `+${more.toFixed(1)}` : null);
  }

  // The rows with what was filled in, log p, the surprise of each entry, how sure the filled ones are, and the predictions.
  function save() {
    const names = model.columns.map((column) => column.name), missing = names.filter((name) => found.rows.some((_, row) => found.filled.has(`${row} ${name}`)));
    const sure = missing.flatMap((name) => (model.byName.get(name).values.length ? [[name, "probability"]] : [[name, "low"], [name, "high"]]));
    const certainty = (row, name, what) => {
      const value = found.filled.get(`${row} ${name}`)?.[what], column = model.byName.get(name);
      return isDate(column) && what !== "probability" && Number.isFinite(value) ? new Date(1000 * value).toISOString().slice(0, column.dtype === "date" ? 10 : 23) : value;
    };
    const predicted = found.predicted ? Object.keys(found.predicted[0]) : [];
    const header = ["row", "log_prob", ...names, ...names.map((name) => `surprise(${name})`), ...sure.map(([name, what]) => `${what}(${name})`), ...predicted.map((name) => `predicted ${name}`)];
    download(`${file.name.replace(/\.[^.]*$/, "")}-made.csv`, header, found.order.map((row) => [row, found.log_prob[row], ...names.map((name) => found.rows[row][name]),
      ...names.map((name) => found.surprise[row][name]), ...sure.map(([name, what]) => certainty(row, name, what)), ...predicted.map((name) => found.predicted[row][name])]));
  }

  // A column of another name may be one with a typing error.
  function differs() {
    return [found.absent ? `The file has no column ${found.absent.join(", ")}: all its values are missing.` : null,
      found.ignored ? `The model does not know ${found.ignored.join(", ")}.` : null].filter(Boolean).map((text) => h("p", { class: "note" }, text));
  }

  function show() {
    const focused = document.activeElement.id; // what has the focus is made again, and keeps it
    const select = h("select", { id: "predict", onchange: () => predict(select.selectedIndex ? model.columns[select.selectedIndex - 1].name : null) }, h("option", {}, "none"), model.columns.map((column) => h("option", { selected: column.name === found.target }, column.name)));
    const swatch = (name, text) => h("span", {}, h("span", { class: `swatch ${name}` }), text);
    const counts = `${found.rows.length.toLocaleString("en-US")} rows of ${file.name}; mean log p ${number(found.log_prob.reduce((sum, each) => sum + Number(each), 0) / found.rows.length, 5)}; ${found.filled.size.toLocaleString("en-US")} missing values filled`;
    const head = h("tr", {}, h("th", { scope: "col", class: "right" }, "row"), h("th", { scope: "col", class: "right" }, "log p"), h("th", { scope: "col" }, "odd entries"),
      found.predicted ? [h("th", { scope: "col" }, `predicted ${found.target}`), h("th", { scope: "col" }, "certainty")] : [],
      model.columns.map((column) => h("th", { scope: "col", class: isNumber(column) ? "right" : null }, column.name)));
    const rows = found.order.slice(0, found.page).map((row) => h("tr", {}, h("th", { scope: "row", class: "right" }, String(row)), h("td", { class: "right" }, number(found.log_prob[row], 5)), h("td", { title: oddest(row) }, oddest(row)),
      found.predicted ? prediction(row).map((text) => h("td", {}, text)) : [], model.columns.map((column) => entry(row, column))));
    result.replaceChildren(h("div", { class: "legend" }, h("strong", {}, counts), h("span", { class: "tools push" }, h("label", {}, "Predict ", select),
      h("button", { class: "btn", type: "button", onclick: save }, "Download"))),
    h("div", { class: "legend small quiet" }, "Least likely first. Nats above what is usual in the column:", swatch("s1", "1"), swatch("s2", "2"), swatch("s3", "4"), swatch("s4", "7 and more"), h("span", {}, h("em", { class: "filled" }, "italic"), ": was missing, filled with its most likely value; beside it the probability, or where 90 % of the values lie")),
    ...unseen(found), ...differs(),
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Rows, the oddest first" }, h("table", {}, h("thead", {}, head), h("tbody", {}, rows))),
    found.page < found.rows.length ? h("p", {}, h("button", { class: "btn", type: "button", id: "more", onclick: () => { found.page += PAGE; show(); } }, `Show ${PAGE} more`)) : "");
    if (focused === "predict" || focused === "more") (document.getElementById(focused) || select).focus();
  }
  return { update: () => null };
}
