// The panels below the grid. Each is a function of a report and a column, and returns elements.

/** Panels stand in two columns, each as high as it needs: a panel covers so many thin rows. */
const stack = new ResizeObserver((entries) => {
  for (const { target } of entries) target.style.gridRowEnd = `span ${Math.ceil(target.offsetHeight + 16)}`;
});

function panel(id, question, ...children) {
  const element = make("section", { class: "panel", "aria-labelledby": id }, make("h2", { id }, question), ...children);
  stack.observe(element);
  return element;
}

/** One sentence on what the model says at a column, and since where. */
function answerAt(report, j) {
  const { lens } = report;
  const last = lens.points.length - 1;
  if (lens.top_probs[last][j][0] === null) return ["The last point shown is not finite here."];
  const told = [
    `After position ${lens.positions[j]}, `,
    token(textOf(report, report.source.ids[lens.positions[j]])),
    `, ${lens.points[last] === `${report.n_layers - 1}.post` ? report.model : lens.points[last]} says `,
    token(textOf(report, lens.top_ids[last][j][0])),
    ` (${probability(lens.top_probs[last][j][0])})`,
  ];
  const settled = lens.settled[j];
  const flips = count(lens.flips[j], "flip");
  if (settled === null) return [...told, "."];
  return [
    ...told,
    settled === 0 ? ", which is on top at every point" : `, on top from ${lens.points[settled]} on`,
    lens.flips[j] ? `, after ${flips}` : "",
    `; it leads by ${nats(lens.margin[last][j])} nats.`,
  ];
}

/** Every token that leads somewhere at the column, over depth. */
function depthPanel(report, j) {
  const { lens } = report;
  if (!lens.followed) return [];
  const leaders = lens.followed[j];
  const own = lens.own?.id[j];
  const kinds = ["c1", "c2", "c3", "c4", "c5", "c6"];
  const others = leaders.filter(({ id }) => id !== own);
  const series = leaders.map(({ id, prob }) => ({
    label: `"${textOf(report, id)}"`,
    values: prob,
    kind: id === own ? "own" : kinds[others.findIndex((one) => one.id === id) % kinds.length],
  }));
  const highest = leaders.flatMap(({ prob }) => prob).reduce((a, b) => Math.max(a, b ?? 0), 1e-9);
  const told = (i) => [
    `${lens.points[i]}: `,
    ...leaders.flatMap(({ id, prob }, k) => [k ? ", " : "", token(textOf(report, id)), ` ${probability(prob[i])}`]),
  ];
  const dropped = lens.earlier[j];
  return [
    lineChart("Probability of every token that leads at some point, over depth", lens.points, {
      series,
      low: 0,
      high: highest > 0.5 ? 1 : highest,
      format: (value) => String(Number(value.toPrecision(2))),
      told,
      hint: "every token that leads somewhere; point at the chart to read it",
    }),
    dropped > 0 ? make("p", { class: "faint" }, `${count(dropped, "earlier leader")} not drawn`) : null,
  ];
}

