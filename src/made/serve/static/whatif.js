// What if: every column is a control; set some, and see how the distributions of all others move.

import { about as rounded, ask, h, isDate, kindOf, moment, number, percent, problem, say, seconds, shown, typedNumber, unseen } from "./dom.js";
import { distance, firstValue, histogram, lastValue, scaleOf, shareBar } from "./charts.js";
import { go } from "./page.js";
import { rowsTable } from "./table.js";

const MOST_VALUES = 8;
const MOST_CARDS = 60;
const MOST_MOVES = 5;
const DRAWN = 20;
const MOST_ROUNDS = 12; // of questions, until all columns of a completion are set
const LONG = 1000; // milliseconds that a newer state waits for an older one

const keyOf = (value) => (value === null ? "" : String(value));

// What is set, from the address, and back: a value of a list by its text, a number by its digits.
function parse(options, model) {
  const given = new Map();
  for (const [name, text] of options) {
    const column = model.byName.get(name);
    if (!column) continue;
    if (column.values.length) {
      const value = column.values.find((each) => keyOf(each) === text);
      if (value !== undefined) given.set(name, value);
    } else if (text === "" && column.missing) given.set(name, null);
    else if (isDate(column)) { if (Number.isFinite(seconds(text))) given.set(name, text); }
    else if (text !== "" && Number.isFinite(Number(text))) given.set(name, Number(text));
  }
  return given;
}

// Put children in place; those that are there already are not touched, so that they keep the focus.
function place(parent, nodes) {
  if (nodes.length !== parent.children.length || nodes.some((node, index) => parent.children[index] !== node)) parent.replaceChildren(...nodes);
}

const write = (given) => new URLSearchParams([...given].map(([name, value]) => [name, keyOf(value)]));

