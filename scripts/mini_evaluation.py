"""What the bundled model is measured by: mini_questions.json, copying, and the lens on one prompt.

Needs no package beyond those of resid.
"""

import json
import random
from collections.abc import Iterator
from pathlib import Path

import torch
from torch.nn.functional import cross_entropy
from transformers import AutoTokenizer, GPT2LMHeadModel

QUESTIONS = Path(__file__).with_name("mini_questions.json")
FRANCE = "The capital of France is"
COPY = 30  # tokens of one copy of a random sequence
HELD_OUT_CAPITALS = (
    "capital after `The capital of X is`, 27 countries held out",
    "capital after `X's capital is`, 27 countries held out",
)
# Here the answer need only be more probable than its rival: other words fit as well.
AGAINST_A_RIVAL = (
    "is/are across another noun, pairs held out",
    "he/she after a name",
    "he/she in stories, casts held out",
    "was/were, is/are in stories",
)

Results = dict[str, float | list]


class Examination:
    """A model folder under examination."""

    def __init__(self, folder: Path, at_most: int | None = None):
        """Load it as any user would, in float32; with `at_most`, ask only so many of a group."""
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.model = GPT2LMHeadModel.from_pretrained(folder, dtype=torch.float32).eval()
        asked = json.loads(QUESTIONS.read_text(encoding="utf-8"))
        self.questions, self.documents = (
            {name: spread(group, at_most) for name, group in asked[part].items()}
            for part in ("questions", "documents")
        )

    def encode(self, text: str) -> list[int]:
        """Token ids, nothing added."""
        return self.tokenizer(text)["input_ids"]

    def first_ids(self, texts: list[str]) -> torch.Tensor:
        """The first token of each text that should follow."""
        return torch.tensor([self.encode(text)[0] for text in texts])

    def streams(
        self, texts: list[str]
    ) -> Iterator[tuple[list[int], list[list[int]], torch.Tensor]]:
        """Texts of like length together: their places in the list, their ids, [text, pos, d_model].

        What stands in the stream is ready for the unembedding; behind a text's end it is padding.
        """
        ids = [self.encode(text)[: self.model.config.n_positions] for text in texts]
        order = sorted(range(len(ids)), key=lambda i: len(ids[i]))
        for start in range(0, len(order), 64):
            chosen = order[start : start + 64]
            width = max(len(ids[i]) for i in chosen)
            padded = torch.tensor([ids[i] + [0] * (width - len(ids[i])) for i in chosen])
            stream = self.model.transformer(padded, use_cache=False).last_hidden_state
            yield chosen, [ids[i] for i in chosen], stream

    def next_logits(self, prompts: list[str]) -> torch.Tensor:
        """[prompt, vocabulary] logits of what follows each prompt."""
        logits = torch.empty(len(prompts), self.model.config.vocab_size)
        for places, ids, stream in self.streams(prompts):
            last = stream[torch.arange(len(ids)), [len(row) - 1 for row in ids]]
            logits[places] = self.model.lm_head(last)
        return logits

    def ask(self, group: str) -> tuple[torch.Tensor, torch.Tensor | None]:
        """[question] whether the answer is the top token, and its lead over the rival in nats."""
        prompts, answers, *rivals = zip(*self.questions[group], strict=True)
        logits, rows = self.next_logits(prompts), torch.arange(len(prompts))
        wanted = self.first_ids(answers)
        lead = logits[rows, wanted] - logits[rows, self.first_ids(rivals[0])] if rivals else None
        return logits.argmax(-1) == wanted, lead

    def failing(self, groups: tuple[str, ...]) -> list[str]:
        """Questions and answers where the answer is not the top token."""
        return [
            f"{question[0]}{question[1]}"
            for group in groups
            for question, right in zip(self.questions[group], self.ask(group)[0], strict=True)
            if not right
        ]

    def shares(self) -> dict[str, float]:
        """The share of right answers by group."""
        found = {}
        for group in self.questions:
            right, lead = self.ask(group)
            if group in AGAINST_A_RIVAL:
                right = lead > 0
            elif lead is not None:
                found[f"{group}: receiver above giver"] = share(lead > 0)
            found[group] = share(right)
        return found

    def stream_ranks(self, prompt: str, answer: str) -> list[int]:
        """The answer's rank read from the embedding and after each block, through ln_final."""
        out = self.model(torch.tensor([self.encode(prompt)]), output_hidden_states=True)
        points = [self.model.transformer.ln_f(x[0, -1]) for x in out.hidden_states[:-1]]
        logits = self.model.lm_head(torch.stack([*points, out.hidden_states[-1][0, -1]]))
        return (1 + (logits > logits[:, self.first_ids([answer])]).sum(-1)).tolist()

    def copying(self, rows: int = 64) -> list[float]:
        """How well the second copy of random tokens, none of them twice in a copy, is predicted.

        Returns:
            Accuracy on the second copy after its first token; loss on the first copy and second.
        """
        rng, last = random.Random("copying"), len(self.tokenizer) - 1
        ids = torch.tensor([rng.sample(range(last), COPY) * 2 for _ in range(rows)])
        logits = self.model(ids).logits[:, :-1]
        loss = cross_entropy(logits.transpose(1, 2), ids[:, 1:], reduction="none")
        right = (logits.argmax(-1) == ids[:, 1:]).float()
        first, second = slice(COPY - 1), slice(COPY, None)
        return [x.mean().item() for x in (right[:, second], loss[:, first], loss[:, second])]

    def losses(self) -> dict[str, float]:
        """Held-out loss by source, nats a token, each document alone."""
        found = {}
        for source, documents in self.documents.items():
            total = tokens = 0
            for _, ids, stream in self.streams(documents):
                said = [x[: len(row) - 1] for x, row in zip(stream, ids, strict=True)]
                follows = torch.tensor([id for row in ids for id in row[1:]])
                logits = self.model.lm_head(torch.cat(said))
                total += cross_entropy(logits, follows, reduction="sum").item()
                tokens += len(follows)
            found[f"held-out loss: {source}, nats"] = total / tokens
        return found


