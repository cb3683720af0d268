// The page itself: one state, the panels that follow it, and what the reader can do.

const numbers = JSON.parse(document.getElementById("numbers").textContent);
const reports = numbers.reports;

const SHOWN = { prob: "probability", entropy: "entropy", kl: "KL to final", rank: "rank" };

/** What is chosen: the quantity, the followed token's text, and a column of every report. */
const state = {
  show: "prob",
  follow: null,
  columns: reports.map((report) => (report.lens ? report.lens.positions.length - 1 : null)),
};

const main = document.getElementById("page");
const grids = [];
const details = [];
const refreshers = [];

function refresh() {
  for (const again of refreshers) again();
}

/** A panel that is drawn anew whenever the state changes; `draw(report, index)` for every report, or `once` for
 * every model. */
function following(id, question, has, draw, once = false) {
  const shown = reports
    .map((report, index) => ({ report, index }))
    .filter(({ report, index }) => has(report) && !(once && index && report.model === reports[0].model));
  if (!shown.length) return null;
  const parts = shown.map(({ report }) =>
    make("div", { class: "part-of" }, reports.length > 1 ? make("p", { class: "whose" }, nameOf(report)) : null, make("div", { class: "body" })),
  );
  let before = null;
  refreshers.push(() => {
    const now = JSON.stringify(state.columns);
    if (now === before) return;
    before = now;
    shown.forEach(({ report, index }, k) => {
      parts[k].querySelector(".body").replaceChildren(...draw(report, index).filter((one) => one !== null));
    });
  });
  const element = panel(id, question, make("div", { class: "parts-of" }, parts));
  if (shown.length > 1) element.classList.add("wide");
  return element;
}

function nameOf(report) {
  return report.input ? `${report.input} on ${report.model}` : report.model;
}

/** The positions that a page without a grid can be asked about. */
function heldBy(report) {
  return report.memory?.positions ?? report.attribution?.each.map((one) => one.position) ?? report.norms?.positions;
}

function positionOf(report, index) {
  if (report.lens) return report.lens.positions[state.columns[index]];
  const held = heldBy(report);
  return held ? state.position ?? held.at(-1) : null;
}

/** Every panel goes to a column of one report, and to its partner in the other. */
function choose(index, j) {
  state.columns[index] = j;
  const pairs = numbers.alignment?.positions;
  const pair = pairs?.find((one) => one[index] === j);
  if (pair) state.columns[1 - index] = pair[1 - index];
  grids.forEach((grid, k) => {
    if (k < reports.length && k !== index && pair) grid.reveal(pair[k]);
  });
  details.forEach((detail, k) => detail.show(restPoint(k), state.columns[k]));
  refresh();
  grids.forEach((grid) => grid.update());
}

/** The point whose numbers are shown while nothing is pointed at. */
function restPoint(index) {
  const grid = grids[index];
  return grid && grid.at.j === state.columns[index] ? grid.at.i : reports[index].lens.points.length - 1;
}

function follow(text) {
  state.follow = text;
  fillFollower();
  grids.forEach((grid) => grid.update());
  details.forEach((detail) => detail.again());
}

const follower = make("select", { id: "follow" });
follower.addEventListener("change", () => follow(follower.selectedIndex ? follower.value : null));

/** The tokens that one may want to follow: those that lead somewhere at the chosen positions. */
function fillFollower() {
  const found = new Set();
  reports.forEach((report, index) => {
    const j = state.columns[index];
    const { lens } = report;
    if (!lens) return;
    const ids = lens.followed ? lens.followed[j].map(({ id }) => id).reverse() : [];
    if (lens.target) ids.unshift(lens.target.id);
    if (lens.foil) ids.push(lens.foil.id);
    for (const id of [...ids, ...lens.top_ids.at(-1)[j]]) {
      if (id >= 0) found.add(textOf(report, id));
    }
  });
  if (state.follow !== null) found.add(state.follow);
  follower.replaceChildren(
    make("option", { value: "" }, "each cell's own top token"),
    ...[...found].map((text) => make("option", { value: text }, `"${text}"`)),
  );
  follower.selectedIndex = state.follow === null ? 0 : [...found].indexOf(state.follow) + 1;
}

function controls(quantities) {
  const choices = Object.keys(SHOWN)
    .filter((show) => show in quantities)
    .map((show) => {
      const input = make("input", { type: "radio", name: "show", value: show, checked: show === state.show });
      input.addEventListener("change", () => {
        state.show = show;
        follow(null);
      });
      return make("label", {}, input, make("span", {}, SHOWN[show]));
    });
  return make(
    "div",
    { class: "controls" },
    make("fieldset", {}, make("legend", {}, "colour by"), choices),
    make("label", { class: "follow", for: "follow" }, "follow ", follower),
  );
}

