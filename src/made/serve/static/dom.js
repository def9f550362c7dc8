// Elements, numbers and dates, and the requests to the API. Text always goes through text nodes.

const SVG = "http://www.w3.org/2000/svg";

function build(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value !== null && value !== undefined) node.setAttribute(name, value);
  }
  node.append(...children.flat(3).filter((each) => each !== null && each !== undefined && each !== false));
  return node;
}

export const h = (tag, attributes, ...children) => build(document.createElement(tag), attributes, children);
export const s = (tag, attributes, ...children) => build(document.createElementNS(SVG, tag), attributes, children);

export function percent(share) {
  if (share > 0 && share < 0.0001) return "< 0.01 %";
  if (share < 1 && share > 0.9999) return "> 99.99 %";
  return `${(100 * share).toFixed(share >= 0.01 && share <= 0.99 ? 1 : 2)} %`.replace(/^100\.00 %$/, "100 %").replace(/^0\.00 %$/, "0 %");
}

export function number(value, digits = 4) {
  if (value === null || value === undefined || !Number.isFinite(Number(value))) return "–";
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e12 || size < 1e-4)) return Number(value).toExponential(2).replaceAll("-", "−");
  const places = size >= 1000 ? 0 : Math.max(0, digits - 1 - Math.floor(Math.log10(size || 1)));
  const shown = Number(value).toLocaleString("en-US", { maximumFractionDigits: Math.min(places, 6) });
  return shown.replace("-", "−");
}

// The number that a person has typed, with a minus of any kind and commas between thousands, as this page writes them.
export function typedNumber(text) {
  const plain = text.replace("−", "-");
  return Number(/^-?\d{1,3}(,\d{3})+(\.\d*)?$/.test(plain) ? plain.replaceAll(",", "") : plain);
}

export const isDate = (column) => column.dtype === "date" || column.dtype === "datetime";
export const kindOf = (column) => (isDate(column) && !column.values.length ? { date: "date", datetime: "time" }[column.dtype] : column.kind);

export function moment(seconds, column) {
  const text = new Date(1000 * seconds).toISOString();
  return column.dtype === "date" ? text.slice(0, 10) : text.slice(0, 16);
}

// The seconds of a date; NaN for a text that is none.
export function seconds(text, column) {
  const found = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?)?$/.test(text) ? Date.parse(text.length === 10 ? text : `${text}Z`) / 1000 : NaN;
  return Number.isFinite(found) && moment(found, { dtype: "date" }) === text.slice(0, 10) ? found : NaN;
}

// A number of a column, or a value of its list, as people read it.
export function shown(value, column) {
  if (value === null) return "missing";
  if (typeof value === "number" && isDate(column)) return moment(value, column);
  if (typeof value === "number") return number(value, 6);
  return String(value);
}

// A mean or a quantile: four digits are enough.
export const about = (value, column) => (isDate(column) ? moment(value, { dtype: "date" }) : number(value));

export class Refused extends Error {
  constructor(problem) {
    super(problem.detail || problem.title);
    this.problem = problem;
  }
}

// What the browser keeps, if it may: without permission, even to look is an error.
export function kept(storage, key) {
  try { return window[storage].getItem(key); } catch { return null; }
}

export function store(storage, key, value) {
  try { window[storage].setItem(key, value); } catch { /* it lasts as long as the page */ }
}

export const token = { value: kept("sessionStorage", "made-token") };

export async function ask(path, { body, type = "application/json", signal } = {}) {
  const headers = { accept: "application/json" };
  if (token.value) headers.authorization = `Bearer ${token.value}`;
  const options = { headers, signal };
  if (body !== undefined) {
    options.method = "POST";
    headers["content-type"] = type;
    options.body = type === "application/json" ? JSON.stringify(body) : body;
  }
  let answer;
  try {
    answer = await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused({ title: "The server does not answer", detail: "No connection.", remedy: "Is `made serve` still running?" });
  }
  const content = await answer.json();
  if (!answer.ok) throw new Refused(content);
  return content;
}

export function problem(error) {
  const about = error.problem || { title: "Something went wrong", detail: String(error.message || error) };
  return h("div", { class: "problem", role: "alert" }, h("b", {}, about.title, ". "),
    h("span", { class: "asked" }, about.detail), about.remedy ? h("span", {}, ` ${about.remedy}`) : null);
}

// What training has not seen of some values; nothing if it has seen them all.
export function unseen(found) {
  const names = (counts) => Object.keys(counts).join(", ");
  const texts = [found.unseen ? `Training never saw some values of ${names(found.unseen)}: they are very unlikely.` : null,
    found.rounded ? `Values of ${names(found.rounded)} lie between two steps of the training rows: each is taken for the nearest one.` : null];
  return texts.filter(Boolean).map((text) => h("p", { class: "note" }, text));
}

export const say = (text) => { document.getElementById("status").textContent = text; };
