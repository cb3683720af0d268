// A grid of cells, deepest point on top, of which only the columns in sight exist: a prompt of a
// thousand tokens costs no more than one of twenty.

const ROW_HEIGHT = 30;
const NARROWEST = 104;
const WIDEST = 200;
const SPARE_COLUMNS = 6;

class Grid {
  /** @param callbacks.point(i, j) hovered or focused, or null; .choose(j) clicked or entered. */
  constructor(view, title, state, callbacks) {
    this.view = view;
    this.state = state;
    this.callbacks = callbacks;
    this.at = { i: view.rows.length - 1, j: view.columns - 1 };
    this.drawn = new Map();
    this.sheet = make("div", { class: "sheet" });
    this.viewport = make(
      "div",
      {
        class: "viewport",
        role: "grid",
        "aria-label": title,
        "aria-rowcount": view.rows.length + (view.hasNext ? 2 : 1),
        "aria-colcount": view.columns + 1,
      },
      this.sheet,
    );
    this.legend = make("div", { class: "legend" });
    this.element = make("div", { class: "grid" }, this.viewport, this.legend);
    this.addRows();
    this.listen();
    new ResizeObserver(() => this.fit()).observe(this.viewport);
  }

  addRows() {
    const points = this.view.rows.map((label, i) => ({ label, i })).reverse();
    const rows = [...points, { label: "input", kind: "input" }];
    if (this.view.hasNext) rows.unshift({ label: "next token", kind: "next" });
    this.rows = rows.map((row, index) => {
      const header = make("div", { class: "rowheader", role: "rowheader" }, row.label);
      const element = make(
        "div",
        { class: `row ${row.kind ?? "point"}`, role: "row", "aria-rowindex": index + 1 },
        header,
      );
      this.sheet.append(element);
      return { ...row, element };
    });
  }

  listen() {
    const place = (event) => {
      const cell = event.target.closest?.("[data-j]");
      return cell && { cell, i: cell.dataset.i === undefined ? null : Number(cell.dataset.i), j: Number(cell.dataset.j) };
    };
    this.viewport.addEventListener("scroll", () => {
      requestAnimationFrame(() => this.draw());
      this.callbacks.scrolled?.(this);
    });
    this.viewport.addEventListener("pointerover", (event) => {
      const found = place(event);
      if (found && found.i !== null) this.callbacks.point(this, found.i, found.j);
    });
    this.viewport.addEventListener("pointerleave", () => this.callbacks.leave(this));
    this.viewport.addEventListener("focusin", (event) => {
      const found = place(event);
      if (!found || found.i === null) return;
      this.mark(found.i, found.j);
      this.callbacks.focus(this, found.i, found.j);
    });
    this.viewport.addEventListener("click", (event) => {
      const found = place(event);
      if (!found) return;
      if (found.i !== null) this.goTo(found.i, found.j);
      this.callbacks.choose(this, found.j);
    });
    this.viewport.addEventListener("keydown", (event) => this.onKey(event));
  }

  onKey(event) {
    if (event.altKey || event.metaKey) return;
    const { i, j } = this.at;
    const page = Math.max(1, Math.floor(this.viewport.clientWidth / this.width) - 1);
    const moves = {
      ArrowUp: [i + 1, j],
      ArrowDown: [i - 1, j],
      ArrowLeft: [i, j - 1],
      ArrowRight: [i, j + 1],
      Home: [event.ctrlKey ? this.view.rows.length - 1 : i, 0],
      End: [event.ctrlKey ? 0 : i, this.view.columns - 1],
      PageUp: [i, j - page],
      PageDown: [i, j + page],
    };
    if (event.key in moves) {
      this.goTo(...moves[event.key]);
    } else if (event.key === "Enter" || event.key === " ") {
      this.callbacks.choose(this, j);
    } else {
      return;
    }
    event.preventDefault();
  }

  /** Focus the cell at point i, column j, or the nearest there is. */
  goTo(i, j) {
    const row = Math.min(this.view.rows.length - 1, Math.max(0, i));
    const column = Math.min(this.view.columns - 1, Math.max(0, j));
    this.mark(row, column);
    this.reveal(column);
    this.cellAt(row, column)?.focus({ preventScroll: true });
  }

  /** Make this the one cell that the Tab key reaches. */
  mark(i, j) {
    this.cellAt(this.at.i, this.at.j)?.setAttribute("tabindex", "-1");
    this.at = { i, j };
    this.cellAt(i, j)?.setAttribute("tabindex", "0");
  }

  reveal(j) {
    const left = j * this.width;
    const room = this.viewport.clientWidth - this.label;
    const { scrollLeft } = this.viewport;
    if (left < scrollLeft) this.viewport.scrollLeft = left;
    if (left + this.width > scrollLeft + room) this.viewport.scrollLeft = left + this.width - room;
    this.draw();
  }

