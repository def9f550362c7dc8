// Ask: a question in the language of `made ask`, with completion, the place of an error, and a history.

import { Refused, ask, h, number, percent, problem, s, say, shown } from "./dom.js";
import { go } from "./page.js";

const MOST_OPTIONS = 12;
const MOST_HISTORY = 30;
const WORDS = ["and", "or", "not", "in {", "between", "is missing"];

const quoted = (text, mark) => `${mark}${text.replaceAll(mark, mark + mark)}${mark}`;
const writtenName = (name) => (/^[A-Za-z_][\w.]*$/.test(name) && !/^(and|or|not|in|between|is|missing)$/i.test(name) ? name : quoted(name, "`"));
const writtenValue = (value, column) => (value === null ? "missing" : typeof value === "string" ? quoted(value, "'") : typeof value === "boolean" ? String(value) : shown(value, column).replaceAll(",", ""));

// What could stand at the caret: values after a comparison with a column, otherwise columns.
export function complete(text, caret, columns) {
  const before = text.slice(0, caret);
  const value = /(`(?:[^`]|``)*`|"(?:[^"]|"")*"|[\w.]+)\s*(?:=|!=|<=|>=|<|>|\bin\s*\{(?:[^{}]*,)?)\s*('?)([^'=<>|(){},]*)$/i.exec(before);
  if (value) {
    const name = value[1].replace(/^[`"]|[`"]$/g, "").replaceAll("``", "`");
    const column = columns.find((each) => each.name === name);
    if (column && column.values.length) {
      const typed = value[3].trim().toLowerCase();
      const from = caret - value[3].length - value[2].length;
      return column.values.filter((each) => each !== null && String(each).toLowerCase().startsWith(typed) && writtenValue(each, column).toLowerCase() !== (value[2] + value[3]).trim().toLowerCase())
        .slice(0, MOST_OPTIONS).map((each) => ({ text: writtenValue(each, column), about: column.name, from }));
    }
    if (column) return [];
  }
  const word = /`?([\w.]*)$/.exec(before);
  const typed = word[1].toLowerCase();
  const from = caret - word[0].length;
  const names = columns.filter((each) => each.name.toLowerCase().includes(typed) && each.name !== word[1])
    .sort((a, b) => b.name.toLowerCase().startsWith(typed) - a.name.toLowerCase().startsWith(typed))
    .map((each) => ({ text: writtenName(each.name), about: each.kind, from }));
  const words = typed ? WORDS.filter((each) => each.startsWith(typed) && each !== typed).map((each) => ({ text: each, about: "", from })) : [];
  return [...words, ...names].slice(0, MOST_OPTIONS);
}

function examples(model, base) {
  const median = (column) => shown(base.get(column.name).quantiles[1], column).replaceAll(",", "");
  const lists = model.columns.map((each) => ({ ...each, values: each.values.filter((value) => value !== null) })).filter((each) => each.values.length > 1 && each.values.length < 10);
  const numbers = model.columns.filter((each) => !each.values.length && each.dtype !== "date" && each.dtype !== "datetime" && base.has(each.name));
  const is = (column, place = 0) => `${writtenName(column.name)} = ${writtenValue(column.values[place], column)}`;
  const found = [];
  if (lists.length) found.push(is(lists[0], lists[0].values.length - 1));
  if (lists.length > 1) found.push(`${is(lists[0], lists[0].values.length - 1)} | ${is(lists[lists.length - 1])}`);
  if (lists.length && numbers.length) found.push(`${writtenName(numbers[0].name)} < ${median(numbers[0])} | ${is(lists[0], lists[0].values.length - 1)}`);
  if (numbers.length > 1) found.push(`${writtenName(numbers[0].name)} > ${median(numbers[0])} and ${writtenName(numbers[1].name)} < ${median(numbers[1])}`);
  return found;
}

function gauge(found) {
  const W = 400, [low, high] = found.interval, at = (p) => (W * p).toFixed(1);
  return s("svg", { class: "gauge", viewBox: `0 0 ${W} 34`, preserveAspectRatio: "xMinYMid", "aria-hidden": "true" },
    s("rect", { class: "before", x: 0, y: 10, width: W, height: 5, rx: 2.5 }),
    s("rect", { class: "now", x: 0, y: 10, width: Math.max(1, W * found.probability), height: 5, rx: 2.5 }),
    found.kind === "estimate" ? s("line", { class: "range", x1: at(low), x2: Math.max(at(high), Number(at(low)) + 1), y1: 20, y2: 20 }) : null,
    ["0 %", "50 %", "100 %"].map((text, index) => s("text", { x: index * W / 2, y: 33, "text-anchor": ["start", "middle", "end"][index] }, text)));
}

export async function start(main, model, options) {
  const key = `made-history-${model.name}`;
  const saved = () => { try { return JSON.parse(localStorage.getItem(key)) || []; } catch { return []; } };
  const base = new Map((await ask(`${model.path}/conditionals`, { body: {} }).catch(() => ({ columns: [] }))).columns.map((each) => [each.name, each]));
  const input = h("textarea", { id: "question", rows: 2, spellcheck: "false", autocapitalize: "off", autocomplete: "off", role: "combobox", "aria-expanded": "false",
    "aria-autocomplete": "list", "aria-controls": "options", "aria-describedby": "help" });
  const list = h("ul", { id: "options", class: "options", role: "listbox", "aria-label": "Completions", hidden: true });
  const answer = h("div", { "aria-live": "polite" });
  const past = h("ul", { class: "history" });
  const button = h("button", { class: "btn main", type: "submit" }, "Ask");
  const form = h("form", { class: "panel", onsubmit: (event) => { event.preventDefault(); close(); submit(); } },
    h("h1", {}, h("label", { for: "question" }, "What is the probability that …")),
    h("p", { class: "quiet small", id: "help" }, "CONDITION | GIVEN. Compare columns with values by =, !=, <, <=, >, >=, in {a, b}, between a and b; join by and, or, not."),
    h("div", { class: "ask" }, h("div", { class: "line" }, input, button), list),
    h("p", { class: "tools" }, h("span", { class: "quiet small" }, "Try:"), examples(model, base).map((text) =>
      h("button", { class: "btn small", type: "button", onclick: () => { input.value = text; submit(); } }, text))), answer);
  main.append(form, h("section", { class: "panel", "aria-label": "History" }, h("h2", {}, "Asked before"), past));

  let choices = [], chosen = -1;
  function close() { list.hidden = true; choices = []; chosen = -1; input.setAttribute("aria-expanded", "false"); input.removeAttribute("aria-activedescendant"); }
  function choose(place) {
    chosen = (place + choices.length) % choices.length;
    [...list.children].forEach((each, index) => each.setAttribute("aria-selected", index === chosen));
    input.setAttribute("aria-activedescendant", `option-${chosen}`);
    list.children[chosen].scrollIntoView({ block: "nearest" });
  }
  function accept(place) {
    const { text, from } = choices[place], rest = input.value.slice(input.selectionStart);
    input.value = `${input.value.slice(0, from)}${text}${rest.startsWith(" ") ? "" : " "}${rest}`;
    input.selectionStart = input.selectionEnd = from + text.length + 1;
    close();
    input.focus();
    open();
  }
  function open() {
    choices = complete(input.value, input.selectionStart, model.columns);
    chosen = -1;
    input.removeAttribute("aria-activedescendant");
    list.hidden = !choices.length;
    input.setAttribute("aria-expanded", String(!list.hidden));
    list.replaceChildren(...choices.map((each, index) => h("li", { role: "option", id: `option-${index}`, "aria-selected": "false",
      onpointerdown: (event) => { event.preventDefault(); accept(index); } }, each.text, h("span", {}, each.about))));
  }
  input.addEventListener("input", open);
  input.addEventListener("blur", () => setTimeout(close, 100));
  input.addEventListener("keydown", (event) => {
    if (event.key === "Escape") close();
    else if (event.key === "ArrowDown" && (choices.length || event.ctrlKey)) { event.preventDefault(); choose(chosen + 1); }
    else if (event.key === "ArrowUp" && choices.length) { event.preventDefault(); choose(chosen - 1); }
    else if ((event.key === "Enter" || event.key === "Tab") && chosen >= 0) { event.preventDefault(); accept(chosen); }
    else if (event.key === "Enter" && !event.shiftKey) { event.preventDefault(); close(); submit(); }
  });

  function marked(question, place) {
    return h("p", { class: "asked" }, question.slice(0, place[0]), h("mark", {}, question.slice(place[0], place[1]) || " "), question.slice(place[1]));
  }

  async function submit({ keep = true } = {}) {
    const question = input.value.trim();
    if (!question) return;
    if (keep) go(model.name, "ask", new URLSearchParams({ q: question }));
    button.disabled = true;
    try {
      const found = await ask(`${model.path}/probability`, { body: { question } });
      const half = (found.interval[1] - found.interval[0]) / 2;
      answer.replaceChildren(h("p", { class: "answer" }, percent(found.probability), found.kind === "estimate" ? h("span", { class: "quiet" }, ` ± ${percent(half)}`) : null),
        gauge(found), h("p", { class: "asked" }, `P(${found.question}) = ${found.probability}`),
        h("p", { class: "quiet" }, found.kind === "exact" ? `Computed ${found.states > 1 ? `by summing ${found.states.toLocaleString("en-US")} states` : "directly"}.` : `An estimate by ${found.samples.toLocaleString("en-US")} paths; 95 % interval ${number(found.interval[0])} to ${number(found.interval[1])}.`));
      say(`${percent(found.probability)}, ${found.kind}`);
      const entries = [{ question, probability: found.probability, kind: found.kind }, ...saved().filter((each) => each.question !== question)].slice(0, MOST_HISTORY);
      localStorage.setItem(key, JSON.stringify(entries));
      remember();
    } catch (error) {
      const place = error instanceof Refused && error.problem.place;
      answer.replaceChildren(place ? marked(question, place) : "", place ? h("p", { class: "problem", role: "alert" }, error.problem.detail.split("\n")[0]) : problem(error));
    } finally { button.disabled = false; }
  }

  function remember() {
    const entries = saved();
    past.replaceChildren(...(entries.length ? entries.map((each) => h("li", {}, h("button", { type: "button", onclick: () => { input.value = each.question; submit(); } }, each.question),
      h("span", { class: "number" }, percent(each.probability), each.kind === "estimate" ? " (estimate)" : ""))) : [h("li", { class: "quiet" }, "Nothing yet.")]));
  }

  remember();
  const update = (options) => { if ((options.get("q") || "") !== input.value.trim()) { input.value = options.get("q") || ""; answer.replaceChildren(); return submit({ keep: false }); } return null; };
  await update(options);
  return { update };
}
