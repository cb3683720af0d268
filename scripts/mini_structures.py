"""The known structures in the bundled model, found by resid itself, as Markdown tables.

    python scripts/mini_structures.py [DIR]        # default: resid/bundled/mini
    python scripts/mini_structures.py --card       # and written into the model's card

Attention patterns are Hugging Face's own (`output_attentions`); all else is what resid reads.
"""

import argparse
import json
import random
import re
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from mini_evaluation import COPY, FRANCE, HELD_OUT_CAPITALS, QUESTIONS
from transformers import GPT2LMHeadModel

import resid
from resid.readings.attribution import attributions

BUNDLED = Path(__file__).parent.parent / "resid" / "bundled" / "mini"
NAMES = "When Mary and John went to the store, John gave a drink to"
CAPITALS = ("Paris", "Rome", "Tokyo", "Cairo", "Lima", "Oslo", "Athens", "Warsaw")
ROWS, PAIRS = 8, 32  # random sequences, and two-names sentences, that heads are averaged over
TWO_NAMES = "two names, pairs held out"
HEAD = re.compile(r"L(\d+)H(\d+)")
MARKS = ("<!-- structures -->", "<!-- /structures -->")


class Structures:
    """One model folder, read by resid, and its attention patterns."""

    def __init__(self, folder: Path):
        """Load it twice: as resid does, and with attention that shows its weights."""
        self.model = resid.load(str(folder))
        self.eager = GPT2LMHeadModel.from_pretrained(folder, attn_implementation="eager").eval()
        self.questions = json.loads(QUESTIONS.read_text(encoding="utf-8"))["questions"]

    def attention(self, ids: Sequence[int]) -> np.ndarray:
        """[layer, head, query, key] attention weights."""
        with torch.no_grad():
            out = self.eager(
                torch.tensor([list(map(int, ids))]), output_attentions=True, use_cache=False
            )
        return torch.cat(out.attentions).numpy()

    def settling(self) -> str:
        """Where the answer to each held-out question on a capital begins to lead for good."""
        settled, right = Counter(), 0
        points = ()
        for prompt, answer in (q for group in HELD_OUT_CAPITALS for q in self.questions[group]):
            recording = resid.record(self.model, prompt)
            lens = resid.logit_lens(
                self.model, recording, top=1, target=self.model.encode(answer)[0], positions=[-1]
            )
            points = lens.points
            if lens.target.rank[-1, 0] == 1:
                right += 1
                settled[lens.settled_at[0]] += 1
        lines = [f"| {point} | {settled[point]} |" for point in points]
        title = f"| settled at | of {right} capitals held out and right |"
        return "\n".join([title, "|---|---|", *lines])

    def induction(self) -> str:
        """Heads on random tokens said twice: where they look, and what they add to the copy."""
        rng, shares = random.Random("structures"), defaultdict(list)
        ahead, behind = [], []
        for _ in range(ROWS):
            ids = rng.sample(range(len(self.model.vocabulary.tokenizer) - 1), COPY) * 2
            pattern = self.attention(ids)
            later = np.arange(COPY, 2 * COPY - 1)
            ahead.append(pattern[:, :, later, later - COPY + 1].mean(-1))
            behind.append(pattern[:, :, later, later - 1].mean(-1))
            recording = resid.record(self.model, ids)
            targets = {int(pos): ids[pos + 1] for pos in later}
            for found in attributions(self.model, recording, targets=targets, heads=True):
                for component, value in zip(found.components, found.direct, strict=True):
                    shares[component].append(value)
        back = np.mean(behind, 0)
        found = [f"L{layer}H{head} {back[layer, head]:.2f}" for layer, head in strongest(back, 3)]
        looks = {"attention to what came next before": np.mean(ahead, 0)}
        return (
            f"{heads(shares, 'logits added to the copy', looks)}\n\n"
            f"Heads that look one token back there: {', '.join(found)}."
        )

    def names(self) -> str:
        """Heads on two-names sentences: what they add to the receiver, and where they look."""
        shares, looks, rivals = defaultdict(list), [], []
        for prompt, receiver, giver in self.questions[TWO_NAMES][:PAIRS]:
            recording = resid.record(self.model, prompt)
            last = self.attention(recording.source.ids)[:, :, -1]
            # A name at the beginning of a sentence has no space before it.
            words = [token.strip() for token in recording.source.tokens]
            for kept, name in ((looks, receiver), (rivals, giver)):
                said = [pos for pos, word in enumerate(words) if word == name.strip()]
                kept.append(last[:, :, said].sum(-1))
            found = resid.attribution(
                self.model, recording, target=receiver, foil=giver, heads=True
            )
            for component, value in zip(found.components, found.direct, strict=True):
                shares[component].append(value)
        columns = {
            "attention to the receiver": np.mean(looks, 0),
            "attention to the giver": np.mean(rivals, 0),
        }
        return heads(shares, "receiver minus giver, logits", columns)

    def neurons(self) -> str:
        """The neuron that gives most to each capital, and what else it promotes here."""
        lines = ["| capital | neuron | coefficient | share of the logit | says |", "|---" * 5 + "|"]
        for prompt, answer in self.questions[HELD_OUT_CAPITALS[0]]:
            if answer.strip() not in CAPITALS:
                continue
            recording = resid.record(self.model, prompt)
            memory = resid.mlp_memory(
                self.model, recording, target=answer, positions=[-1], neurons=1, order="target"
            )
            best = int(np.argmax(memory.target_logit))
            coefficient = memory.coefficient[best]
            # A negative coefficient says what the value suppresses.
            said = memory.promoted if coefficient > 0 else memory.suppressed
            tokens = ", ".join(f"`{token.strip(chr(34))}`" for token in said.tokens[best])
            name = f"L{memory.layer[best]}N{memory.neuron[best]}"
            share = f"{coefficient:+.2f} | {memory.target_logit[best]:+.2f}"
            lines.append(f"| {answer.strip()} | {name} | {share} | {tokens} |")
        return "\n".join(lines)

    def growth(self) -> str:
        """The stream's median length at every point of two prompts."""
        found = [
            resid.stream_norms(self.model, resid.record(self.model, prompt))
            for prompt in (FRANCE, NAMES)
        ]
        lines = [f"| point | `{FRANCE}` | `{NAMES}` |", "|---|---|---|"]
        medians = [np.median(norms.l2[:, 1:], axis=1) for norms in found]
        for point, *values in zip(found[0].points, *medians, strict=True):
            lines.append(f"| {point} | " + " | ".join(f"{value:.1f}" for value in values) + " |")
        rates = " | ".join(f"x {norms.growth.per_layer:.3f}" for norms in found)
        return "\n".join([*lines, f"| per layer | {rates} |"])

    def page(self) -> str:
        """All of it."""
        parts = {
            "Where facts settle": self.settling(),
            f"Induction heads: {ROWS} x {COPY} random tokens, twice": self.induction(),
            f"Heads that carry a name: {PAIRS} sentences with pairs held out": self.names(),
            "Neurons that promote a capital, after `The capital of X is`": self.neurons(),
            "Norms of the stream, median without position 0": self.growth(),
        }
        return "\n\n".join(f"**{title}**\n\n{table}" for title, table in parts.items())


