// Charts as SVG, drawn at the width that they get, so that their text keeps its size.

const SVG = "http://www.w3.org/2000/svg";

function svg(tag, attributes = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== null) element.setAttribute(name, value);
  }
  element.append(...children.flat());
  return element;
}

/** A place for a chart that is drawn again when its width changes; `draw(width)` returns SVG. */
function chart(description, draw) {
  const host = make("div", { class: "chart" });
  let width = 0;
  new ResizeObserver(() => {
    const now = Math.floor(host.clientWidth);
    if (now === width || now < 40) return;
    width = now;
    const drawn = draw(width);
    drawn.setAttribute("role", "img");
    drawn.setAttribute("aria-label", description);
    host.replaceChildren(drawn);
  }).observe(host);
  return host;
}

/** Round numbers between two ends, at most `most` of them. */
function ticks(low, high, most) {
  const raw = (high - low) / most || 1;
  const size = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((factor) => factor * size).find((one) => one >= raw);
  const first = Math.ceil(low / step - 1e-9);
  const last = Math.floor(high / step + 1e-9);
  return Array.from({ length: last - first + 1 }, (_, i) => (first + i) * step);
}

function logTicks(low, high) {
  const found = [];
  for (let power = Math.floor(Math.log10(low)); 10 ** power <= high; power++) {
    for (const factor of [1, 2, 5]) {
      const value = factor * 10 ** power;
      if (value >= low && value <= high) found.push(value);
    }
  }
  return found.length > 6 ? found.filter((value) => Math.log10(value) % 1 === 0) : found;
}

function scale(low, high, from, to, isLog = false) {
  const map = isLog ? Math.log : (value) => value;
  const span = map(high) - map(low) || 1;
  return (value) => from + ((map(value) - map(low)) / span) * (to - from);
}

/** Labels below a chart, as many as fit, the last one always. */
function xLabels(labels, x, width, y) {
  const widest = Math.max(...labels.map((label) => label.length)) * 7 + 8;
  const every = Math.max(1, Math.ceil((widest * labels.length) / width));
  return labels
    .map((label, i) => ({ label, i }))
    .filter(({ i }) => (labels.length - 1 - i) % every === 0)
    .map(({ label, i }) => svg("text", { x: x(i), y, class: "tick", "text-anchor": "middle" }, label));
}

/** Text labels at the right end of lines, moved apart so that none covers another. */
function spread(wanted, gap, low, high) {
  const order = wanted.map((y, i) => ({ y, i })).sort((a, b) => a.y - b.y);
  if (order.length) order[0].y = Math.max(low, order[0].y);
  for (let k = 1; k < order.length; k++) order[k].y = Math.max(order[k].y, order[k - 1].y + gap);
  let limit = high;
  for (const one of order.reverse()) {
    one.y = Math.max(low, Math.min(one.y, limit));
    limit = one.y - gap;
  }
  const found = [];
  for (const { y, i } of order) found[i] = y;
  return found;
}

/**
 * Lines over points.
 * @param options.series [{label, values, kind}] values null where there is nothing
 * @param options.log, options.low, options.high, options.format of the y axis
 * @param options.told(i) what the reader is told of point i when pointing at it
 */
