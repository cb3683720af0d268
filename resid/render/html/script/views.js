// What a grid shows: a view says for every point i and column j which token and which colour.

/** The quantities of a lens; `place` maps a value to the ramp, sure and near the end being dark.
 *  The ramp is the same for all lenses of a page, so that their colours can be compared. */
function quantitiesOf(lens, report, lenses) {
  const largest = (tableOf, least) =>
    lenses.flatMap((one) => tableOf(one)?.flat() ?? []).reduce((a, b) => Math.max(a, b ?? 0), least);
  const linear = (name, key) => {
    const table = lens[key];
    const most = largest((one) => one[key], 1e-6);
    return {
      name: [name],
      at: (i, j) => table[i][j],
      text: nats,
      place: (value) => 1 - value / most,
      ends: [nats(most), "0"],
    };
  };
  const found = {
    prob: {
      name: ["probability of the top token"],
      at: (i, j) => lens.top_probs[i][j][0],
      text: probability,
      place: (value) => value,
      ends: ["0", "1"],
    },
    entropy: linear("entropy, nats", "entropy"),
    kl: linear("KL(final || point), nats", "kl"),
  };
  const trackOf = (one) => one.target ?? one.own;
  const track = trackOf(lens);
  if (track) {
    const most = largest((one) => trackOf(one)?.rank, 10);
    found.rank = {
      name: lens.target
        ? ["rank of ", token(textOf(report, lens.target.id))]
        : ["rank of what the model says in the end"],
      at: (i, j) => track.rank[i][j],
      text: (value) => (value === null ? NOT_FINITE : whole(value)),
      place: (value) => 1 - Math.log(value) / Math.log(most),
      ends: [whole(most), "1"],
    };
  }
  return found;
}

/** The probability of one token at point i and column j; null where the page does not hold it. */
function probabilityOf(lens, id, i, j) {
  const place = lens.top_ids[i][j].indexOf(id);
  if (place >= 0) return lens.top_probs[i][j][place];
  if (lens.target?.id === id) return lens.target.prob[i][j];
  if (lens.foil?.id === id) return lens.foil.prob[i][j];
  if (lens.own?.id[j] === id) return lens.own.prob[i][j];
  const followed = lens.followed?.[j].find((one) => one.id === id);
  return followed ? followed.prob[i] : null;
}

/** A difference, without a sign where nothing is left of it. */
function changed(value) {
  return Math.abs(value) < 0.005 ? "0" : signed(value);
}

class LensView {
  constructor(report, state, lenses) {
    this.report = report;
    this.lens = report.lens;
    this.state = state;
    this.quantities = quantitiesOf(this.lens, report, lenses);
    this.rows = this.lens.points;
    this.columns = this.lens.positions.length;
    this.hasNext = true;
  }

  input(j) {
    const position = this.lens.positions[j];
    return { position, token: textOf(this.report, this.report.source.ids[position]) };
  }

  /** The token that the prompt goes on with; undefined after its end. */
  next(j) {
    const id = this.report.source.ids[this.lens.positions[j] + 1];
    return id === undefined ? undefined : textOf(this.report, id);
  }

  quantity() {
    const text = this.state.follow;
    if (text === null) return this.quantities[this.state.show] ?? this.quantities.prob;
    const id = idOf(this.report, text);
    return {
      name: ["probability of ", token(text)],
      at: (i, j) => (id === null ? null : probabilityOf(this.lens, id, i, j)),
      text: probability,
      place: (value) => value,
      ends: ["0", "1"],
    };
  }

  isSettled(i, j) {
    const from = this.lens.settled[j];
    return from !== null && i >= from;
  }

