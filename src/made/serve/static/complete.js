// What could stand at a place of a question, in the language of `made ask`.

import { kindOf } from "./dom.js";

const MOST_OPTIONS = 12;
const LETTERS = String.raw`[\p{L}\p{N}_.+\-/:%]`; // of a bare word
const TICK = "`";
const NAME = String.raw`(${TICK}(?:[^${TICK}]|${TICK}${TICK})*${TICK}|"(?:[^"]|"")*"|${LETTERS}+)`;
const AT_VALUE = new RegExp(String.raw`${NAME}\s*(?:=|!=|<=|>=|<|>|\bin\s*[{(](?:[^{}()]*,)?)\s*(['"]?)([^'"=<>|(){},]*)$`, "iu");
const AT_OPERATOR = new RegExp(String.raw`(?:^|[\s(|])${NAME}\s+(${LETTERS}*)$`, "u");
const AT_END = new RegExp(String.raw`(?:[=<>]\s*(?:'[^']*'|"[^"]*"|${LETTERS}+)|[})]|\bmissing|\band\s+${LETTERS}+)\s+(${LETTERS}*)$`, "iu");
const AT_MISSING = /\sis\s+(\p{L}*)$/iu;
const AT_NUMBER = /(?:\bbetween\s+\S*(?:\s+and\s+\S*)?|['"])$/i; // or after a quote: nothing can be completed
const AT_NAME = new RegExp(String.raw`(?:${TICK}([^${TICK}]*)|(${LETTERS}*))$`, "u");

const quoted = (text, mark) => `${mark}${text.replaceAll(mark, mark + mark)}${mark}`;
const isKeyword = (word) => /^(and|or|not|in|between|is)$/i.test(word);
const isBare = (name) => new RegExp(`^${LETTERS}+$`, "u").test(name) && !isKeyword(name) && !Number.isFinite(Number(name));
export const writtenName = (name) => (isBare(name) ? name : quoted(name, TICK));
export const writtenValue = (value) => (typeof value === "string" ? quoted(value, "'") : String(value));

function unquoted(text) {
  const mark = text[0];
  return mark === TICK || mark === '"' ? text.slice(1, -1).replaceAll(mark + mark, mark) : text;
}

// What could stand at the caret: the values of a column after a comparison, a comparison after a column, a word after a
// comparison with a value, otherwise columns.
export function complete(text, caret, columns) {
  const before = text.slice(0, caret), byName = (name) => (isKeyword(name) ? undefined : columns.find((each) => each.name === unquoted(name)));
  const options = (texts, typed, about, from) => texts.filter((each) => each.toLowerCase().startsWith(typed.toLowerCase()) && each !== typed)
    .slice(0, MOST_OPTIONS).map((each) => ({ text: each, about, from }));
  const value = AT_VALUE.exec(before);
  const column = value && byName(value[1]);
  const typing = value && value[3].toLowerCase();
  const fits = column ? column.values.filter((each) => each !== null && String(each).toLowerCase().startsWith(typing)) : [];
  if (column && (fits.length || value[2] || !/\S\s/.test(typing))) {
    const from = caret - value[3].length - value[2].length;
    return fits.filter((each) => writtenValue(each) !== value[3]).slice(0, MOST_OPTIONS).map((each) => ({ text: writtenValue(each), about: column.name, from }));
  }
  const after = AT_OPERATOR.exec(before);
  const compared = after && byName(after[1]);
  if (compared) {
    const orders = compared.ordered && compared.values.length !== 2 ? ["<", "<=", ">", ">=", "between"] : [];
    const missing = compared.missing ? ["is missing", "is not missing"] : [];
    const equal = compared.values.length ? ["=", "!=", "in {"] : [];
    return options([...equal, ...orders, ...missing], after[2], "", caret - after[2].length);
  }
  const missing = AT_MISSING.exec(before);
  if (missing) return options(["missing", "not missing"], missing[1], "", caret - missing[1].length);
  const end = AT_END.exec(before);
  if (end) return options(["and", "or", "|"], end[1], "", caret - end[1].length);
  if (AT_NUMBER.test(before)) return [];
  const word = AT_NAME.exec(before), typed = (word[1] ?? word[2]).toLowerCase(), from = caret - word[0].length;
  // A name with spaces, of which more than the last word has been typed.
  const begun = ({ name }) => [...name].map((_, index) => name.length - index).find((length) => length > typed.length && before.toLowerCase().endsWith(name.slice(0, length).toLowerCase())) || 0;
  const names = columns.filter((each) => (each.name.toLowerCase().includes(typed) || begun(each)) && writtenName(each.name) !== word[0])
    .sort((a, b) => b.name.toLowerCase().startsWith(typed) - a.name.toLowerCase().startsWith(typed))
    .map((each) => ({ text: writtenName(each.name), about: kindOf(each), from: word[1] === undefined && begun(each) ? caret - begun(each) : from }));
  return [...(typed && word[1] === undefined ? options(["not"], typed, "", from) : []), ...names].slice(0, MOST_OPTIONS);
}
