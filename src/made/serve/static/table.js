// Rows as a table.

import { h, isDate, shown } from "./dom.js";

export const isNumber = (column) => !column.values.length ? !isDate(column) : column.values.every((each) => each === null || typeof each === "number");

// A value, and beside it something about it.
export function cell(value, column, attributes = {}, more = null) {
  const text = value === null || value === undefined ? "" : typeof value !== "string" ? shown(value, column) : isDate(column) ? value.replace("T", " ") : value;
  const right = isNumber(column) && typeof value === "number" ? "right" : "";
  return h("td", { ...attributes, class: `${right} ${attributes.class || ""}`.trim() || null }, text, more ? h("span", { class: "more" }, ` (${more})`) : null);
}

export function rowsTable(model, rows) {
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Rows" }, h("table", {},
    h("thead", {}, h("tr", {}, model.columns.map((column) => h("th", { scope: "col", class: isNumber(column) ? "right" : null }, column.name)))),
    h("tbody", {}, rows.map((row) => h("tr", {}, model.columns.map((column) => cell(row[column.name], column)))))));
}

// A file of comma-separated values, saved by the browser.
export function download(name, header, rows) {
  const field = (value) => {
    const text = value === null || value === undefined ? "" : String(value);
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  const content = [header, ...rows].map((row) => row.map(field).join(",")).join("\n");
  const url = URL.createObjectURL(new Blob([`${content}\n`], { type: "text/csv" }));
  const anchor = h("a", { href: url, download: name });
  document.body.append(anchor);
  anchor.click();
  anchor.remove();
  setTimeout(() => URL.revokeObjectURL(url), 10000);
}