  cell(i, j) {
    const [ids, probs] = [this.lens.top_ids[i][j], this.lens.top_probs[i][j]];
    const quantity = this.quantity();
    const value = quantity.at(i, j);
    const finite = probs[0] !== null;
    const top = finite ? textOf(this.report, ids[0]) : NOT_FINITE;
    // What is not among a cell's tokens is at most as probable as the last of them.
    const text =
      value !== null ? quantity.text(value) : finite ? `<${probability(probs.at(-1))}` : NOT_FINITE;
    return {
      token: top,
      text,
      ramp: RAMPS,
      place: value === null ? (finite ? 0 : null) : quantity.place(value),
      marked: this.state.follow !== null && top === this.state.follow,
      label: `${this.rows[i]}, position ${this.lens.positions[j]}: "${top}", ` +
        `${quantity.name.map((part) => part.textContent ?? part).join("")} ${text}`,
    };
  }

  legend() {
    const { name, ends } = this.quantity();
    return { name, ends, ramp: RAMPS };
  }
}

/** The second lens minus the first, cell by aligned cell. */
class DifferenceView {
  constructor(views, alignment, state) {
    this.views = views;
    this.alignment = alignment;
    this.state = state;
    this.columns = alignment.positions.length;
    this.rows = alignment.points.map(([i, k]) => {
      const [a, b] = [views[0].rows[i], views[1].rows[k]];
      return a === b ? a : `${a} : ${b}`;
    });
    this.hasNext = false;
  }

  pair(i, j) {
    return [0, 1].map((which) => {
      const [row, column] = [this.alignment.points[i][which], this.alignment.positions[j][which]];
      return { view: this.views[which], i: row, j: column };
    });
  }

  input(j) {
    const [a, b] = this.pair(0, j).map(({ view, j: column }) => view.input(column));
    const position = a.position === b.position ? a.position : `${a.position} : ${b.position}`;
    return { position, token: a.token, other: a.token === b.token ? undefined : b.token };
  }

  isSettled() {
    return false;
  }

  values(i, j) {
    return this.pair(i, j).map(({ view, i: row, j: column }) => view.quantity().at(row, column));
  }

  /** The size of the largest difference of the quantity shown; ranks by their logarithms. */
  get most() {
    const key = `${this.state.show} ${this.state.follow}`;
    if (this.measured?.key !== key) {
      let most = 1e-6;
      for (let i = 0; i < this.rows.length; i++) {
        for (let j = 0; j < this.columns; j++) {
          most = Math.max(most, Math.abs(this.difference(i, j) ?? 0));
        }
      }
      this.measured = { key, most };
    }
    return this.measured.most;
  }

  get isRank() {
    return this.state.show === "rank" && this.state.follow === null;
  }

  difference(i, j) {
    const [a, b] = this.values(i, j);
    if (a === null || b === null) return null;
    return this.isRank ? Math.log10(b) - Math.log10(a) : b - a;
  }

  cell(i, j) {
    const value = this.difference(i, j);
    const tops = this.pair(i, j).map(({ view, i: row, j: column }) => {
      const { lens, report } = view;
      return lens.top_probs[row][column][0] === null
        ? NOT_FINITE
        : textOf(report, lens.top_ids[row][column][0]);
    });
    const same = tops[0] === tops[1];
    const text = value === null ? "" : this.isRank ? `×${measured(10 ** value)}` : changed(value);
    // More probable is blue, and so is less entropy, KL and rank: the second is surer.
    const surer = this.state.follow !== null || this.state.show === "prob" ? 1 : -1;
    return {
      token: tops[0],
      other: same ? undefined : tops[1],
      text,
      ramp: DIFFERENCES,
      place: value === null ? null : 0.5 + (surer * 0.5 * value) / this.most,
      marked: false,
      label: `${this.rows[i]}, position ${this.input(j).position}: ` +
        (same ? `both "${tops[0]}"` : `"${tops[0]}" against "${tops[1]}"`) + `, ${text}`,
    };
  }

  legend() {
    const { name } = this.views[0].quantity();
    const most = this.isRank ? `×${measured(10 ** this.most)}` : signed(this.most);
    const least = this.isRank ? `×${measured(10 ** -this.most)}` : signed(-this.most);
    const surer = this.state.follow !== null || this.state.show === "prob";
    return {
      name: [...name, ": second minus first"],
      ends: surer ? [least, most] : [most, least],
      ramp: DIFFERENCES,
    };
  }
}
