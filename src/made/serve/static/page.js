// The page: which model, which view, and what is set, all of it in the address.

import { Refused, ask, h, problem, token } from "./dom.js";

const VIEWS = [["what-if", "What if"], ["ask", "Ask"], ["rows", "Rows"], ["model", "Model"]];
const modules = { "what-if": "./whatif.js", ask: "./ask.js", rows: "./rows.js", model: "./model.js" };
const main = document.getElementById("main");
const known = new Map(); // what has been read of each model
let models = [];
let turn = Promise.resolve(); // the view that is being shown, if any
let running = null; // the view that is shown: { view, model, update }

// The address is #model/view?options
export function address() {
  const [path, query] = location.hash.slice(1).split("?");
  const [model, view] = path.split("/").map(decodeURIComponent);
  return { model: models.includes(model) ? model : models[0], view: modules[view] ? view : "what-if", options: new URLSearchParams(query || "") };
}

export function link(model, view, options) {
  const query = options ? options.toString() : "";
  return `#${encodeURIComponent(model)}/${view}${query ? `?${query}` : ""}`;
}

export function go(model, view, options, { replace = false } = {}) {
  const where = link(model, view, options);
  if (where === location.hash) return;
  history[replace ? "replaceState" : "pushState"](null, "", where);
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
  document.getElementById("views").replaceChildren(...VIEWS.map(([key, name]) =>
    h("li", {}, h("a", { href: link(model, key), "aria-current": key === view ? "page" : null }, name))));
  document.getElementById("models").value = model;
  document.title = `${VIEWS.find(([key]) => key === view)[1]} – ${model} – made`;
  try {
    if (running && running.view === view && running.model === model) {
      await running.update(options);
      return;
    }
    const [found, shown] = await Promise.all([about(model), import(modules[view])]);
    main.replaceChildren();
    delete main.dataset.ready;
    running = { view, model, ...(await shown.start(main, found, options)) };
    main.dataset.ready = view;
  } catch (error) {
    running = null;
    main.replaceChildren(problem(error));
    if (error instanceof Refused && error.problem.status === 401) askToken();
  }
}

// One view after another: each reads the address when its turn comes, so the last address is the one that stays.
function navigate() {
  turn = turn.then(show);
}

function askToken() {
  const input = h("input", { type: "password", autocomplete: "off", required: true, id: "token" });
  main.replaceChildren(h("form", { class: "panel", onsubmit: (event) => {
    event.preventDefault();
    token.value = input.value.trim();
    sessionStorage.setItem("made-token", token.value);
    begin();
  } }, h("h1", {}, "This server asks for a token"), h("p", {}, h("label", { for: "token" }, "Token "), input),
  h("button", { class: "btn main" }, "Continue")));
  input.focus();
}

async function begin() {
  try {
    models = (await ask("/api/models")).map((each) => each.name);
  } catch (error) {
    main.replaceChildren(problem(error));
    if (error instanceof Refused && error.problem.status === 401) askToken();
    return;
  }
  const select = document.getElementById("models");
  select.replaceChildren(...models.map((name) => h("option", {}, name)));
  select.onchange = () => { location.hash = link(select.value, address().view); };
  select.parentElement.hidden = models.length < 2;
  navigate();
}

document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); main.focus(); });
addEventListener("hashchange", navigate);
begin();
