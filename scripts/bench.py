"""Measure what resid costs: its time as ratios taken in one run, its memory, and how both grow.

    scripts/bench.py                       # everything, under half an hour
    scripts/bench.py --quick               # fewer rounds, some three minutes
    scripts/bench.py --only lens,memory --json build/bench.json
    scripts/bench.py --threads 1           # on a machine that is busy with other work

The model is a GPT-2 small of random weights, made here; nothing is downloaded. What is compared
runs in turn, A B A B; the number is the median over the turns, its quartiles in brackets. With one
thread the clock is processor time, which other work disturbs least; with more it is the wall clock,
and on a busy machine threads that wait for each other measure little.
The status is always 0: this measures, and marks with `misses` what does not reach its aim.
"""

import argparse
import copy
import gc
import importlib.metadata
import importlib.util
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from functools import partial
from math import log
from pathlib import Path
from statistics import linear_regression, median, quantiles
from typing import Any

import chromium

PROMPT = "The capital of France is"
TOKENS = 512
IDS = [i * 7919 % 50257 for i in range(1, 1025)]  # Spread over the vocabulary.
# Rows and vocabulary entries at a time: ways to the same products, of which the fastest counts.
SHAPES = ((512, 4096), (512, 8192), (1024, 4096), (2048, 4096), (2048, 1024), (512, 50257))
MB = 1e6
MINI = Path(__file__).parent.parent / "resid" / "bundled" / "mini"
RESID = [sys.executable, "-m", "resid"]


@dataclass
class Line:
    """One line of the table."""

    what: str
    must: str
    measured: str
    ok: bool | None  # None: nothing was promised.
    numbers: Any = None


def recording(options: argparse.Namespace) -> list[Line]:
    """Recording against the bare forward pass."""
    lines = []
    for points, must in (("post", "<= 1.05"), ("everything", "")):
        found = in_child("time_recording", points, 5 if options.quick else 25)
        ratio = ratios(found["recorded"], found["bare"])
        what = f"record {points}, {TOKENS} tokens / bare forward"
        lines.append(Line(what, must, show(ratio), median(ratio) <= 1.05 if must else None, found))
    return lines


def lens(options: argparse.Namespace) -> list[Line]:
    """The full lens against its matrix products alone, and the naive way against it."""
    found = in_child("time_lens", 2 if options.quick else 5)
    products = ratios(found["lens"], found["products"])
    both = [a + b for a, b in zip(found["record"], found["lens"], strict=True)]
    naive = ratios(found["naive"], both)
    what = f"lens, 13 x {TOKENS}, top 5 / products ({found['rate'] / 1e9:.0f} Gflop/s)"
    return [
        Line(what, "<= 1.25", show(products), median(products) <= 1.25, found),
        Line("naive way / record and lens", ">= 1.8", show(naive), median(naive) >= 1.8),
    ]


def memory(options: argparse.Namespace) -> list[Line]:
    """Peak memory above the loaded model, and of a whole process with a long prompt."""
    each = [in_child("cost", TOKENS, points) for points in ("post", "all")]
    post, every = (one["bytes"] / MB for one in each)
    what = f"memory of record and lens, {TOKENS} tokens"
    lines = [
        Line(what, "< 400 MB", f"{post:.0f} MB", post < 400),
        Line("the same, 25 points / 13", "<= 1.25", f"{every / post:.2f}", every / post <= 1.25),
    ]
    if not options.quick:
        naive = in_child("cost", TOKENS, "naive")["bytes"] / MB
        lines.append(Line("memory of the naive way", "(over 3000)", f"{naive:.0f} MB", None))
    ids, output = ",".join(map(str, IDS)), str(options.folder / "lens.json")
    command = [*RESID, "lens", "-q", "-m", str(options.folder), "--ids", ids, "-o", output]
    whole = run(command)
    what, peak = "whole process, 1,024 tokens, every position", whole["peak"] / MB
    return [*lines, Line(what, "< 1500 MB", f"{peak:.0f} MB", peak < 1500)]