function lineChart(description, labels, options) {
  const readout = make("p", { class: "readout", "aria-live": "polite" }, options.hint ?? " ");
  const host = chart(description, (width) => {
    const height = options.height ?? 220;
    const longest = Math.max(...options.series.map(({ label }) => label.length));
    const room = Math.min(150, Math.max(46, longest * 7.2 + 14), width * 0.36);
    const box = { left: 46, right: width - room, top: 10, bottom: height - 26 };
    const lines = [...options.series.map((one) => one.values), ...(options.band ? [options.band.low, options.band.high] : [])];
    const values = lines.flat().filter((value) => value !== null && (!options.log || value > 0));
    const low = options.low ?? values.reduce((a, b) => Math.min(a, b), Infinity);
    const high = options.high ?? values.reduce((a, b) => Math.max(a, b), low);
    const x = scale(0, Math.max(1, labels.length - 1), box.left + 6, box.right);
    const y = scale(low, high, box.bottom, box.top, options.log);
    const drawn = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}` });
    const marks = options.log ? logTicks(low, high) : ticks(low, high, 4);
    for (const value of marks.length ? marks : [low, high]) {
      drawn.append(
        svg("line", { class: "rule", x1: box.left, x2: box.right, y1: y(value), y2: y(value) }),
        svg("text", { class: "tick", x: box.left - 5, y: y(value) + 4, "text-anchor": "end" }, options.format(value)),
      );
    }
    drawn.append(...xLabels(labels, x, box.right - box.left, height - 8));
    if (options.band) drawn.append(bandOf(options.band, x, y));
    const ends = options.series.map(({ values: line }) => y(line.findLast((v) => v !== null) ?? low));
    const apart = spread(ends, 15, box.top + 4, box.bottom);
    options.series.forEach((one, k) => {
      const path = one.values
        .map((value, i) => (value === null || (options.log && value <= 0) ? null : `${x(i).toFixed(1)},${y(value).toFixed(1)}`))
        .filter((point) => point !== null)
        .join(" ");
      drawn.append(svg("polyline", { class: `line ${one.kind}`, points: path }));
      if (one.label) {
        drawn.append(endLabel(one, box.right + 7, apart[k] + 4, room - 9));
      }
    });
    const cross = svg("line", { class: "cross", y1: box.top, y2: box.bottom, visibility: "hidden" });
    drawn.append(cross);
    drawn.addEventListener("pointermove", (event) => {
      const left = event.clientX - drawn.getBoundingClientRect().left;
      const places = labels.map((_, i) => Math.abs(x(i) - left));
      const i = places.indexOf(Math.min(...places));
      cross.setAttribute("x1", x(i));
      cross.setAttribute("x2", x(i));
      cross.setAttribute("visibility", "visible");
      readout.replaceChildren(...options.told(i));
    });
    drawn.addEventListener("pointerleave", () => {
      cross.setAttribute("visibility", "hidden");
      readout.replaceChildren(options.hint ?? " ");
    });
    return drawn;
  });
  return make("figure", {}, host, readout);
}

/** A line's name in its own colour; cut where it is longer than the room, whole in its title. */
function endLabel(one, x, y, room) {
  const most = Math.max(3, Math.floor(room / 7));
  const text = one.label.length > most ? `${one.label.slice(0, most - 1)}…` : one.label;
  return svg("text", { class: `name ${one.kind}`, x, y }, text, svg("title", {}, one.label));
}

function bandOf({ low, high }, x, y) {
  const there = low.map((_, i) => i).filter((i) => low[i] !== null && high[i] !== null && low[i] > 0);
  const along = (values) => (i) => `${x(i).toFixed(1)},${y(values[i]).toFixed(1)}`;
  const points = [...there.map(along(high)), ...there.reverse().map(along(low))].join(" ");
  return svg("polygon", { class: "band", points });
}

/** A waterfall: each step from the last level to the next, coloured by who made it. */
function waterfall(description, steps, told) {
  const hint = "point at a bar to read it";
  const readout = make("p", { class: "readout", "aria-live": "polite" }, hint);
  const host = chart(description, (width) => {
    const height = 240;
    const box = { left: 46, right: width - 8, top: 12, bottom: height - 26 };
    const levels = steps.map((step) => step.level).filter((level) => level !== null);
    const low = Math.min(0, ...levels);
    const high = Math.max(0, ...levels);
    const y = scale(low, high, box.bottom, box.top);
    const each = (box.right - box.left) / steps.length;
    const x = (i) => box.left + (i + 0.5) * each;
    const drawn = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}` });
    for (const value of ticks(low, high, 4)) {
      drawn.append(
        svg("line", { class: "rule", x1: box.left, x2: box.right, y1: y(value), y2: y(value) }),
        svg("text", { class: "tick", x: box.left - 5, y: y(value) + 4, "text-anchor": "end" }, minus(String(Number(value.toPrecision(3))))),
      );
    }
    drawn.append(...xLabels(steps.map((step) => step.label), x, box.right - box.left, height - 8));
    const bar = Math.max(1.5, Math.min(26, each * 0.72));
    steps.forEach((step, i) => {
      if (step.level === null) return;
      const before = i ? steps[i - 1].level ?? 0 : 0;
      const [a, b] = [y(before), y(step.level)];
      const shape = svg("rect", {
        class: `step ${step.kind}`,
        x: x(i) - bar / 2,
        y: Math.min(a, b),
        width: bar,
        height: Math.max(1.5, Math.abs(a - b)),
      });
      const target = svg("rect", { class: "target", x: x(i) - each / 2, y: box.top, width: each, height: box.bottom - box.top });
      target.addEventListener("pointerenter", () => readout.replaceChildren(...told(i)));
      drawn.append(shape, target);
      if (i + 1 < steps.length) {
        drawn.append(svg("line", { class: "level", x1: x(i), x2: x(i + 1), y1: b, y2: b }));
      }
    });
    drawn.addEventListener("pointerleave", () => readout.replaceChildren(hint));
    return drawn;
  });
  return make("figure", {}, host, readout);
}

/** Bars to both sides of zero, a row each: [{label, value, kind}]. */
function signedBars(rows) {
  const most = Math.max(1e-9, ...rows.map(({ value }) => Math.abs(value ?? 0)));
  const list = make("div", { class: "signed", role: "list" });
  for (const { label, value, kind } of rows) {
    const bar = make("span", { class: `bar ${kind}` });
    const share = (50 * Math.abs(value ?? 0)) / most;
    bar.style.width = `${share}%`;
    bar.style.left = value < 0 ? `${50 - share}%` : "50%";
    list.append(
      make(
        "div",
        { class: "signed-row", role: "listitem" },
        make("span", { class: "label" }, label),
        make("span", { class: "track", "aria-hidden": "true" }, bar),
        make("span", { class: "number" }, signed(value)),
      ),
    );
  }
  return list;
}