def heads(shares: dict[str, list[float]], title: str, looks: dict[str, np.ndarray]) -> str:
    """The six heads with the largest mean shares, either way, and where they look, as a table."""
    means = {head: np.mean(values) for head, values in shares.items() if HEAD.fullmatch(head)}
    lines = [f"| head | {' | '.join([title, *looks])} |", "|---" * (2 + len(looks)) + "|"]
    for head in sorted(means, key=lambda head: -abs(means[head]))[:6]:
        layer, index = map(int, HEAD.fullmatch(head).groups())
        seen = " | ".join(f"{pattern[layer, index]:.2f}" for pattern in looks.values())
        lines.append(f"| {head} | {means[head]:+.2f} | {seen} |")
    return "\n".join(lines)


def strongest(pattern: np.ndarray, count: int) -> list[tuple[int, int]]:
    """The layers and heads with the largest values."""
    order = np.argsort(-pattern, axis=None)[:count]
    return [divmod(int(place), pattern.shape[1]) for place in order]


def main() -> None:
    """Print the tables, or put them between the card's two marks."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("folder", type=Path, nargs="?", default=BUNDLED)
    parser.add_argument("--card", action="store_true", help="write them into the folder's card")
    args = parser.parse_args()
    page = Structures(args.folder).page()
    print(page)
    if args.card:
        card = args.folder / "MODEL_CARD.md"
        before, rest = card.read_text(encoding="utf-8").split(MARKS[0])
        after = rest.split(MARKS[1])[1]
        card.write_text(f"{before}{MARKS[0]}\n{page}\n{MARKS[1]}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