function lensSection() {
  const withLens = reports.map((report, index) => ({ report, index })).filter(({ report }) => report.lens);
  if (!withLens.length) return null;
  const views = withLens.map(({ report }) => new LensView(report, state, withLens.map((one) => one.report.lens)));
  const answers = withLens.map(() => make("p", { class: "answer" }));
  const blocks = withLens.map(({ report, index }, k) => {
    const detail = new Detail(views[k], state, { follow });
    const grid = new Grid(views[k], `logit lens of ${nameOf(report)}`, state, {
      point: (_, i, j) => detail.show(i, j),
      focus: (_, i, j) => detail.show(i, j),
      leave: () => detail.show(restPoint(index), state.columns[index]),
      choose: (_, j) => choose(index, j),
      chosen: () => state.columns[index],
      scrolled: (from) => alignScroll(from, index),
    });
    grids[index] = grid;
    details[index] = detail;
    refreshers.push(() => answers[k].replaceChildren(...answerAt(report, state.columns[index])));
    return make(
      "div",
      { class: "lens" },
      withLens.length > 1 ? make("p", { class: "whose" }, nameOf(report)) : null,
      answers[k],
      make("div", { class: "lens-body" }, grid.element, detail.element),
    );
  });
  refreshers.push(fillFollower);
  const section = panel("lens", "What would it say, layer by layer?", controls(views[0].quantities), make("div", { class: withLens.length > 1 ? "lenses" : "" }, blocks));
  section.classList.add("wide");
  if (views.length === 2 && numbers.alignment) section.append(...differences(views));
  section.append(
    make("p", { class: "faint" }, "Each cell is the token that ln_final and the unembedding make of the stream at that point; position p predicts token p + 1. The orange line: from here up the final answer stays on top. Arrow keys move, Enter chooses a position for all panels, a token in the list follows it."),
  );
  return section;
}

function differences(views) {
  const view = new DifferenceView(views, numbers.alignment, state);
  const grid = new Grid(view, "difference of the two lenses, second minus first", state, {
    point: () => {},
    focus: () => {},
    leave: () => {},
    choose: (_, j) => {
      const [a, b] = numbers.alignment.positions[j];
      choose(0, a);
      choose(1, b);
    },
    chosen: () => numbers.alignment.positions.findIndex(([a]) => a === state.columns[0]),
  });
  grids.push(grid);
  const same = differentTops(view);
  return [
    make("h3", {}, "The second minus the first"),
    make("p", {}, `The top token differs in ${whole(same.different)} of ${whole(same.cells)} aligned cells. `, make("span", { class: "faint" }, alignmentTold())),
    grid.element,
  ];
}

function differentTops(view) {
  let different = 0;
  for (let i = 0; i < view.rows.length; i++) {
    for (let j = 0; j < view.columns; j++) different += view.cell(i, j).other !== undefined;
  }
  return { different, cells: view.rows.length * view.columns };
}

function alignmentTold() {
  const [a, b] = reports.map((report) => report.lens);
  const positions =
    a.positions.length === b.positions.length
      ? "Positions are aligned one by one"
      : "The common beginning is aligned from the start, the rest from the end";
  const points = a.points.length === b.points.length ? "" : "; points by relative depth";
  return `${positions}${points}.`;
}

/** Grids of prompts with one length scroll together. */
function alignScroll(from, index) {
  const other = grids[1 - index];
  if (reports.length !== 2 || !other || other.view.columns !== from.view.columns) return;
  if (Math.abs(other.viewport.scrollLeft - from.viewport.scrollLeft) > 1) {
    other.viewport.scrollLeft = from.viewport.scrollLeft;
  }
}

/** A choice of position for pages without a grid. */
function positionSection() {
  const report = reports[0];
  if (report.lens) return null;
  const held = heldBy(report) ?? [];
  if (held.length < 2) return null;
  const select = make("select", { id: "position" }, held.map((position) =>
    make("option", { value: position }, `${position}  "${textOf(report, report.source.ids[position])}"`)));
  select.value = String(held.at(-1));
  select.addEventListener("change", () => {
    state.position = Number(select.value);
    state.columns = [state.position];
    refresh();
  });
  return make("div", { class: "controls" }, make("label", { for: "position" }, "position ", select));
}

function build() {
  const sections = [
    lensSection(),
    positionSection(),
    following("depth", "Who led on the way?", (report) => report.lens?.followed, (report, index) => depthPanel(report, state.columns[index])),
    following("settled", "When did each position settle?", (report) => report.lens && report.lens.positions.length > 1, (report, index) =>
      settledPanel(report, state.columns[index], (j) => choose(index, j))),
    following("norms", "How does the stream grow, and what writes to it?", (report) => report.norms, (report, index) => normsPanel(report, positionOf(report, index))),
    following("attribution", "Which part of the network moved the answer?", (report) => report.attribution, (report, index) =>
      attributionPanel(report, positionOf(report, index))),
    following("memory", "Which neurons wrote it, and what do they promote?", (report) => report.memory, (report, index) => memoryPanel(report, positionOf(report, index))),
    following("params", "Where are the parameters?", (report) => report.params, paramsPanel, true),
    following("certificate", "Can these numbers be trusted?", (report) => report.checks.length, certificatePanel),
  ];
  main.append(...sections.filter((section) => section !== null));
  refresh();
  grids.forEach((grid, k) => {
    grid.fit();
    grid.update();
    if (k < reports.length) details[k].show(restPoint(k), state.columns[k]);
  });
  darkMode.addEventListener("change", () => grids.forEach((grid) => grid.update()));
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && state.follow !== null) follow(null);
  });
  main.setAttribute("aria-busy", "false");
}

build();
