"""What `bench.py` measures, each in a process of its own and returned as what JSON can hold."""

import copy
import gc
import json
import shutil
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import chromium

TOKENS = 512
IDS = [i * 7919 % 50257 for i in range(1, 1025)]  # Spread over the vocabulary.
# Rows and vocabulary entries at a time: ways to the same products, of which the fastest counts.
SHAPES = ((512, 4096), (512, 8192), (1024, 4096), (2048, 4096), (2048, 1024), (512, 50257))
MINI = Path(__file__).parent.parent / "resid" / "bundled" / "mini"


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

    from resid.commands.allocator import keep_freed_memory
    from resid.corpus.batches import Batch
    from resid.corpus.lens import LensReading
    from resid.corpus.memory import MemoryReading
    from resid.corpus.windows import Origin, Window

    keep_freed_memory()  # As the command does; what it is compared with gains by it too.
    model = make_model()
    reading: Any = {"lens": LensReading, "memory": MemoryReading}[kind](model)
    windows, n_ctx = 2, model.n_ctx
    text = [[(i * 7919 + j * 104729) % 50257 for i in range(n_ctx)] for j in range(64)]

    def batch(turn: int) -> Any:
        numbers = [(windows * turn + j) % len(text) for j in range(windows)]
        return Batch([Window(Origin(n, 0, n + 1), 0, text[n], 0, 7) for n in numbers], None)

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


if __name__ == "__main__":
    name, arguments = json.loads(sys.argv[1])
    print(json.dumps(globals()[name](*arguments)))
