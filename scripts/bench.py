"""Measure what resid costs: its time as ratios taken in one run, its memory, and how both grow.

    scripts/bench.py                       # everything, under 8 minutes
    scripts/bench.py --quick               # fewer rounds, under 90 seconds
    scripts/bench.py --only lens,memory --json build/bench.json
    scripts/bench.py --threads 1           # on a machine that is busy with other work

The model is a GPT-2 small of random weights, made here; nothing is downloaded. What is compared
runs in turn, A B A B; the ratio is the median over the turns, its quartiles in brackets. With one
thread the clock is the processor time of the process, which other work disturbs least; with more it
is the wall clock, and on a busy machine two threads that wait for each other measure little.
The status is always 0: this measures, and marks with `misses` what does not reach its aim.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from math import log
from pathlib import Path
from typing import Any

PROMPT = "The capital of France is"
TOKENS = 512
# Rows and vocabulary entries at a time: ways to the same products, of which the fastest counts.
SHAPES = ((512, 4096), (512, 8192), (1024, 4096), (2048, 4096), (2048, 1024), (512, 50257))
MB = 1e6
RESID = [sys.executable, "-m", "resid"]


@dataclass
class Line:
    """One line of the table."""

    what: str
    must: str
    measured: str
    ok: bool | None
    """None: nothing was promised."""
    numbers: dict[str, Any] = field(default_factory=dict)


# ---- the rows; each is a function from the options to lines -------------------------------------


def recording(options: argparse.Namespace) -> list[Line]:
    """Recording against the bare forward pass."""
    lines = []
    for points in ("post", "everything"):
        found = in_child(options, "time_recording", points, 7 if options.quick else 25)
        ratio = ratios(found["recorded"], found["bare"])
        promised = "<= 1.05" if points == "post" else "(says what it costs)"
        ok = ratio["median"] <= 1.05 if points == "post" else None
        what = f"record {points}, {TOKENS} tokens / bare forward"
        lines.append(Line(what, promised, show(ratio), ok, {**found, "ratio": ratio}))
    return lines


def lens(options: argparse.Namespace) -> list[Line]:
    """The full lens against its matrix products alone, and against the naive way."""
    found = in_child(options, "time_lens", 2 if options.quick else 5)
    products = ratios(found["lens"], found["products"])
    naive = ratios(found["naive"], found["both"])
    rate = found["flop"] / min(found["products"]) / 1e9
    what = f"lens, 13 points x {TOKENS}, top 5 / its products at {rate:.0f} Gflop/s"
    return [
        Line(what, "<= 1.25", show(products), products["median"] <= 1.25, {**found, **products}),
        Line("naive way / record and lens", ">= 1.8", show(naive), naive["median"] >= 1.8, naive),
    ]


def memory(options: argparse.Namespace) -> list[Line]:
    """Peak memory above the loaded model, and of a whole process with a long prompt."""
    post, every = (in_child(options, "cost_of_lens", TOKENS, points) for points in ("post", "all"))
    used, ratio = post["bytes"], every["bytes"] / post["bytes"]
    lines = [
        Line(f"memory of record and lens, {TOKENS} tokens", "< 400 MB", mb(used), used < 400 * MB),
        Line("the same with 25 points / with 13", "<= 1.25", f"{ratio:.2f}", ratio <= 1.25),
    ]
    if not options.quick:
        naive = in_child(options, "peak_of_naive", TOKENS)
        lines.append(Line("memory of the naive way", "(over 3 GB)", mb(naive), None))
    ids = ",".join(str(i) for i in prompt_ids(1024))
    output = str(options.folder / "lens.json")
    peak = run([*RESID, "lens", "-m", str(options.folder), "--ids", ids, "-o", output])["peak"]
    what = "whole process, 1,024 tokens, every position to JSON"
    return [*lines, Line(what, "< 1500 MB", mb(peak), peak < 1500 * MB)]


def startup(options: argparse.Namespace) -> list[Line]:
    """What needs no model must not wait for torch."""
    lines = []
    for arguments, limit in ((["--help"], 0.3), (["params", "gpt2-xl"], 0.5)):
        command = [sys.executable, "-X", "importtime", "-m", "resid", *arguments]
        imported = subprocess.run(command, capture_output=True, text=True, check=True).stderr
        torch_free = not any(
            line.split("|")[-1].strip() == "torch" for line in imported.split("\n")
        )
        times = [run([*RESID, *arguments])["wall"] for _ in range(5 if options.quick else 15)]
        middle = quartiles(times)
        measured = f"{show(middle)} s, {'without' if torch_free else 'WITH'} torch"
        ok = middle["median"] < limit and torch_free
        what = f"resid {' '.join(arguments)}"
        lines.append(Line(what, f"< {limit} s, without torch", measured, ok, {"wall": times}))
    return lines


def process(options: argparse.Namespace) -> list[Line]:
    """`resid lens` as a whole against a script that imports, loads and runs the same forward."""
    bare = (
        "import torch; from transformers import AutoTokenizer, GPT2LMHeadModel\n"
        f"folder = {str(options.folder)!r}\n"
        "model = GPT2LMHeadModel.from_pretrained(folder).eval()\n"
        "ids = AutoTokenizer.from_pretrained(folder)"
        f"({PROMPT!r}, return_tensors='pt').input_ids\n"
        "with torch.no_grad(): print(model(ids, use_cache=False).logits.shape)"
    )
    ours, theirs = [], []
    for _ in range(3 if options.quick else 9):
        theirs.append(run([sys.executable, "-c", bare]))
        ours.append(run([*RESID, "lens", "-m", str(options.folder), PROMPT]))
    lines = []
    for clock, name in (("cpu", "processor time"), ("wall", "wall time")):
        ratio = ratios([one[clock] for one in ours], [one[clock] for one in theirs])
        seconds = statistics.median(one[clock] for one in theirs)
        what = f"resid lens / bare script ({seconds:.1f} s), {name}"
        lines.append(Line(what, "<= 1.15", show(ratio), ratio["median"] <= 1.15, ratio))
    return lines


def growth(options: argparse.Namespace) -> list[Line]:
    """Time and memory of record and lens against tokens, and against layers."""
    tokens, layers = (
        ((64, 256), (6, 12)) if options.quick else ((64, 128, 256, 512, 1024), (6, 12, 24))
    )
    found = {
        "tokens": {n: in_child(options, "cost_of_lens", n) for n in tokens},
        "layers (d_model 256, 256 tokens)": {
            n: in_child(options, "cost_of_lens", 256, "post", n, 256) for n in layers
        },
    }
    lines = []
    for what, costs in found.items():
        for quantity, unit, scale in (("seconds", "s", 1), ("bytes", "MB", MB)):
            values = {n: cost[quantity] / scale for n, cost in costs.items()}
            logs = [[log(x) for x in pair] for pair in (values, values.values())]
            doubling = 2 ** statistics.linear_regression(*logs).slope
            steps = ", ".join(f"{n}: {value:.3g}" for n, value in values.items())
            measured = f"x {doubling:.2f} ({steps} {unit})"
            title = f"{quantity} with twice the {what}"
            lines.append(Line(title, "<= x 2.15", measured, doubling <= 2.15, {"values": values}))
    return lines


# ---- what runs in a process of its own; each returns something that JSON can hold --------------


def make_folder(folder: str) -> None:
    """A GPT-2 small of random weights, and a byte-level tokenizer of the same vocabulary."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    make_model().hf.save_pretrained(folder)
    pieces = sorted(pre_tokenizers.ByteLevel.alphabet())
    pieces += [f"Ġfiller{i}" for i in range(50256 - len(pieces))] + ["<|endoftext|>"]
    tokenizer = Tokenizer(models.BPE(vocab={piece: i for i, piece in enumerate(pieces)}, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    PreTrainedTokenizerFast(tokenizer_object=tokenizer).save_pretrained(folder)


def time_recording(points: str, turns: int) -> dict[str, list[float]]:
    """Seconds of the bare forward and of `record`, turn by turn."""
    import torch

    from resid import record

    model, ids = make_model(), prompt_ids(TOKENS)

    def bare() -> None:
        with torch.no_grad():
            model.forward([ids])

    return in_turn(turns, bare=bare, recorded=lambda: record(model, ids, points=points))


def time_lens(turns: int) -> dict[str, Any]:
    """Seconds of the lens, of its matrix products alone, and of the naive way."""
    import torch

    from resid import logit_lens, record

    model, ids = make_model(), prompt_ids(TOKENS)
    recorded = record(model, ids, points="post")
    with torch.no_grad():
        rows = model.ln_final(recorded.stream("post").flatten(0, 1))
    weight = model.W_U.T

    def products(x: Any, some: int, width: int) -> None:
        """Rows against the vocabulary."""
        buffer = torch.empty(some * width)
        for part in x.split(some):
            for block in weight.split(width):
                out = buffer[: len(part) * len(block)].view(len(part), len(block))
                torch.mm(part, block.T, out=out)

    def all_products(some: int, width: int) -> None:
        """The rows of every point, and the last point's exponentials back into the stream."""
        products(rows, some, width)
        back = torch.zeros(TOKENS, model.d_model)
        for logits, block in zip(recorded.logits.split(width, 1), weight.split(width), strict=True):
            back.addmm_(logits, block)

    shapes = {f"{r} x {v}": (lambda r=r, v=v: products(rows[:2048], r, v)) for r, v in SHAPES}
    shape_times = in_turn(2 if turns < 3 else 4, **shapes)
    fastest = SHAPES[min(range(len(SHAPES)), key=lambda i: min([*shape_times.values()][i]))]
    times = in_turn(
        turns,
        products=lambda: all_products(*fastest),
        lens=lambda: logit_lens(model, recorded, points="post"),
        both=lambda: logit_lens(model, record(model, ids, points="post"), points="post"),
        naive=lambda: naive_lens(model, ids),
    )
    flop = 2.0 * (len(rows) + TOKENS) * weight.numel()
    return {**times, "shapes": shape_times, "fastest": fastest, "flop": flop}


def cost_of_lens(
    tokens: int, points: str = "post", layers: int = 12, width: int = 768
) -> dict[str, float]:
    """Bytes above the loaded model, and seconds (best of three), of record and lens."""
    from resid import logit_lens, record

    model, ids = make_model(layers, width), prompt_ids(tokens)

    def work(n: int = tokens) -> None:
        logit_lens(model, record(model, ids[:n], points=points), points=points)

    peak = peak_above(work, warm=lambda: work(1))
    return {"bytes": peak, "seconds": min(in_turn(3, work=work)["work"])}


def peak_of_naive(tokens: int) -> float:
    """Bytes of the naive way above the loaded model."""
    model, ids = make_model(), prompt_ids(tokens)
    return peak_above(lambda: naive_lens(model, ids), warm=lambda: naive_lens(model, ids[:1]))


def naive_lens(model: Any, ids: list[int]) -> list[Any]:
    """The lens as it is usually written: everything stacked over the points, then reduced."""
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


# ---- how it is measured --------------------------------------------------------------------------


def make_model(layers: int = 12, width: int = 768) -> Any:
    """A GPT-2 of random weights in memory: small, unless told otherwise."""
    import torch
    from transformers import GPT2Config, GPT2LMHeadModel

    import resid

    torch.manual_seed(0)
    config = GPT2Config(n_layer=layers, n_embd=width, n_head=width // 64)
    return resid.load(GPT2LMHeadModel(config).eval())


def prompt_ids(n: int) -> list[int]:
    """Ids spread over the vocabulary."""
    return [i * 7919 % 50257 for i in range(1, n + 1)]


def in_turn(turns: int, **ways: Callable[[], object]) -> dict[str, list[float]]:
    """Seconds of every way, A B A B, after one round that does not count."""
    import torch

    clock = time.process_time if torch.get_num_threads() == 1 else time.perf_counter
    times: dict[str, list[float]] = {name: [] for name in ways}
    for turn in range(turns + 1):
        for name, way in ways.items():
            start = clock()
            way()
            if turn:
                times[name].append(clock() - start)
    return times


def peak_above(work: Callable[[], object], warm: Callable[[], object]) -> float:
    """Bytes by which the process grows at most; `warm` first touches weights and libraries."""
    warm()
    Path("/proc/self/clear_refs").write_text("5")  # Begin the high-water mark anew.
    before = resident("VmRSS")
    work()
    return resident("VmHWM") - before


def resident(key: str) -> float:
    """Bytes of this process that are in memory, now (VmRSS) or at most (VmHWM)."""
    status = Path("/proc/self/status").read_text()
    return 1024.0 * int(status.split(f"{key}:")[1].split()[0])


def in_child(options: argparse.Namespace, name: str, *arguments: Any) -> Any:
    """What a function of this file returns in a fresh process."""
    call = json.dumps([name, options.threads, arguments])
    done = subprocess.run(
        [sys.executable, __file__, "--call", call], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"{name} failed:\n{done.stderr}")
    return json.loads(done.stdout.splitlines()[-1])


def run(command: list[str]) -> dict[str, float]:
    """Seconds (wall, and processor time) and peak bytes of a command that must succeed."""
    start = time.perf_counter()
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    assert child.stderr is not None
    told = child.stderr.read()
    _, status, used = os.wait4(child.pid, 0)
    wall = time.perf_counter() - start
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"{' '.join(command)[:200]} failed:\n{told.decode()}")
    return {"wall": wall, "cpu": used.ru_utime + used.ru_stime, "peak": 1024.0 * used.ru_maxrss}


def quartiles(values: list[float]) -> dict[str, float]:
    """Median and quartiles."""
    low, median, high = statistics.quantiles(values, n=4, method="inclusive")
    return {"low": low, "median": median, "high": high}


def ratios(above: list[float], below: list[float]) -> dict[str, float]:
    """Median and quartiles of the ratio, turn by turn."""
    return quartiles([a / b for a, b in zip(above, below, strict=True)])


def show(ratio: dict[str, float]) -> str:
    """A median with its quartiles."""
    return f"{ratio['median']:.3f} [{ratio['low']:.3f} {ratio['high']:.3f}]"


def mb(size: float) -> str:
    """Bytes for people."""
    return f"{size / MB:.0f} MB"


# ---- the command line ----------------------------------------------------------------------------

ROWS = {row.__name__: row for row in (recording, lens, memory, startup, process, growth)}


def main() -> None:
    """Measure the rows asked for and print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="fewer rounds")
    parser.add_argument(
        "--only", default=",".join(ROWS), metavar="ROW,...", help=f"{', '.join(ROWS)}"
    )
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers there too")
    parser.add_argument("--threads", type=int, help="of torch; default: its own choice")
    parser.add_argument("--call", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.call:
        name, threads, arguments = json.loads(options.call)
        if threads:
            import torch

            torch.set_num_threads(threads)
        print(json.dumps(globals()[name](*arguments)))
        return
    names = options.only.split(",")
    if unknown := set(names) - set(ROWS):
        parser.error(f"there is no row {', '.join(sorted(unknown))}; rows are {', '.join(ROWS)}")
    if options.threads:
        os.environ["OMP_NUM_THREADS"] = str(options.threads)
    os.environ["HF_HUB_OFFLINE"] = "1"
    lines: list[Line] = []
    with tempfile.TemporaryDirectory() as folder:
        options.folder = Path(folder)
        if {"memory", "process"} & set(names):
            in_child(options, "make_folder", folder)
        print(f"{'what':66} {'must reach':22} measured")
        for name in names:
            for line in ROWS[name](options):
                mark = {True: "ok", False: "misses", None: ""}[line.ok]
                print(f"{line.what:66} {line.must:22} {line.measured}  {mark}", flush=True)
                lines.append(line)
    if options.json:
        load = os.getloadavg()
        found = {"quick": options.quick, "load": load, "rows": [asdict(line) for line in lines]}
        options.json.write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
