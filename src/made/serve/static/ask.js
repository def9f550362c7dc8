// Ask: a question in the language of `made ask`, with completion, the place of an error, and a history.

import { Refused, ask, h, kept, number, percent, problem, s, say, store } from "./dom.js";
import { complete, writtenName, writtenValue } from "./complete.js";
import { go } from "./page.js";

const MOST_HISTORY = 30;

function examples(model, base) {
  const median = (column) => Number(base.get(column.name).quantiles[1].toPrecision(6));
  const lists = model.columns.map((each) => ({ ...each, values: each.values.filter((value) => value !== null) })).filter((each) => each.values.length > 1 && each.values.length < 10);
  const numbers = model.columns.filter((each) => !each.values.length && each.dtype !== "date" && each.dtype !== "datetime" && base.has(each.name));
  const is = (column, place = 0) => `${writtenName(column.name)} = ${writtenValue(column.values[place])}`;
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
  let entries = [];
  try { entries = JSON.parse(kept("localStorage", key)) || []; } catch { /* not what this page has written */ }
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
    const letters = [...question], part = (from, to) => letters.slice(from, to).join(""); // not units of UTF-16
    return h("p", { class: "asked" }, part(0, place[0]), h("mark", {}, part(...place) || " "), part(place[1]));
  }

  let asked = "";
  async function submit({ keep = true } = {}) {
    const question = asked = input.value.trim();
    if (!question) return;
    if (keep) go(model.name, "ask", new URLSearchParams({ q: question }));
    button.disabled = true;
    try {
      const found = await ask(`${model.path}/probability`, { body: { question } });
      if (question !== asked) return; // another one has been asked since
      const half = (found.interval[1] - found.interval[0]) / 2;
      answer.replaceChildren(h("p", { class: "answer" }, percent(found.probability), found.kind === "estimate" ? h("span", { class: "quiet" }, ` ± ${percent(half)}`) : null),
        gauge(found), h("p", { class: "asked" }, `P(${found.question}) = ${found.probability}`),
        h("p", { class: "quiet" }, found.kind === "exact" ? `Computed ${found.states > 1 ? `by summing ${found.states.toLocaleString("en-US")} states` : "directly"}.` : `An estimate by ${found.samples.toLocaleString("en-US")} paths; 95 % interval ${number(found.interval[0])} to ${number(found.interval[1])}.`));
      say(`${percent(found.probability)}, ${found.kind}`);
      entries = [{ question, probability: found.probability, kind: found.kind }, ...entries.filter((each) => each.question !== question)].slice(0, MOST_HISTORY);
      store("localStorage", key, JSON.stringify(entries));
      remember();
    } catch (error) {
      if (question !== asked) return;
      const place = error instanceof Refused && error.problem.place;
      answer.replaceChildren(place ? marked(question, place) : "", place ? h("p", { class: "problem", role: "alert" }, error.problem.detail.split("\n")[0]) : problem(error));
    } finally { button.disabled = false; }
  }

  function remember() {
    past.replaceChildren(...(entries.length ? entries.map((each) => h("li", {}, h("button", { type: "button", onclick: () => { input.value = each.question; submit(); } }, each.question),
      h("span", { class: "number" }, percent(each.probability), each.kind === "estimate" ? " (estimate)" : ""))) : [h("li", { class: "quiet" }, "Nothing yet.")]));
  }

  remember();
  function update(options) {
    if ((options.get("q") || "") === asked) return null;
    input.value = options.get("q") || "";
    answer.replaceChildren();
    return submit({ keep: false });
  }
  await update(options);
  return { update };
}