def startup(options: argparse.Namespace) -> list[Line]:
    """What needs no model must not wait for torch."""
    lines = []
    for arguments, limit in ((["--help"], 0.3), (["params", "gpt2-xl"], 0.5)):
        traced = [sys.executable, "-X", "importtime", "-m", "resid", *arguments]
        told = subprocess.run(traced, capture_output=True, text=True, check=False).stderr
        torch = any(line.split("|")[-1].strip() == "torch" for line in told.splitlines())
        clock = "cpu" if options.threads == 1 else "wall"
        times = [run([*RESID, *arguments])[clock] for _ in range(5 if options.quick else 15)]
        measured = f"{show(times)} s, {'WITH' if torch else 'without'} torch"
        ok = median(times) < limit and not torch
        lines.append(Line(f"resid {' '.join(arguments)}", f"< {limit} s", measured, ok, times))
    return lines


def process(options: argparse.Namespace) -> list[Line]:
    """`resid lens` as a whole against a script that imports, loads and runs the same forward."""
    bare = (
        "import torch; from transformers import AutoTokenizer, GPT2LMHeadModel\n"
        f"folder = {str(options.folder)!r}\n"
        "model = GPT2LMHeadModel.from_pretrained(folder).eval()\n"
        f"ids = AutoTokenizer.from_pretrained(folder)({PROMPT!r}, return_tensors='pt').input_ids\n"
        "with torch.no_grad(): print(model(ids, use_cache=False).logits.shape)"
    )
    theirs, ours = [], []
    for _ in range(3 if options.quick else 9):
        theirs.append(run([sys.executable, "-c", bare]))
        ours.append(run([*RESID, "lens", "-q", "-m", str(options.folder), PROMPT]))
    lines = []
    for clock, name in (("cpu", "processor time"), ("wall", "wall time")):
        ratio = ratios([one[clock] for one in ours], [one[clock] for one in theirs])
        what = f"resid lens / bare script ({theirs[0][clock]:.1f} s), {name}"
        lines.append(Line(what, "<= 1.15", show(ratio), median(ratio) <= 1.15, [ours, theirs]))
    return lines


def growth(options: argparse.Namespace) -> list[Line]:
    """Time and memory of record and lens against tokens, and against layers."""
    tokens, layers = [64, 256, 128, 512, 1024], [6, 24, 12]
    if options.quick:
        del tokens[2:], layers[2:]
    narrow = "layers (d_model 256, 256 tokens)"
    found = {
        "tokens": {n: in_child("cost", n, "post", 12, 768, 3) for n in tokens},
        narrow: {n: in_child("cost", 256, "post", n, 256, 3) for n in layers},
    }
    lines = []
    for what, costs in found.items():
        for quantity, unit, scale in (("seconds", "s", 1), ("bytes", "MB", MB)):
            values = {n: cost[quantity] / scale for n, cost in costs.items()}
            logs = [log(n) for n in values], [log(value) for value in values.values()]
            doubling = 2 ** linear_regression(*logs).slope
            steps = ", ".join(f"{n}: {value:.3g}" for n, value in values.items())
            measured = f"x {doubling:.2f} ({steps} {unit})"
            what_grows = f"{quantity} at twice the {what}"
            lines.append(Line(what_grows, "<= x 2.15", measured, doubling <= 2.15, values))
    return lines


def report(options: argparse.Namespace) -> list[Line]:
    """The size of a report, and how long a browser takes until it can be read."""
    lines = []
    for tokens, must in ((5, ""), (50, "<= 400 kB"), (1024, ""))[: 2 if options.quick else 3]:
        file, ids = options.folder / f"{tokens}.html", ",".join(map(str, IDS[:tokens]))
        run([*RESID, "report", "-q", "-m", str(options.folder), "--ids", ids, "-o", str(file)])
        size = file.stat().st_size / 1000
        ok = size <= 400 if must else None
        lines.append(Line(f"report, {tokens:,} tokens", must, f"{size:.0f} kB", ok, size))
        if chromium.missing() is None:
            times = in_child("time_opening", str(file), 3 if options.quick else 9)
            lines.append(Line("  opened, from a file", "", f"{show(times)} s", None, times))
    if reason := chromium.missing():
        lines.append(Line("  opened, from a file", "", f"not measured: {reason}", None))
    return lines


def corpus(options: argparse.Namespace) -> list[Line]:
    """The readings over text: their rate and memory; parts and restarts that change nothing."""
    lines = []
    for kind in ("lens", "memory"):
        found = in_child("time_corpus", kind, 2 if options.quick else 4)
        rate = ratios(found["products"], found["corpus"])
        per_token = found["tokens"] / median(found["corpus"])
        what = f"corpus {kind} / its matrix products ({per_token:.0f} tokens/s)"
        lines.append(Line(what, ">= 0.85", show(rate), median(rate) >= 0.85, found))
        bare = ratios(found["corpus"], found["forward"])
        lines.append(Line(f"corpus {kind} / the bare forward", "", show(bare), None))
    lines += corpus_memory(options)
    return lines if options.quick else [*lines, *corpus_agreement(options)]


