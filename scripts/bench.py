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
import contextlib
import importlib.metadata
import importlib.util
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from math import log
from pathlib import Path
from statistics import linear_regression, median, quantiles
from typing import Any

import bench_work
import chromium
from bench_work import IDS, TOKENS

PROMPT = "The capital of France is"
MB = 1e6
STARTUP = 5.0  # Seconds, about, until a command has imported what it needs.
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
    """Peak memory of a whole process after a tenth of a text and after all of it, with mini.

    Of one process: the peaks of two runs over the same text differ by a tenth, with how the pieces
    of the allocator happen to lie. For the same reason a run of any length may find its peak late,
    and the aim is a tenth.
    """
    lines = []
    many = 100_000 if options.quick else 500_000
    text = write_text(options.folder, many)
    for kind in ("memory",) if options.quick else ("memory", "norms", "lens"):
        command = [*RESID, "corpus", kind, text, "-m", "mini", "-q", "--format", "json"]
        command += ["--max-tokens", str(many)]
        tenth, end = peaks(command, after=STARTUP)
        what = f"memory of corpus {kind}, {many:,} tokens / {many // 10:,}"
        measured = f"{end / tenth:.3f} ({tenth / MB:.0f} MB, {end / MB:.0f} MB)"
        lines.append(Line(what, "<= 1.10", measured, end / tenth <= 1.1, [tenth, end]))
    return lines


def corpus_agreement(options: argparse.Namespace) -> list[Line]:
    """One process, four shards merged, two processes by torchrun, and a killed run taken up.

    All with one thread a process, which is what torchrun gives them: products are rounded otherwise
    by another number of threads.
    """
    many, folder = 200_000, options.folder
    env = os.environ | {"OMP_NUM_THREADS": "1"}
    text = write_text(folder, many)
    read = ["corpus", "lens", text, "-m", "mini", "-q", "--format", "json"]
    read += ["--max-tokens", str(many)]

    def state(name: str) -> bytes:
        return (folder / name / "state.safetensors").read_bytes()

    took = run([*RESID, *read, "-o", str(folder / "one")], env)["wall"]
    for k in range(1, 5):
        run([*RESID, *read, "--shard", f"{k}/4", "-o", str(folder / f"part{k}")], env)
    parts = [str(folder / f"part{k}") for k in range(1, 5)]
    run([*RESID, "corpus", "merge", *parts, "-q", "-o", str(folder / "merged")], env)
    launch = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2"]
    run([*launch, "-m", "resid", *read, "-o", str(folder / "two")], env)
    again = [*RESID, *read, "--resume", str(folder / "killed"), "--save-every", "1"]
    with subprocess.Popen(again, stdout=subprocess.DEVNULL, env=env) as child:
        time.sleep(took / 2)
        child.kill()
    killed = (folder / "killed" / "state.safetensors").exists() and child.returncode == -9
    run(again, env)
    lines = []
    for name, what in (
        ("merged", "4 shards merged"),
        ("two", "2 processes by torchrun"),
        ("killed", "killed by -9 and taken up"),
    ):
        same = state(name) == state("one")
        told = "the same bytes" if same else "NOT the same"
        if name == "killed" and not killed:
            same, told = False, "not measured: it was not killed while it was saving its state"
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


def in_child(name: str, *arguments: Any) -> Any:
    """What a function of `bench_work` returns in a fresh process."""
    command = [sys.executable, bench_work.__file__, json.dumps([name, arguments])]
    done = subprocess.run(command, stdout=-1, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def run(command: list[str], env: dict[str, str] | None = None) -> dict[str, float]:
    """Seconds (wall, and processor time) and peak bytes of a command that must succeed."""
    start = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, env=env) as child:
        _, status, used = os.wait4(child.pid, 0)
        wall = time.perf_counter() - start
        child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise SystemExit(f"status {child.returncode}: {' '.join(command)[:200]}")
    return {"wall": wall, "cpu": used.ru_utime + used.ru_stime, "peak": 1024.0 * used.ru_maxrss}


def peaks(command: list[str], after: float) -> tuple[float, float]:
    """Peak bytes of a command after a tenth of its time, counted from its start-up, and at all."""
    seen = []
    start = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as child:
        while child.poll() is None:
            # Of a process that is ending there is nothing left to read.
            with contextlib.suppress(OSError, IndexError):
                status = Path(f"/proc/{child.pid}/status").read_text()
                peak = 1024.0 * int(status.split("VmHWM:")[1].split()[0])
                seen.append((time.perf_counter() - start, peak))
            time.sleep(0.1)
    if child.returncode:
        raise SystemExit(f"status {child.returncode}: {' '.join(command)[:200]}")
    tenth = after + (seen[-1][0] - after) / 10
    return next(peak for at, peak in seen if at >= tenth), seen[-1][1]


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
    options = parser.parse_args()
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
