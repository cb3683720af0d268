"use strict";

// Numbers and tokens in the words of the terminal's tables, and elements to put them in.

const NOT_FINITE = "n/a";

/** An element with attributes and children; strings become text, never markup. */
function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/** A probability: three decimals, or its order of magnitude. */
function probability(value) {
  if (value === null) return NOT_FINITE;
  if (value >= 0.9995) return "1.00";
  return value >= 0.001 ? value.toFixed(3).replace(/^0/, "") : short(value);
}

/** One significant digit and no idle zeros: 2e-6, 0.3. */
function short(value) {
  if (value === null) return NOT_FINITE;
  if (Math.abs(value) >= 10 && Math.abs(value) < 1000) return value.toFixed(0);
  if (value === 0 || (Math.abs(value) >= 0.01 && Math.abs(value) < 10)) {
    return String(Number(value.toPrecision(1)));
  }
  return value.toExponential(0).replace("e+", "e");
}

function nats(value) {
  if (value === null) return NOT_FINITE;
  return (Math.round(value * 100) / 100 + 0).toFixed(2);
}

function signed(value, digits = 2) {
  if (value === null) return NOT_FINITE;
  const text = Math.abs(value).toFixed(digits);
  return (value < 0 ? "\u2212" : "+") + text;
}

/** Three significant digits, without an exponent where that is short. */
function measured(value) {
  if (value === null) return NOT_FINITE;
  const size = Math.abs(value);
  if (value === 0) return "0";
  if (size >= 0.001 && size < 100000) {
    const digits = size < 1 ? 3 : Math.max(0, 2 - Math.floor(Math.log10(size)));
    return minus(value.toFixed(digits));
  }
  return minus(value.toExponential(2).replace("e+", "e"));
}

/** A fraction in percent; what is there never reads as nothing. */
function share(value) {
  return value > 0 && value < 0.0001 ? "<0.01%" : `${(100 * value).toFixed(2)}%`;
}

function minus(text) {
  return text.replace(/^-/, "\u2212");
}

function whole(value) {
  return value === null ? NOT_FINITE : value.toLocaleString("en-US");
}

function count(number, noun) {
  return `${whole(number)} ${noun}${number === 1 ? "" : "s"}`;
}

/** The token's display string; spaces are real and have a visible sign, and directions stay inside. */
function token(text) {
  const parts = text.split(/( +)/).filter((part) => part !== "");
  const children = parts.map((part) =>
    part.startsWith(" ") ? make("span", { class: "space" }, part) : part,
  );
  return make("bdi", { class: "token", title: `"${text}"` }, children);
}

/** The display string of a token's id; one that the page does not hold has no text of its own. */
function textOf(report, id) {
  return report.tokens[id] ?? `<id ${id}>`;
}

/** The id that has this display string in a report, or null: another tokenizer has other ids. */
function idOf(report, text) {
  report.ids ??= new Map(Object.entries(report.tokens).map(([id, shown]) => [shown, Number(id)]));
  const unnamed = /^<id (\d+)>$/.exec(text);
  return report.ids.get(text) ?? (unnamed ? Number(unnamed[1]) : null);
}

/** What stands beside the target: the token, minus the foil where there is one. */
function tokenMinus(report, id, foil) {
  const shown = [token(textOf(report, id))];
  if (foil !== null && foil !== undefined) shown.push(" minus ", token(textOf(report, foil)));
  return shown;
}

/** "7.post" in words for a label: 7; "embed" as it is. */
function describePoint(point) {
  if (point === "embed") return "the embedding";
  const [layer, kind] = point.split(".");
  return kind === "mid" ? `after attention of block ${layer}` : `after block ${layer}`;
}