def corpus_memory(options: argparse.Namespace) -> list[Line]:
    """Peak memory of whole processes over a text and over one ten times as long, with mini."""
    lines = []
    few, many = (10_000, 100_000) if options.quick else (50_000, 500_000)
    text = write_text(options.folder, many)
    for kind in ("memory",) if options.quick else ("memory", "norms", "lens"):
        command = [*RESID, "corpus", kind, text, "-m", "mini", "-q", "--format", "json"]
        short, long = (run([*command, "--max-tokens", str(n)])["peak"] for n in (few, many))
        what = f"memory of corpus {kind}, {many:,} tokens / {few:,}"
        measured = f"{long / short:.3f} ({short / MB:.0f} MB, {long / MB:.0f} MB)"
        lines.append(Line(what, "<= 1.05", measured, long / short <= 1.05, [short, long]))
    return lines


def corpus_agreement(options: argparse.Namespace) -> list[Line]:
    """One process, four shards merged, two processes by torchrun, and a killed run taken up."""
    many, folder = 200_000, options.folder
    text = write_text(folder, many)
    read = ["corpus", "lens", text, "-m", "mini", "-q", "--format", "json"]
    read += ["--max-tokens", str(many)]

    def state(name: str) -> bytes:
        return (folder / name / "state.safetensors").read_bytes()

    took = run([*RESID, *read, "-o", str(folder / "one")])["wall"]
    for k in range(1, 5):
        run([*RESID, *read, "--shard", f"{k}/4", "-o", str(folder / f"part{k}")])
    parts = [str(folder / f"part{k}") for k in range(1, 5)]
    run([*RESID, "corpus", "merge", *parts, "-q", "-o", str(folder / "merged")])
    launch = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    run([*launch, "-m", "resid", *read, "-o", str(folder / "two")])
    again = [*RESID, *read, "--resume", str(folder / "killed"), "--save-every", "1"]
    with subprocess.Popen(again, stdout=subprocess.DEVNULL) as child:
        time.sleep(took / 2)
        child.kill()
    killed = (folder / "killed" / "state.safetensors").exists() and child.returncode == -9
    run(again)
    lines = []
    for name, what in (
        ("merged", "4 shards merged"),
        ("two", "2 processes by torchrun"),
        ("killed", "killed by -9 and taken up"),
    ):
        same = state(name) == state("one") and (name != "killed" or killed)
        told = "the same bytes" if same else "NOT the same"
        lines.append(Line(f"{what} / one process, {many:,} tokens", "the same", told, same))
    return lines


def peers(options: argparse.Namespace) -> list[Line]:
    """TransformerLens' logit lens on the same work in the same run, where it is installed."""
    what = f"transformer-lens' logit_lens, {TOKENS} tokens / resid's"
    if importlib.util.find_spec("transformer_lens") is None:
        return [Line(what, "", "not measured: transformer-lens is not installed", None)]
    peer = importlib.metadata.version("transformer-lens")
    if int(peer.split(".")[0]) < 4:
        return [Line(what, "", f"not measured: {peer} is installed, 4.3 has a logit_lens", None)]
    found = in_child("time_peer", 2 if options.quick else 5)
    theirs = ratios(found["peer"], found["resid"])
    peak = found["peer_bytes"] / found["resid_bytes"]
    return [
        Line(f"{what} (version {peer})", "", show(theirs), None, found),
        Line("  its memory / resid's", "", f"{peak:.2f}", None),
        Line("  the entropies lie apart by", "", f"{found['apart']:.1e} nats", None),
    ]


# What runs in a process of its own: each returns what JSON can hold.


def make_folder(folder: str) -> None:
    """A GPT-2 small of random weights, with the bundled tokenizer, which knows fewer tokens."""
    make_model().hf.save_pretrained(folder)
    for file in MINI.glob("tokenizer*"):
        shutil.copy(file, folder)


