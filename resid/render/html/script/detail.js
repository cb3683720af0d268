// What one cell of the lens says: its tokens with bars, and its numbers.

class Detail {
  /** @param callbacks.follow(text) a token was chosen to be followed, or null. */
  constructor(view, state, callbacks) {
    this.view = view;
    this.state = state;
    this.callbacks = callbacks;
    this.element = make("div", { class: "detail", "aria-live": "polite" });
  }

  /** Show the same cell once more, as the state is now. */
  again() {
    this.show(...this.at);
  }

  show(i, j) {
    this.at = [i, j];
    const { lens, report } = this.view;
    const point = lens.points[i];
    const { position, token: input } = this.view.input(j);
    const ids = lens.top_ids[i][j];
    const finite = lens.top_probs[i][j][0] !== null;
    const numbers = [
      ["entropy", `${nats(lens.entropy[i][j])} nats`],
      ["KL(final || point)", `${nats(lens.kl[i][j])} nats`],
      ["margin", `${nats(lens.margin[i][j])} nats`],
    ];
    for (const [name, track] of [["target", lens.target], ["foil", lens.foil]]) {
      if (track) numbers.push(this.tracked(textOf(report, track.id), track, i, j, name));
    }
    if (lens.own && lens.own.id[j] !== null && lens.own.id[j] !== lens.target?.id) {
      numbers.push(this.tracked(textOf(report, lens.own.id[j]), lens.own, i, j, "final answer"));
    }
    const parts = [
      make("h3", {}, make("span", { class: "point" }, point), " ", make("span", { class: "faint" }, describePoint(point))),
      make("p", { class: "where" }, `position ${position}, after `, token(input)),
      make(
        "ol",
        { class: "tops" },
        ids.map((id, k) => (finite ? this.top(id, lens.top_probs[i][j][k]) : null)),
      ),
      finite ? null : make("p", { class: "alarm" }, "not finite at this point"),
      make("dl", { class: "numbers" }, numbers.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)])),
    ];
    this.element.replaceChildren(...parts.filter((part) => part !== null));
  }

  tracked(text, track, i, j, role) {
    const rank = track.rank[i][j];
    const told = rank === null ? NOT_FINITE : `rank ${whole(rank)}, ${probability(track.prob[i][j])}`;
    return [make("span", {}, `${role} `, token(text)), told];
  }

  top(id, value) {
    const text = textOf(this.view.report, id);
    const bar = make("span", { class: "bar" });
    bar.style.width = `${Math.max(0.5, 100 * value)}%`;
    const button = make(
      "button",
      {
        type: "button",
        "aria-pressed": String(this.state.follow === text),
        "aria-label": `"${text}" ${probability(value)}; follow it across the grid`,
      },
      token(text),
    );
    button.addEventListener("click", () => this.callbacks.follow(this.state.follow === text ? null : text));
    return make(
      "li",
      {},
      button,
      make("span", { class: "track", "aria-hidden": "true" }, bar),
      make("span", { class: "number" }, probability(value)),
    );
  }
}