def spread(group: list, at_most: int | None) -> list:
    """At most so many of a list, from all over it; all of it without a limit."""
    return group[:: -(-len(group) // at_most)] if at_most else group


def share(right: torch.Tensor) -> float:
    """The share that is true."""
    return right.float().mean().item()


@torch.no_grad()
def evaluate(folder: Path, at_most: int | None = None) -> Results:
    """Everything that is measured of a model folder; `score` is what an export must raise."""
    exam = Examination(folder, at_most)
    copied, first_loss, second_loss = exam.copying()
    shares = exam.shares() | {f"induction: second copy of {COPY} random tokens": copied}
    losses = exam.losses()
    paris = exam.next_logits([FRANCE])[0].softmax(-1)[exam.first_ids([" Paris"])].item()
    return {
        **shares,
        "induction: loss on the first copy, nats": first_loss,
        "induction: loss on the second copy, nats": second_loss,
        **losses,
        f"P(` Paris`) after `{FRANCE}`": paris,
        "rank of ` Paris` there: embedding, then each block": exam.stream_ranks(FRANCE, " Paris"),
        "held-out capitals that fail": exam.failing(HELD_OUT_CAPITALS),
        "score": sum(shares.values()) / len(shares) - 0.1 * sum(losses.values()) / len(losses),
    }


def shows_what_it_should(results: Results) -> bool:
    """Whether ` Paris` wins in the end, not before the middle, and after both questions."""
    ranks = results["rank of ` Paris` there: embedding, then each block"]
    blocks = len(ranks) - 1
    late = ranks[-1] == 1 and all(rank > 1 for rank in ranks[: 1 + blocks // 2 - 1])
    return late and "France's capital is Paris" not in results["held-out capitals that fail"]


def table(results: Results) -> str:
    """The results as a Markdown table."""
    lines = ["| measured | result |", "|---|---|"]
    for name, value in results.items():
        listed = isinstance(value, list)
        shown = (", ".join(map(str, value)) or "none") if listed else f"{value:.3f}"
        lines.append(f"| {name} | {shown} |")
    return "\n".join(lines)