/** Where every position's answer came to stay. */
function settledPanel(report, chosen, choose) {
  const { lens } = report;
  const description = "The point from which the final answer stays on top, by position";
  const host = chart(description, (width) => {
    const height = 30 + 16 * Math.min(lens.points.length, 14);
    const box = { left: 58, right: width - 10, top: 10, bottom: height - 24 };
    const n = lens.positions.length;
    const each = (box.right - box.left) / n;
    const x = (j) => box.left + (j + 0.5) * each;
    const y = scale(0, Math.max(1, lens.points.length - 1), box.bottom - 4, box.top + 4);
    const drawn = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}` });
    const every = Math.ceil(lens.points.length / 14);
    lens.points.forEach((point, i) => {
      if ((lens.points.length - 1 - i) % every) return;
      drawn.append(
        svg("line", { class: "rule", x1: box.left, x2: box.right, y1: y(i), y2: y(i) }),
        svg("text", { class: "tick", x: box.left - 6, y: y(i) + 4, "text-anchor": "end" }, point),
      );
    });
    const marks = lens.settled.map((from, j) => {
      if (from === null) return null;
      const kind = j === chosen ? "dot chosen" : "dot";
      const told = `position ${lens.positions[j]}: settled at ${lens.points[from]}`;
      const radius = Math.max(1.5, Math.min(5, each / 2.4));
      return svg("circle", { class: kind, cx: x(j), cy: y(from), r: j === chosen ? radius + 2 : radius }, svg("title", {}, told));
    });
    drawn.append(...marks.filter((mark) => mark !== null));
    drawn.append(...xLabels(lens.positions.map(String), x, box.right - box.left, height - 7));
    drawn.addEventListener("click", (event) => {
      const left = event.clientX - drawn.getBoundingClientRect().left;
      choose(Math.min(n - 1, Math.max(0, Math.floor((left - box.left) / each))));
    });
    return drawn;
  });
  return [make("figure", {}, host, make("p", { class: "readout" }, `the point from which the final answer stays on top, by position. ${lens.flips_told}`))];
}

function normsPanel(report, position) {
  const { norms } = report;
  const at = norms.positions.indexOf(position);
  const series = [{ label: "median", values: norms.median, kind: "own" }];
  for (const apart of norms.apart) {
    const j = norms.positions.indexOf(apart);
    if (j >= 0 && apart !== position) {
      series.push({ label: `position ${apart}`, values: norms.l2.map((row) => row[j]), kind: "apart" });
    }
  }
  if (at >= 0 && norms.positions.length > 1) {
    const kind = norms.apart.includes(position) ? "apart" : "c1";
    series.push({ label: `position ${position}`, values: norms.l2.map((row) => row[at]), kind });
  }
  const told = (i) => [
    `${norms.points[i]}: `,
    series.map(({ label, values }) => `${label} ${measured(values[i])}`).join(", "),
  ];
  const band = norms.low.every((value) => value !== null) ? { low: norms.low, high: norms.high } : null;
  return [
    lineChart("L2 norm of the residual stream over depth", norms.points, {
      series,
      band,
      log: true,
      format: (value) => minus(String(Number(value.toPrecision(2)))),
      told,
      hint: `L2 norm, logarithmic; median and range over ${norms.over}`,
    }),
    writesOf(norms, at),
    make("ul", { class: "notes" }, norms.notes.map((note) => make("li", {}, note))),
  ];
}

/** What attention and MLP wrote at a position, layer by layer. */
function writesOf(norms, at) {
  if (at < 0 || !norms.attention.length) return null;
  const [attention, mlp] = [norms.attention, norms.mlp].map((rows) => rows.map((row) => row[at]));
  const labels = norms.layers.map(String);
  return lineChart("L2 norm of what attention and MLP write, by layer", labels, {
    series: [
      { label: "attention", values: attention, kind: "attention" },
      { label: "MLP", values: mlp, kind: "mlp" },
    ],
    height: 150,
    low: 0,
    high: [...attention, ...mlp].reduce((a, b) => Math.max(a, b ?? 0), 1e-6),
    format: (value) => minus(String(Number(value.toPrecision(3)))),
    told: (i) => [`block ${labels[i]}: attention wrote ${measured(attention[i])}, MLP ${measured(mlp[i])}`],
    hint: `L2 norm of what each block's sublayers wrote at position ${norms.positions[at]}`,
  });
}

/** Which step moved the answer, and what its logit is made of. */
function attributionPanel(report, position) {
  const { points, components, each } = report.attribution;
  const found = each.find((one) => one.position === position);
  if (!found) return [absent(each.map((one) => one.position), "attribution")];
  const steps = points.map((point, i) => {
    const [layer, sublayer] = point.split(".");
    const kind = point === "embed" ? "embed" : sublayer === "mid" ? "attention" : "mlp";
    const label = point === "embed" ? "embed" : layer;
    const writer = { embed: "embedding", attention: `attention of block ${layer}`, mlp: `MLP of block ${layer}` }[kind];
    return { label: kind === "attention" ? "" : label, kind, writer, level: found.logprob[i], delta: found.delta[i], point };
  });
  const what = found.foil === null ? "log-probability" : "log-probability difference";
  const told = (i) => {
    const { writer, delta, level, kind } = steps[i];
    return [kind === "embed" ? `embedding: ${signed(level)} nats` : `${writer}: ${signed(delta)} nats, to ${signed(level)}`];
  };
  const rows = found.largest.map((component, i) => {
    const label = components[component];
    return { label, value: found.direct[i], kind: kindOf(label) };
  });
  if (found.others) rows.push({ label: count(found.others, "other"), value: found.rest, kind: "rest" });
  return [
    make("p", {}, "of ", tokenMinus(report, found.target, found.foil), ` after position ${position}`),
    make("h3", {}, `Waterfall: ${what}, step by step`),
    keyOf([["attention", "attention"], ["mlp", "MLP"], ["embed", "embedding"]]),
    waterfall(`Waterfall of the ${what} over the points of the stream`, steps, told),
    make("h3", {}, `Direct: what the logit ${measured(found.logit)} is a sum of`),
    signedBars(rows),
    make("p", { class: "faint" }, "ln_final's scale frozen at its final value; the two readings answer different questions"),
  ];
}

function kindOf(component) {
  if (/\.mlp$/.test(component)) return "mlp";
  return /(\.attn|\.attn_bias|^L\d+H\d+)$/.test(component) ? "attention" : "embed";
}

function keyOf(entries) {
  return make("p", { class: "key" }, entries.map(([kind, name]) => make("span", {}, make("i", { class: kind, "aria-hidden": "true" }), name)));
}

function absent(positions, what) {
  const ends = positions.length > 1 ? `${positions[0]} to ${positions.at(-1)}` : String(positions[0]);
  return make("p", { class: "faint" }, `The page holds ${what} for position${positions.length > 1 ? "s" : ""} ${ends} only; --positions chooses others.`);
}

