// The page: which model, which view, and what is set, all of it in the address.

import { Refused, ask, h, problem, store, token } from "./dom.js";

const VIEWS = [["what-if", "What if"], ["ask", "Ask"], ["rows", "Rows"], ["model", "Model"]];
const modules = { "what-if": "./whatif.js", ask: "./ask.js", rows: "./rows.js", model: "./model.js" };
const main = document.getElementById("main");
const known = new Map(); // what has been read of each model
let models = [];
const views = new Map(); // the views that have been shown, by model and view: { node, update }
const links = new Map(); // the last address of each of them
let turn = Promise.resolve(); // the view that is being shown, if any

function decoded(text) {
  try { return decodeURIComponent(text); } catch { return ""; } // cut in the middle of a character
}

// The address is #model/view?options
export function address() {
  const [path, query] = location.hash.slice(1).split("?");
  const [model, view] = path.split("/").map(decoded);
  return { model: models.includes(model) ? model : models[0], view: Object.hasOwn(modules, view) ? view : "what-if", options: new URLSearchParams(query || "") };
}

export function link(model, view, options) {
  const query = options ? options.toString() : "";
  return `#${encodeURIComponent(model)}/${view}${query ? `?${query}` : ""}`;
}

export function go(model, view, options, { replace = false } = {}) {
  const where = link(model, view, options);
  if (where !== location.hash) history[replace ? "replaceState" : "pushState"](null, "", where);
  remember(model, view, where);
}

// A view is returned to as it was left.
function remember(model, view, where) {
  links.set(`${model}/${view}`, where);
  for (const anchor of document.querySelectorAll("#views a")) {
    anchor.href = links.get(`${model}/${anchor.dataset.view}`) || link(model, anchor.dataset.view);
    if (anchor.dataset.view === view) anchor.setAttribute("aria-current", "page"); else anchor.removeAttribute("aria-current");
  }
}

async function about(model) {
  if (!known.has(model)) {
    const path = `/api/models/${encodeURIComponent(model)}`;
    const columns = await ask(`${path}/columns`);
    known.set(model, { name: model, path, columns, byName: new Map(columns.map((each) => [each.name, each])) });
  }
  return known.get(model);
}

async function show() {
  const { model, view, options } = address();
  remember(model, view, link(model, view, options));
  document.getElementById("models").value = model;
  document.title = `${VIEWS.find(([key]) => key === view)[1]} – ${model} – made`;
  try {
    const key = `${model}/${view}`;
    if (views.has(key)) {
      const { node, update } = views.get(key);
      if (node.parentElement !== main) main.replaceChildren(node);
      await update(options);
    } else {
      const [found, shown] = await Promise.all([about(model), import(modules[view])]);
      const node = h("div");
      main.replaceChildren(node);
      delete main.dataset.ready;
      views.set(key, { node, ...(await shown.start(node, found, options)) });
    }
    main.dataset.ready = view;
  } catch (error) {
    failed(error);
  }
}

// One view after another: each reads the address when its turn comes, so the last address is the one that stays.
function navigate() {
  turn = turn.then(show);
}

function failed(error) {
  if (error instanceof Refused && error.problem.status === 401) askToken(token.value && problem(error));
  else main.replaceChildren(problem(error));
}

function askToken(refusal) {
  const input = h("input", { type: "password", autocomplete: "off", required: true, id: "token" });
  main.replaceChildren(h("form", { class: "panel", onsubmit: (event) => {
    event.preventDefault();
    token.value = input.value.trim();
    store("sessionStorage", "made-token", token.value);
    begin();
  } }, h("h1", {}, "This server asks for a token"), refusal || null, h("p", {}, h("label", { for: "token" }, "Token "), input),
  h("button", { class: "btn main" }, "Continue")));
  input.focus();
}

async function begin() {
  try {
    models = (await ask("/api/models")).map((each) => each.name);
  } catch (error) {
    failed(error);
    return;
  }
  document.getElementById("views").replaceChildren(...VIEWS.map(([key, name]) => h("li", {}, h("a", { "data-view": key }, name))));
  const select = document.getElementById("models");
  select.replaceChildren(...models.map((name) => h("option", {}, name)));
  select.onchange = () => { location.hash = link(select.value, address().view); };
  select.parentElement.hidden = models.length < 2;
  navigate();
}

document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); main.focus(); });
addEventListener("hashchange", navigate);
begin();