def time_recording(points: str, turns: int) -> dict[str, list[float]]:
    """Seconds of the bare forward and of `record`, turn by turn."""
    import torch

    from resid import record

    model, ids = make_model(), IDS[:TOKENS]
    recorded = partial(record, model, ids, points=points)
    recorded()
    with torch.no_grad():
        return in_turn(turns, {"bare": lambda: model.forward([ids]), "recorded": recorded})


def time_lens(turns: int) -> dict[str, Any]:
    """Seconds of the lens, of its matrix products alone, and of the naive way."""
    import torch

    from resid import logit_lens, record

    model, ids = make_model(), IDS[:TOKENS]
    recorded, weight = record(model, ids, points="post"), model.W_U.T
    with torch.no_grad():
        rows = model.ln_final(recorded.stream("post").flatten(0, 1))

    def products(x: Any, some: int, width: int) -> None:
        buffer = torch.empty(some * width)
        for part in x.split(some):
            for block in weight.split(width):
                out = buffer[: len(part) * len(block)].view(len(part), len(block))
                torch.mm(part, block.T, out=out)

    def all_products(some: int, width: int) -> None:
        # Every point against the vocabulary, and the final distribution back into the stream.
        products(rows, some, width)
        back = torch.zeros(TOKENS, model.d_model)
        for part, block in zip(recorded.logits.split(width, 1), weight.split(width), strict=True):
            back.addmm_(part, block)

    shapes = {f"{r} x {v}": partial(products, rows[:2048], r, v) for r, v in SHAPES}
    best = [min(times) for times in in_turn(2, shapes).values()]
    ways = {
        "products": partial(all_products, *SHAPES[best.index(min(best))]),
        "lens": partial(logit_lens, model, recorded, points="post"),
        "record": partial(record, model, ids, points="post"),
        "naive": partial(naive_lens, model, ids),
    }
    times = in_turn(turns, ways)
    rate = 2.0 * (len(rows) + TOKENS) * weight.numel() / min(times["products"])
    return {**times, "shapes": dict(zip(shapes, best, strict=True)), "rate": rate}


def cost(
    tokens: int, points: str = "post", layers: int = 12, width: int = 768, repeat: int = 0
) -> dict[str, float]:
    """Bytes above the loaded model, and seconds (the best of some), of record and lens."""
    from resid import logit_lens, record

    model, ids = make_model(layers, width), IDS[:tokens]

    def work(n: int) -> None:
        if points == "naive":
            naive_lens(model, ids[:n])
        else:
            logit_lens(model, record(model, ids[:n], points=points), points=points)

    def resident(key: str) -> float:
        return 1024.0 * int(Path("/proc/self/status").read_text().split(f"{key}:")[1].split()[0])

    work(1)  # Every weight and library is in memory now.
    Path("/proc/self/clear_refs").write_text("5")  # Begins the high-water mark anew.
    before = resident("VmRSS")
    work(tokens)
    peak = resident("VmHWM") - before
    seconds = in_turn(repeat, {"work": partial(work, tokens)})["work"]
    return {"bytes": peak, "seconds": min(seconds, default=0.0)}


def time_opening(file: str, turns: int) -> list[float]:
    """Seconds from the start of the navigation until the page is ready and drawn, each time."""
    times = []
    with chromium.started() as browser:
        for _ in range(turns + 1):
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            page.add_init_script(f"""new MutationObserver((_, watch) => {{
              if (!document.querySelector({chromium.READY!r})) return;
              watch.disconnect();
              const drawn = () => {{ window.drawn = performance.now(); }};
              requestAnimationFrame(() => setTimeout(drawn));
            }}).observe(document, {{ subtree: true, childList: true, attributes: true }})""")
            page.goto(Path(file).as_uri())
            times.append(page.wait_for_function("window.drawn").json_value() / 1000)
            page.close()
    return times[1:]  # The first one waits for the browser's own start.