function memoryPanel(report, position) {
  const { memory } = report;
  const here = memory.name.map((_, i) => i).filter((i) => memory.pos[i] === position);
  if (!here.length) return [absent(memory.positions, "neurons")];
  const hasShare = memory.target !== null;
  const head = ["neuron", "coefficient", "writes", hasShare ? ["logit of ", token(textOf(report, memory.target))] : null, "promotes"];
  const list = (ids) => ids.flatMap((id) => [token(textOf(report, id)), " "]);
  const rows = here.map((i) =>
    make(
      "tr",
      {},
      make("th", { scope: "row" }, memory.name[i]),
      make("td", {}, minus(nats(memory.coefficient[i]))),
      make("td", {}, measured(memory.writes[i])),
      hasShare ? make("td", {}, signed(memory.share[i])) : null,
      make(
        "td",
        { class: "promotes" },
        memory.coefficient[i] < 0 ? make("span", { class: "faint" }, "by its negative: ") : null,
        list(memory.promotes[i]),
      ),
    ),
  );
  return [
    make(
      "div",
      { class: "table", tabindex: 0, role: "region", "aria-label": "neurons" },
      make(
        "table",
        { class: "neurons" },
        make("thead", {}, make("tr", {}, head.filter((one) => one !== null).map((one) => make("th", { scope: "col" }, one)))),
        make("tbody", {}, rows),
      ),
    ),
    make("p", { class: "faint" }, `each layer's neurons by ${orderTold(memory.order)}; ${memory.projection}`),
  ];
}

function orderTold(order) {
  return { write: "the size of their write", coefficient: "coefficient", target: "the size of their share of the target's logit" }[order];
}

function paramsPanel(report) {
  return report.params.flatMap((model) => {
    const shown = model.parts.filter(({ number }) => number > 0);
    const bar = make("div", { class: "split", "aria-hidden": "true" });
    for (const { part, number } of shown) {
      const piece = make("span", { class: `part ${part}` });
      piece.style.flexGrow = String(number);
      bar.append(piece);
    }
    const rows = model.parts.map(({ part, name, number }) =>
      make(
        "tr",
        {},
        make("th", { scope: "row" }, make("i", { class: `part ${part}`, "aria-hidden": "true" }), name),
        make("td", {}, part === "unembedding" && !number && model.tied ? "tied" : whole(number)),
        make("td", {}, number ? share(number / model.total) : ""),
      ),
    );
    const each = model.blocks.map(({ which, attention, mlp, norms, total }) =>
      make("li", {}, `block ${which}: attention ${whole(attention)}, MLP ${whole(mlp)}, norms ${whole(norms)}; ${whole(total)} in all`),
    );
    return [
      report.params.length > 1 ? make("h3", {}, model.model) : null,
      bar,
      make(
        "table",
        { class: "parts" },
        make("thead", {}, make("tr", {}, ["part", "parameters", "share"].map((one) => make("th", { scope: "col" }, one)))),
        make("tbody", {}, rows),
        make("tfoot", {}, make("tr", {}, make("th", { scope: "row" }, "total"), make("td", {}, whole(model.total)), make("td", {}, "100%"))),
      ),
      make(
        "ul",
        { class: "notes" },
        make("li", {}, `MLP to attention: ${model.ratio_weights} in weights, ${model.ratio} with biases`),
        each,
        make("li", {}, `${model.bytes} in float32; counted from ${model.origin}`),
      ),
    ];
  });
}

function certificatePanel(report) {
  const rows = report.checks.map((check) =>
    make(
      "tr",
      { class: check.passed ? undefined : "alarm" },
      make("th", { scope: "row" }, make("span", { class: "faint" }, `${check.reading}: `), check.identity, check.times > 1 ? make("span", { class: "faint" }, ` (worst of ${check.times})`) : ""),
      make("td", {}, check.tolerance === 0 && check.passed ? "exact" : short(check.error)),
      make("td", {}, check.tolerance === 0 ? "exact" : short(check.tolerance)),
      make("td", {}, check.passed ? "holds" : `FAILED${check.where ? `: ${check.where}` : ""}`),
    ),
  );
  const failed = report.checks.filter((check) => !check.passed).length;
  return [
    make("p", {}, failed ? make("strong", { class: "alarm" }, `${count(failed, "check")} FAILED.`) : report.checks.length === 1 ? "The identity holds." : `All ${report.checks.length} identities hold on this run.`),
    make(
      "div",
      { class: "table", tabindex: 0, role: "region", "aria-label": "checks" },
      make(
        "table",
        {},
        make("thead", {}, make("tr", {}, ["identity", "error", "tolerance", ""].map((one) => make("th", { scope: "col" }, one)))),
        make("tbody", {}, rows),
      ),
    ),
    report.source.device === "none" ? null : make("p", { class: "faint" }, `${report.source.dtype} on ${report.source.device}; unmodified weights. resid verify holds a model against all identities, in float64 too.`),
  ];
}