export async function start(main, model, options) {
  const state = { given: parse(options, model), undo: [], base: null, now: null, last: null, against: "nothing", order: "table", find: "", all: new Set() };
  const conditionals = (given, signal) => ask(`${model.path}/conditionals`, { body: { given: Object.fromEntries(given) }, signal });
  const asMap = (found) => new Map(found.columns.map((each) => [each.name, each]));
  state.base = asMap(await conditionals(new Map()));

  const chips = h("div", { class: "chips" });
  const logp = h("span", { class: "logp number" });
  const moves = h("div", { class: "moves" });
  const trouble = h("div");
  const cards = h("div", { class: "cards" });
  const button = (text, onclick) => h("button", { class: "btn", type: "button", onclick }, text);
  const undo = button("Undo", () => change(state.undo.pop(), { keep: true }));
  const clear = button("Clear all", () => change(new Map()));
  const draw = button("Draw rows like this", drawRows);
  const complete = button("Most likely completion", completion);
  const against = h("select", { onchange: () => { state.against = against.value; render(); } },
    h("option", { value: "nothing" }, "nothing set"), h("option", { value: "last" }, "the step before"));
  const order = h("select", { onchange: () => { state.order = order.value; render(); } },
    h("option", { value: "table" }, "as in the table"), h("option", { value: "moved" }, "moved most"));
  const find = h("input", { type: "search", size: 9, oninput: () => { state.find = find.value.toLowerCase(); render(); } });
  const drawn = h("section", { "aria-label": "Drawn rows", hidden: true, class: "panel" });
  main.append(h("h1", { class: "unseen" }, `What if: ${model.name}`),
    h("div", { class: "summary" }, chips, moves, h("div", { class: "tools" }, undo, clear, draw, complete,
      h("label", { class: "push small quiet" }, h("span", { class: "swatch before" }), "compared with ", against),
      h("label", { class: "small quiet" }, "Order ", order), h("label", { class: "small quiet" }, "Find ", find))),
    trouble, drawn, cards);

  function fail(error) {
    trouble.replaceChildren(problem(error));
    trouble.scrollIntoView({ block: "nearest" });
  }

  // One request at a time, and the newest state next: while a slider is dragged, the page is redrawn as fast as answers
  // come. A newer state does not wait for an answer that takes long.
  let current = null, next = null;
  function load(begin, { step = true } = {}) {
    next = { begin, step: step || (next !== null && next.step) };
    if (current) setTimeout((own) => { if (own && own === current?.controller) own.abort(); }, Math.max(0, current.start + LONG - performance.now()), current.controller);
    else current = { done: answerAll() };
    return current.done;
  }

  async function answerAll() {
    await null; // until `current` is set
    while (next) {
      const { begin, step } = next;
      next = null;
      Object.assign(current, { controller: new AbortController(), start: performance.now() });
      await show(begin, step, current.controller.signal);
    }
    current = null;
  }

  async function show(begin, step, signal) {
    if (step) state.last = state.now || state.base;
    try {
      const given = new Map(state.given);
      const found = given.size ? await conditionals(given, signal) : { log_prob: 0, columns: [...state.base.values()] };
      state.now = asMap(found);
      state.logProb = found.log_prob;
      state.shownGiven = given;
      trouble.replaceChildren(...unseen(found));
      render();
      requestAnimationFrame(() => setTimeout(() => performance.measure("made:redraw", { start: begin, end: performance.now() })));
    } catch (error) {
      if (next) return; // the newer state is what counts
      state.now = state.now || state.base;
      state.logProb = undefined;
      render();
      fail(error);
    }
  }

  // All that happens between two releases of a slider is one step.
  function change(given, { keep = false, dragging = false } = {}) {
    const begin = performance.now(), step = !(dragging && state.dragging);
    if (step && !keep) state.undo.push(new Map(state.given));
    state.dragging = dragging;
    state.given = given;
    go(model.name, "what-if", write(given), { replace: !step });
    return load(begin, { step });
  }

  function set(name, value, options) {
    const given = new Map(state.given);
    if (value === undefined) given.delete(name); else given.set(name, value);
    return change(given, options);
  }

  // Cards are made once and updated in place, so that the focus stays where it is.
  const made = new Map();
  function card(column) {
    if (made.has(column.name)) return made.get(column.name);
    const build = column.values.length ? listed : numeric;
    const about = h("span", { class: "about" });
    const unset = h("button", { class: "clear", type: "button", hidden: true, "aria-label": `Clear ${column.name}`, onclick: () => set(column.name, undefined) }, "clear");
    const body = h("div");
    const node = h("section", { class: "card", id: `column-${model.columns.indexOf(column)}`, tabindex: "-1", "aria-label": column.name },
      h("div", { class: "head" }, h("h2", {}, column.name), about, unset), body);
    const draw = build(column, body);
    const found = { node, update(now, before) {
      const isSet = state.given.has(column.name);
      node.classList.toggle("set", isSet);
      unset.hidden = !isSet;
      const moved = now && before && state.shownGiven && state.shownGiven.size ? distance(now, before) : 0;
      about.className = moved >= 0.01 ? "about moved" : "about";
      about.textContent = isSet ? "set" : moved >= 0.01 ? `moved ${percent(moved)}` : kindOf(column);
      about.title = !isSet && moved >= 0.01 ? "How much of the probability is now elsewhere (total variation distance)" : "";
      draw(now, before);
    } };
    made.set(column.name, found);
    return found;
  }

  function listed(column, body) {
    const list = h("ul", { class: "values" });
    const more = h("button", { class: "clear", type: "button", onclick: () => { state.all.add(column.name); render(); }, hidden: true });
    body.append(list, more);
    const rows = new Map();
    const base = state.base.get(column.name);
    const ranked = column.values.map((value, index) => index);
    if (!column.ordered && column.values.length > MOST_VALUES) ranked.sort((a, b) => base.probabilities[b] - base.probabilities[a]);
    return (now, before) => {
      const chosen = state.given.get(column.name);
      const visible = state.all.has(column.name) || ranked.length <= MOST_VALUES + 1 ? ranked
        : ranked.filter((index, place) => place < MOST_VALUES || column.values[index] === chosen);
      more.hidden = visible.length === ranked.length;
      more.textContent = `${ranked.length - visible.length} more values`;
      place(list, visible.map((index) => {
        const value = column.values[index];
        if (!rows.has(index)) {
          const share = h("span", { class: "share" });
          const control = h("button", { class: "value", type: "button", onclick: () => set(column.name, state.given.get(column.name) === value ? undefined : value) },
            h("span", { class: "name" }, shown(value, column)), share, h("span"));
          rows.set(index, { control, share, item: h("li", {}, control) });
        }
        const { control, share, item } = rows.get(index);
        const pressed = chosen === value && chosen !== undefined;
        const was = before.probabilities[index];
        const is = now ? now.probabilities[index] : pressed ? 1 : 0;
        share.textContent = now ? percent(is) : pressed ? "set" : "";
        control.setAttribute("aria-pressed", pressed);
        control.setAttribute("aria-label", `${column.name}: ${shown(value, column)}, ${now ? `${percent(is)}, ${percent(was)} before` : pressed ? "set" : "not set"}`);
        control.title = now ? `${percent(is)} now, ${percent(was)} before` : "";
        control.lastChild.replaceWith(shareBar(is, was));
        return item;
      }));
    };
  }

  function numeric(column, body) {
    const base = state.base.get(column.name);
    const dates = isDate(column), scale = scaleOf(base);
    const low = firstValue(column, base), high = lastValue(column, base);
    const steps = column.step > 0 && base.scale === "linear" && (high - low) / column.step <= 1000 ? Math.round((high - low) / column.step) : 500;
    const snap = (value) => (column.step > 0 ? low + column.step * Math.round((value - low) / column.step) : value);
    const tidy = (value) => Number(snap(value).toPrecision(column.step > 0 ? 12 : 4));
    const atPlace = (place) => tidy(base.scale === "log" ? scale.value(place / steps) : low + (high - low) * place / steps);
    const placeOf = (value) => Math.round(steps * (base.scale === "log" ? scale.place(value) : (value - low) / (high - low || 1)));
    const given = () => (dates ? seconds(state.given.get(column.name)) : state.given.get(column.name));
    const value = (real) => (dates ? moment(real, column) : real);
    const plot = h("div");
    const slider = h("input", { class: "slide", type: "range", min: 0, max: steps, step: 1, "aria-label": `${column.name}, slider`,
      oninput: () => set(column.name, value(atPlace(Number(slider.value))), { dragging: true }),
      onchange: () => { state.dragging = false; } });
    const type = dates ? (column.dtype === "date" ? "date" : "datetime-local") : "text";
    const wrong = h("div");
    const refuse = (text) => {
      const said = text !== null && h("p", { class: "problem small", role: "alert" }, `${column.name}: '${text}' is not a ${dates ? "date" : "number"}.`);
      wrong.replaceChildren(...(said ? [said] : []));
      typed.setAttribute("aria-invalid", text !== null);
    };
    const typed = h("input", { type, inputmode: "decimal", "aria-label": `${column.name}, value`, placeholder: "unknown", onchange: () => {
      const text = typed.value.trim(), read = dates ? seconds(text) : typedNumber(text);
      refuse(text === "" || Number.isFinite(read) ? null : text);
      if (text === "") { if (state.given.has(column.name)) set(column.name, undefined); }
      else if (Number.isFinite(read)) set(column.name, dates ? text : read);
    } });
    const stats = h("div", { class: "stats" });
    const end = (real) => h("span", { class: "end", "aria-hidden": "true" }, rounded(real, column));
    body.append(plot, slider, h("div", { class: dates ? "numbers dates" : "numbers" }, end(low), typed, end(high)), wrong, stats);
    return (now, before) => {
      const isSet = state.given.has(column.name) && state.given.get(column.name) !== null;
      plot.replaceChildren(histogram(column, now, before, isSet ? given() : null));
      const where = isSet ? placeOf(given()) : placeOf(base.quantiles[1]);
      if (Number(slider.value) !== where && document.activeElement !== slider) slider.value = where;
      slider.setAttribute("aria-valuetext", isSet ? shown(given(), column) : "unknown");
      if (document.activeElement !== typed) refuse(null);
      if (document.activeElement !== typed) typed.value = isSet ? (dates ? state.given.get(column.name) : String(given())) : "";
      const stat = (name, text, title) => h("span", { title }, `${name} `, h("b", {}, text));
      stats.replaceChildren(...(now ? [stat("mean", rounded(now.mean, column), `before: ${rounded(before.mean, column)}`),
        stat("median", rounded(now.quantiles[1], column)), stat("5–95 %", `${rounded(now.quantiles[0], column)} – ${rounded(now.quantiles[2], column)}`),
        column.missing ? h("button", { class: "clear", type: "button", "aria-label": `${column.name}: missing, ${percent(now.missing)}`, onclick: () => set(column.name, null) }, `missing ${percent(now.missing)}`) : null].filter(Boolean) : []));
    };
  }

  function sentence(column, now, before) {
    const span = ({ quantiles }) => `${rounded(quantiles[0], column)} – ${rounded(quantiles[2], column)}`;
    if (!column.values.length && Math.abs(now.mean - before.mean) < before.standard_deviation / 5) return [`5–95 % ${span(before)} → `, h("b", {}, span(now))];
    if (!column.values.length) return [`mean ${rounded(before.mean, column)} → `, h("b", {}, rounded(now.mean, column))];
    let most = 0;
    now.probabilities.forEach((share, index) => {
      if (Math.abs(share - before.probabilities[index]) > Math.abs(now.probabilities[most] - before.probabilities[most]) + 1e-12) most = index;
    });
    return [`${shown(column.values[most], column)} ${percent(before.probabilities[most])} → `, h("b", {}, percent(now.probabilities[most]))];
  }

  const written = (name, value) => `${name} = ${typeof value === "string" ? value : shown(value, model.byName.get(name))}`;

  function render() {
    const before = state.against === "last" && state.last ? state.last : state.base;
    const given = state.given;
    chips.replaceChildren(...(given.size ? [...given].map(([name, value]) => {
      const text = written(name, value);
      return h("span", { class: "chip" }, text, h("button", { type: "button", "aria-label": `Clear ${text}`, onclick: () => set(name, undefined) }, "×"));
    }) : [h("span", { class: "quiet" }, "Nothing is set. Click a value, or move a slider: all other columns answer at once.")]), logp);
    logp.textContent = given.size && state.logProb !== undefined ? `log p of what is set: ${number(state.logProb, 5)}` : "";
    logp.title = given.size && state.logProb !== undefined ? `p = ${Math.exp(state.logProb).toPrecision(4)}; a density, if numbers are set` : "";
    const measured = model.columns.filter((column) => state.now && state.now.has(column.name)).map((column) => {
      const was = before.get(column.name) || state.base.get(column.name);
      return { column, moved: distance(state.now.get(column.name), was), was };
    }).sort((a, b) => b.moved - a.moved);
    const far = given.size ? measured.filter((each) => each.moved >= 0.005).slice(0, MOST_MOVES) : [];
    moves.replaceChildren(...(far.length ? [h("span", { class: "quiet" }, "Moved most:"), ...far.map(({ column, was }) =>
      h("a", { href: `#column-${model.columns.indexOf(column)}`, onclick: (event) => { event.preventDefault(); const { node } = card(column); node.scrollIntoView({ block: "center" }); node.focus({ preventScroll: true }); } },
        h("strong", {}, column.name), " ", ...sentence(column, state.now.get(column.name), was)))] : []));
    undo.disabled = !state.undo.length;
    clear.disabled = !given.size;
    let order = model.columns;
    if (state.order === "moved") {
      const rank = new Map(measured.map(({ column }, index) => [column, index]));
      order = [...order].sort((a, b) => (given.has(b.name) - given.has(a.name)) || ((rank.get(a) ?? -1) - (rank.get(b) ?? -1)));
    }
    const fitting = order.filter((column) => !state.find || column.name.toLowerCase().includes(state.find));
    const visible = fitting.filter((column, index) => index < MOST_CARDS || given.has(column.name));
    const nodes = visible.map((column) => {
      const found = card(column);
      found.update(state.now && state.now.get(column.name), before.get(column.name) || state.base.get(column.name));
      return found.node;
    });
    place(cards, nodes);
    if (far.length) say(`${given.size} set. Moved most: ${far.slice(0, 2).map(({ column, was }) => `${column.name}, ${sentence(column, state.now.get(column.name), was).map((each) => each.textContent ?? each).join("")}`).join("; ")}.`);
    else if (given.size) say("Set. Nothing else moved.");
    document.getElementById("main").dataset.given = JSON.stringify(Object.fromEntries(state.shownGiven || []));
  }

  async function drawRows() {
    try {
      const given = state.given, known = [...given].map((each) => written(...each)).join(", ");
      const found = await ask(`${model.path}/sample`, { body: { count: DRAWN, given: Object.fromEntries(given), random_state: Math.floor(Math.random() * 2 ** 32) } });
      drawn.hidden = false;
      drawn.replaceChildren(h("div", { class: "tools" }, h("h2", {}, `${found.rows.length} rows drawn${known ? `, given ${known}` : ""}`), h("span", { class: "push" }),
        button("Draw again", drawRows), button("Close", () => { drawn.hidden = true; draw.focus(); })), h("p"), rowsTable(model, found.rows));
      drawn.scrollIntoView({ block: "nearest" });
      say(`${found.rows.length} rows drawn.`);
    } catch (error) { fail(error); }
  }

  // The value of a column that nothing sets. `filled` is the row with most likely numbers; where "missing" is a value of
  // its own, a row cannot leave the column open, and its distribution says what is most likely.
  function likely(column, now, filled) {
    if (column.values.length) return column.values[now.probabilities.indexOf(Math.max(...now.probabilities))];
    if (!column.missing) return filled[column.name];
    return now.missing >= 0.5 ? null : isDate(column) ? moment(now.quantiles[1], column) : now.quantiles[1];
  }

  const certainty = (column, now) => (column.values.length ? Math.max(...now.probabilities) : -now.standard_deviation / (state.base.get(column.name).standard_deviation || 1));

  // The surest columns first, the others given these: most likely values that are found apart need not fit each other.
  async function completion() {
    const begin = state.given, found = new Map(begin);
    const open = model.columns.filter(({ name }) => !begin.has(name));
    try {
      for (const part of [open.filter(({ values }) => values.length), open.filter(({ values }) => !values.length)]) {
        for (let rounds = Math.min(part.length, MOST_ROUNDS); rounds > 0; rounds -= 1) {
          const now = asMap(await conditionals(found)), known = Object.fromEntries(found);
          const filled = part[0].values.length ? null : (await ask(`${model.path}/impute?strategy=mode`, { body: { rows: [known] } })).rows[0];
          part.sort((a, b) => certainty(b, now.get(b.name)) - certainty(a, now.get(a.name)));
          for (const column of part.splice(0, Math.ceil(part.length / rounds))) found.set(column.name, likely(column, now.get(column.name), filled));
        }
      }
      if (begin === state.given) await change(new Map(model.columns.map(({ name }) => [name, found.get(name)]))); // else something has been set since
    } catch (error) { fail(error); }
  }

  await load(performance.now());
  return { update: (options) => {
    const given = parse(options, model);
    if (write(given).toString() === write(state.given).toString()) return null;
    state.undo.push(state.given);
    state.given = given;
    return load(performance.now());
  } };
}