def time_corpus(kind: str, turns: int) -> dict[str, Any]:
    """Seconds of a reading over text, of its matrix products alone, and of the bare forward."""
    import torch

    from resid.corpus.batches import Batch
    from resid.corpus.lens import LensReading
    from resid.corpus.memory import MemoryReading
    from resid.corpus.windows import Window

    model = make_model()
    reading: Any = {"lens": LensReading, "memory": MemoryReading}[kind](model)
    windows, n_ctx = 2, model.n_ctx
    text = [[(i * 7919 + j * 104729) % 50257 for i in range(n_ctx)] for j in range(64)]

    def batch(turn: int) -> Any:
        numbers = [(windows * turn + j) % len(text) for j in range(windows)]
        return Batch([Window(number, 0, text[number], 0, 7) for number in numbers], None)

    products = products_over_text(model, windows, model.n_layers + 2 if kind == "lens" else 0)
    # Neurons get to know their strongest tokens: what a long text costs is what comes after that.
    known = 8 if kind == "memory" else 1
    for turn in range(known):
        reading.read(batch(turn), first=turn == 0)
    upcoming = map(batch, range(known, known + turns))
    with torch.no_grad():
        ways = {
            "products": products,
            "corpus": lambda: reading.read(next(upcoming), first=False),
            "forward": lambda: model.run_blocks(text[:windows]),
        }
        return {**in_turn(turns, ways), "tokens": windows * n_ctx}