  cellAt(i, j) {
    return this.drawn.get(j)?.find((cell) => cell.dataset.i === String(i));
  }

  /** Give every column its width. */
  fit() {
    const room = this.viewport.clientWidth;
    if (!room) return;
    this.label = room < 500 ? 76 : 92;
    const even = Math.floor((room - this.label) / this.view.columns);
    const width = Math.min(WIDEST, Math.max(NARROWEST, even));
    const changed = width !== this.width;
    this.width = width;
    this.sheet.style.width = `${this.label + this.width * this.view.columns}px`;
    this.sheet.style.setProperty("--label", `${this.label}px`);
    if (changed) this.clear();
    if (!this.shown) {
      this.shown = true;
      this.reveal(this.at.j);
    }
    this.draw();
  }

  clear() {
    for (const cells of this.drawn.values()) cells.forEach((cell) => cell.remove());
    this.drawn.clear();
  }

  /** Add the columns that came into sight and drop those that left it. */
  draw() {
    if (!this.width) return;
    const first = Math.max(0, Math.floor(this.viewport.scrollLeft / this.width) - SPARE_COLUMNS);
    const inSight = Math.ceil(this.viewport.clientWidth / this.width) + 2 * SPARE_COLUMNS;
    const last = Math.min(this.view.columns, first + inSight);
    for (const [j, cells] of this.drawn) {
      const focused = cells.includes(document.activeElement);
      if ((j < first || j >= last) && !focused) {
        cells.forEach((cell) => cell.remove());
        this.drawn.delete(j);
      }
    }
    for (let j = first; j < last; j++) {
      if (this.drawn.has(j)) continue;
      // A reader that goes through the page finds the cells in the order in which they stand.
      const right = this.drawn.get(Math.min(...[...this.drawn.keys()].filter((one) => one > j)));
      this.drawn.set(j, this.rows.map((row, r) => this.addCell(row, j, right?.[r])));
    }
  }

  addCell(row, j, right) {
    const cell = make("div", {
      class: "cell",
      role: row.i === undefined ? "columnheader" : "gridcell",
      "aria-colindex": j + 2,
      "data-j": j,
      "data-i": row.i,
      tabindex: row.i === undefined ? undefined : row.i === this.at.i && j === this.at.j ? 0 : -1,
    });
    cell.style.left = `${this.label + j * this.width}px`;
    cell.style.width = `${this.width}px`;
    this.fill(cell, row, j);
    row.element.insertBefore(cell, right ?? null);
    return cell;
  }

  fill(cell, row, j) {
    const chosen = j === this.callbacks.chosen(this);
    cell.classList.toggle("chosen", chosen);
    cell.setAttribute("aria-selected", String(chosen));
    if (row.kind === "next") {
      const next = this.view.next(j);
      cell.replaceChildren(next === undefined ? "" : token(next));
      return;
    }
    if (row.kind === "input") {
      const { position, token: text, other } = this.view.input(j);
      cell.replaceChildren(make("span", { class: "position" }, String(position)), token(text));
      if (other !== undefined) cell.append(make("span", { class: "against" }, " : "), token(other));
      return;
    }
    const shown = this.view.cell(row.i, j);
    const tokens = [token(shown.token)];
    if (shown.other !== undefined) tokens.push(make("span", { class: "against" }, ":"), token(shown.other));
    cell.replaceChildren(
      make("span", { class: "tokens" }, tokens),
      make("span", { class: "value" }, shown.text),
    );
    cell.setAttribute("aria-label", shown.label);
    cell.classList.toggle("marked", shown.marked);
    paint(cell, shown.ramp, shown.place);
    this.outline(cell, row.i, j);
  }

  /** The line along which a position's answer comes to stay. */
  outline(cell, i, j) {
    const here = this.view.isSettled(i, j);
    cell.classList.toggle("from-here", here && !(i > 0 && this.view.isSettled(i - 1, j)));
    const beside = j + 1 < this.view.columns && this.view.isSettled(i, j + 1);
    cell.classList.toggle("step", j + 1 < this.view.columns && here !== beside);
  }

  /** Show what the state has become. */
  update() {
    for (const [j, cells] of this.drawn) cells.forEach((cell, r) => this.fill(cell, this.rows[r], j));
    const { name, ends, ramp } = this.view.legend();
    const bar = make("span", { class: "bar", "aria-hidden": "true" });
    bar.style.background = gradient(ramp);
    this.legend.replaceChildren(
      make("span", { class: "legend-name" }, name),
      make("span", { class: "ends" }, ends[0], bar, ends[1]),
    );
  }
}