def products_over_text(model: Any, windows: int, points: int) -> Any:
    """The matrix products of one batch: the forward pass, and rows against the vocabulary.

    Args:
        model: whose sizes to use.
        windows: in the batch, each as long as the model reads.
        points: how often every row meets the vocabulary: once a point, and once more for the final
            distribution's way back into the stream.
    """
    import torch

    d, n = model.d_model, model.n_ctx
    x = {width: torch.randn(windows * n, width) for width in (d, 4 * d)}
    weights = [torch.randn(a, b) for a, b in ((d, 3 * d), (d, d), (d, 4 * d), (4 * d, d))]
    heads = torch.randn(windows * model.n_heads, n, d // model.n_heads)
    unembedding = model.W_U.T

    def unembed(some: int, width: int, times: int) -> None:
        buffer = torch.empty(some * width)
        for part in x[d].repeat(times, 1).split(some):
            for block in unembedding.split(width):
                out = buffer[: len(part) * len(block)].view(len(part), len(block))
                torch.mm(part, block.T, out=out)

    best = SHAPES[0]
    if points:
        shapes = {shape: partial(unembed, *shape, 1) for shape in SHAPES}
        times = in_turn(2, shapes)
        best = min(times, key=lambda shape: min(times[shape]))

    def products() -> None:
        for _ in range(model.n_layers):
            for weight in weights:
                torch.mm(x[len(weight)], weight)
            torch.bmm(torch.bmm(heads, heads.transpose(1, 2)), heads)
        if points:
            unembed(*best, points)

    return products


def time_peer(turns: int) -> dict[str, Any]:
    """Seconds and peak bytes of TransformerLens' lens and of resid's, of one GPT-2 small.

    Both give the five best tokens and the entropy at every point and position; resid's gives the KL
    divergence to the final distribution beside them.
    """
    import numpy as np
    import torch
    from transformer_lens.model_bridge import TransformerBridge
    from transformer_lens.tools.analysis.logit_lens import logit_lens as their_lens
    from transformers import AutoTokenizer

    from resid import logit_lens, record

    model, ids = make_model(), IDS[:TOKENS]
    theirs = TransformerBridge.boot_transformers(
        "gpt2", hf_model=copy.deepcopy(model.hf), tokenizer=AutoTokenizer.from_pretrained(MINI)
    )
    batch = torch.tensor([ids])

    def peer() -> Any:
        return their_lens(theirs, batch, positions=None, top_k=5)

    def ours() -> Any:
        return logit_lens(model, record(model, ids, points="post"), points="post")

    peaks = {}
    for name, way in (("resid", ours), ("peer", peer)):
        gc.collect()
        Path("/proc/self/clear_refs").write_text("5")
        status = Path("/proc/self/status")
        before = int(status.read_text().split("VmRSS:")[1].split()[0])
        way()
        peaks[f"{name}_bytes"] = 1024.0 * (
            int(status.read_text().split("VmHWM:")[1].split()[0]) - before
        )
    apart = np.abs(ours().entropy - peer().readout.entropy[:, 0].numpy()).max().item()
    return {**in_turn(turns, {"resid": ours, "peer": peer}), **peaks, "apart": apart}


def write_text(folder: Path, tokens: int) -> str:
    """A .jsonl of at least so many tokens of mini: documents of unequal length, words at random."""
    file = folder / f"text{tokens}.jsonl"
    if file.exists():
        return str(file)
    words = sorted(set(Path(__file__).read_text("utf-8").split()))
    generator = random.Random(0)
    written = 0
    with file.open("w", encoding="utf-8") as opened:
        while written < tokens:
            n = generator.choice([20, 100, 400, 1500])
            opened.write(json.dumps({"text": " ".join(generator.choices(words, k=n))}) + "\n")
            written += n  # A word is a token at least.
    return str(file)


def naive_lens(model: Any, ids: list[int]) -> list[Any]:
    """The lens as it is often written: everything stacked over the points, then reduced."""
    import torch

    with torch.no_grad():
        out = model.hf(torch.tensor([ids]), output_hidden_states=True, use_cache=False)
        normed = [model.hf.transformer.ln_f(hidden) for hidden in out.hidden_states[:-1]]
        # The last one has been through ln_f already.
        logits = model.hf.lm_head(torch.cat([*normed, out.hidden_states[-1]]))
        probabilities, log_p = logits.softmax(-1), logits.log_softmax(-1)
        entropy = -(probabilities * log_p).sum(-1)
        kl = (probabilities[-1] * (log_p[-1] - log_p)).sum(-1)
        return [probabilities.topk(5), entropy, kl]


def make_model(layers: int = 12, width: int = 768) -> Any:
    """A GPT-2 of random weights in memory: small, unless told otherwise."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    import resid

    torch.manual_seed(0)
    config = GPT2Config(n_layer=layers, n_embd=width, n_head=width // 64)
    return resid.load(GPT2LMHeadModel(config).eval())


def in_turn(turns: int, ways: dict[Any, Any]) -> dict[Any, list[float]]:
    """Seconds of every way, A B A B."""
    import torch

    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    times: dict[Any, list[float]] = {name: [] for name in ways}
    for _ in range(turns):
        for name, way in ways.items():
            start = clock()
            way()
            times[name].append(clock() - start)
    return times


def in_child(name: str, *arguments: Any) -> Any:
    """What a function of this file returns in a fresh process."""
    call = json.dumps([name, arguments])
    done = subprocess.run([sys.executable, __file__, "--call", call], stdout=-1, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def run(command: list[str]) -> dict[str, float]:
    """Seconds (wall, and processor time) and peak bytes of a command that must succeed."""
    start = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as child:
        _, status, used = os.wait4(child.pid, 0)
        wall = time.perf_counter() - start
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"status {child.returncode}: {' '.join(command)[:200]}")
    return {"wall": wall, "cpu": used.ru_utime + used.ru_stime, "peak": 1024.0 * used.ru_maxrss}


def ratios(above: list[float], below: list[float]) -> list[float]:
    """Of what was measured turn by turn."""
    return [a / b for a, b in zip(above, below, strict=True)]


def show(values: list[float]) -> str:
    """The median with its quartiles."""
    low, middle, high = quantiles(values, n=4, method="inclusive")
    return f"{middle:.3f} [{low:.3f} {high:.3f}]"


ROWS = {
    row.__name__: row
    for row in (recording, lens, memory, startup, process, growth, report, corpus, peers)
}


def main() -> None:
    """Measure the rows asked for and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument("--only", default=",".join(ROWS), metavar="ROW,...", help=", ".join(ROWS))
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers there too")
    parser.add_argument("--threads", type=int, help="of torch; default: its own choice")
    parser.add_argument("--call", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.call:
        name, arguments = json.loads(options.call)
        print(json.dumps(globals()[name](*arguments)))
        return
    names = options.only.split(",")
    if unknown := set(names) - set(ROWS):
        parser.error(f"there is no row {', '.join(sorted(unknown))}; rows are {', '.join(ROWS)}")
    os.environ |= {"HF_HUB_OFFLINE": "1", "TQDM_DISABLE": "1"}
    if options.threads:
        os.environ["OMP_NUM_THREADS"] = str(options.threads)
    lines: list[Line] = []
    with tempfile.TemporaryDirectory() as folder:
        options.folder = Path(folder)
        if {"memory", "process", "report"} & set(names):
            in_child("make_folder", folder)
        print(f"{'what':54} {'must reach':11} measured")
        for name in names:
            for line in ROWS[name](options):
                mark = {True: "ok", False: "misses", None: ""}[line.ok]
                print(f"{line.what:54} {line.must:11} {line.measured}  {mark}", flush=True)
                lines.append(line)
    if options.json:
        found = {"load": os.getloadavg(), "rows": [asdict(line) for line in lines]}
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
