"""The three readings over text, held against plain computations with the oracle."""

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
import torch

import resid
from resid import projection as projections
from resid.corpus.batches import Batch
from resid.corpus.memory import MemoryReading
from resid.corpus.running import run
from resid.corpus.triggers import BEFORE
from resid.corpus.windows import NONE, Origin, Window
from resid.errors import ResidError
from tests.oracle import Oracle, entropy, kl, log_softmax


def brute_force(model, texts, context, stride=None, bos=()):
    """(document, position, place, next id or -1, the oracle's vectors at that place by name)."""
    for document, text in enumerate(texts):
        ids = model.vocabulary.encode(text)
        counted = 0
        for start in range(0, len(ids), stride or context):
            window = ids[start : start + context]
            oracle = Oracle(model.hf, [*bos, *window])
            for place in range(counted, len(window)):
                at = {name: value[place + len(bos)] for name, value in oracle.at.items()}
                position = start + place
                follows = ids[position + 1] if position + 1 < len(ids) else -1
                yield document, position, place + len(bos), follows, at, oracle
            if start + context >= len(ids):
                break
            counted = context - (stride or context)


@pytest.fixture
def documents(texts):
    """The texts as the file has them: the third of the lines put in between is an empty one."""
    return [*texts[:5], "", *texts[5:]]


POINTS = ("embed", "0.post", "1.post", "2.post")


@pytest.mark.parametrize("cut", [{}, {"context": 10, "stride": 4}, {"bos": True}])
def test_lens_means_are_those_of_all_logits_at_once(tiny, read, plan, documents, cut):
    lens = read("lens", plan(**cut))
    bos = [264] if cut.get("bos") else []
    context = cut.get("context", 32 - len(bos))
    rows = list(brute_force(tiny, documents, context, cut.get("stride"), bos))
    log_p = np.stack([[log_softmax(o.decode(at[p])) for *_, at, o in rows] for p in POINTS])
    top = log_p.argmax(-1)
    follows = np.array([row[3] for row in rows])
    scored = follows >= 0
    loss = -log_p[:, scored, follows[scored]]
    assert lens.points == POINTS
    assert lens.tokens == len(rows) == sum(len(tiny.vocabulary.encode(t)) for t in documents)
    assert lens.scored == scored.sum() == lens.tokens - lens.documents
    assert lens.documents == 14
    expected = {
        "cross_entropy": loss.mean(1),
        "entropy": entropy(log_p).mean(1),
        "kl_to_final": kl(log_p[-1], log_p).mean(1),
        "agreement": (top == top[-1]).mean(1),
    }
    for name, values in expected.items():
        assert getattr(lens, name) == pytest.approx(values, abs=1e-5), name
    settled = [
        next(i for i in range(4) if (top[i:, j] == top[-1, j]).all()) for j in range(len(rows))
    ]
    assert lens.settled_histogram.tolist() == np.bincount(settled, minlength=4).tolist()
    assert lens.settled_histogram.sum() == lens.tokens
    assert not lens.failures
    assert len(lens.checks) == 2


def test_lens_standard_errors_are_by_document(tiny, read, plan, documents):
    lens = read("lens", plan())
    sums, lengths = np.zeros(15), np.zeros(15)
    for document, *_, follows, _at, oracle in brute_force(tiny, documents, 32):
        if follows >= 0:
            place = _[-1]
            sums[document] -= log_softmax(oracle.logits[place])[follows]
            lengths[document] += 1
    kept = lengths > 0
    sums, lengths = sums[kept], lengths[kept]
    residuals = sums - sums.sum() / lengths.sum() * lengths
    n = len(lengths)
    expected = np.sqrt(n / (n - 1) * (residuals**2).sum()) / lengths.sum()
    assert lens.cross_entropy_se[-1] == pytest.approx(expected, rel=1e-5)


def test_the_loss_at_the_last_point_is_the_models_own(tiny, read, tmp_path, plan):
    text = "the the is the c it the is"
    (tmp_path / "one.txt").write_text(text, "utf-8")
    lens = read("lens", plan(files=(str(tmp_path / "one.txt"),)))
    ids = torch.tensor([tiny.vocabulary.encode(text)])
    with torch.no_grad():
        own = tiny.hf(ids, labels=ids, use_cache=False).loss
    assert lens.cross_entropy[-1] == pytest.approx(float(own), abs=1e-5)


def test_a_wrong_lens_is_noticed(fresh, read, plan, monkeypatch):
    from resid import unembed

    right = unembed.logprobs_of
    monkeypatch.setattr(unembed, "logprobs_of", lambda *args: right(*args) + 0.01)
    lens = read("lens", plan(), model=fresh)
    (failure,) = lens.failures
    assert failure.name == "loss_equals_own"
    assert failure.error == pytest.approx(0.01, rel=0.1)
    assert failure.where.startswith("document")


def test_norms_are_those_of_the_oracle(tiny, read, plan, documents):
    norms = read("norms", plan(context=9))
    rows = list(brute_force(tiny, documents, 9))
    first = np.array([place == 0 for _, _, place, *_ in rows])
    assert norms.tokens_at_start == first.sum() > 14
    l2 = {p: np.linalg.norm([at[p] for *_, at, _ in rows], axis=1) for p in rows[0][4]}
    stream = np.stack([l2[point] for point in POINTS])
    assert norms.l2.mean == pytest.approx(stream[:, ~first].mean(1), rel=1e-5)
    assert norms.l2.mean_at_start == pytest.approx(stream[:, first].mean(1), rel=1e-5)
    for name in ("attn_out", "mlp_out"):
        values = np.stack([l2[f"{layer}.{name}"] for layer in range(3)])[:, ~first]
        assert getattr(norms, name).mean == pytest.approx(values.mean(1), rel=1e-5)
    quantiles = np.quantile(stream[:, ~first], norms.quantile_shares, axis=1).T
    assert np.abs(np.log(norms.l2.quantiles / quantiles)).max() < 0.05
    logs = np.log(stream[1:, ~first]).mean(1)
    assert norms.growth.per_layer == pytest.approx(np.exp(np.polyfit(range(3), logs, 1)[0]))
    grows = (np.diff(stream[:, ~first], axis=0) > 0).mean()
    assert norms.growth.growing_steps == pytest.approx(grows)
    assert not norms.failures


def test_all_points_are_read_where_they_are_asked_for(tiny, read, plan, documents):
    norms = read("norms", plan(), points="all")
    lens = read("lens", plan(), points="all")
    assert (
        norms.points == lens.points == tuple(f"{p}" for p in ("embed", "0.mid", *lens.points[2:]))
    )
    assert len(lens.points) == 7


@pytest.mark.parametrize(("top", "batch_tokens"), [(4, 24), (1, 400)])
def test_triggers_fires_and_agreement_are_those_of_a_brute_force(
    tiny, plan, documents, top, batch_tokens
):
    reading = MemoryReading(tiny, top=top)
    memory = run(tiny, reading, plan(context=20, batch_tokens=batch_tokens))
    rows = list(brute_force(tiny, documents, 20))
    own = np.stack([[at[f"{layer}.mlp_post"] for *_, at, _ in rows] for layer in range(3)])
    assert memory.fires == pytest.approx((own > 0).mean(1))
    assert memory.active == pytest.approx((own > 0).mean((1, 2)))
    assert memory.dead.tolist() == (~(own > 0).any(1)).sum(1).tolist()
    vocabulary = reading.totals.vocabulary()
    agrees = np.full((3, 24), np.nan)
    for layer in range(3):
        values = projections.project(tiny, tiny.W_out(layer), "folded") @ tiny.W_U
        for neuron in range(24):
            order = sorted(
                (-own[layer, i, neuron], *rows[i][:2])
                for i in np.flatnonzero(own[layer, :, neuron] > 0)
            )[:top]
            found = reading.totals.triggers_of(layer, neuron, vocabulary, [""])
            assert [t.activation for t in found] == pytest.approx([-a for a, *_ in order], abs=1e-5)
            # The same tokens at the same places in two documents may change places by rounding.
            if np.diff([a for a, *_ in order]).min(initial=1) > 1e-4 and len(order) == 4 == top:
                assert {(t.document, t.pos) for t in found[:3]} == {(d, p) for _, d, p in order[:3]}
            for trigger in found:
                ids = tiny.vocabulary.encode(documents[trigger.document])
                assert ids[trigger.pos] == trigger.id
                start = trigger.pos // 20 * 20
                before = ids[max(start, trigger.pos - 15) : trigger.pos]
                assert trigger.before == "".join(tiny.vocabulary.show_all(before))
            if found and found[0].next_id >= 0:
                agrees[layer, neuron] = int(values[neuron].argmax()) == found[0].next_id
    assert memory.agreement == pytest.approx(np.nanmean(agrees, axis=1))
    assert not memory.failures


@pytest.mark.parametrize("kind", ["txt", "jsonl"])
def test_a_trigger_names_the_file_and_the_line_of_its_document(tiny, plan, texts, tmp_path, kind):
    flat = [text.replace("\n", " ") for text in texts if text.strip()]
    lines = list(flat) if kind == "txt" else [json.dumps({"text": text}) for text in flat]
    lines[2:2] = ["", "  "] if kind == "txt" else ["", "{broken"]  # Which are no documents.
    files = [tmp_path / f"{name}.{kind}" for name in "ab"]
    for file, some in zip(files, (lines[:6], lines[6:]), strict=True):
        file.write_text("\n".join(some), "utf-8")
    reading = MemoryReading(tiny, top=5)
    where = plan(files=tuple(map(str, files)), split="lines", context=20)
    memory = run(tiny, reading, where)
    names, seen = [str(file) for file in files], set()
    for layer in range(3):
        for neuron in range(24):
            found = reading.totals.triggers_of(layer, neuron, reading.totals.vocabulary(), names)
            for trigger in found:
                line = Path(trigger.file).read_text("utf-8").split("\n")[trigger.line - 1]
                text = line if kind == "txt" else json.loads(line)["text"]
                assert text == flat[trigger.document]
                assert tiny.vocabulary.encode(text)[trigger.pos] == trigger.id
                seen.add((trigger.file, trigger.line))
            first = (found[0].file, found[0].line) if found else ("", -1)
            assert (memory.top_file[layer, neuron], memory.top_line[layer, neuron]) == first
    assert {file for file, _ in seen} == set(names)
    assert len(seen) > 10


def test_of_equal_activations_the_earliest_document_stays_whenever_it_is_read(tiny):
    reading = MemoryReading(tiny, top=2)
    for document in (5, 6, 1):
        window = Window(Origin(document, 0, 1), 0, [5, 17, 99, 3], 0, NONE)
        reading.read(Batch([window], None), first=False)
    fired = 0
    for triggers in reading.totals.triggers:
        found = triggers.document[triggers.activation[:, 0] > 0]
        assert (found == [1, 5]).all()
        fired += len(found)
    assert fired > 30


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
def test_however_little_fires_a_neuron_it_has_a_trigger(tiny_folder, dtype):
    """Some coefficients are below the smallest normal number of their format."""
    little = torch.finfo(dtype).tiny / 4

    def shrink(module, inputs, out):
        return torch.where(out > 0, little, -1).to(dtype)

    model = resid.load(tiny_folder, dtype=dtype)
    model.hf.transformer.h[1].mlp.act.register_forward_hook(shrink)
    reading = MemoryReading(model, top=3)
    reading.read(Batch([Window(Origin(0, 0, 1), 0, [5, 17, 99, 3], 0, NONE)], None), first=False)
    fires = reading.totals.fires.counts[1]
    found = reading.totals.triggers[1]
    assert fires.max() == 4
    assert fires.min() == 0
    assert ((found.document != NONE).sum(1) == np.minimum(fires, 3)).all()
    assert (found.activation == np.where(found.document != NONE, np.float32(little), 0)).all()


def test_agreement_is_counted_where_a_value_says_what_follows(fresh, plan, tmp_path):
    """A neuron is given the very token that follows its strongest trigger as what it promotes."""
    (tmp_path / "t.txt").write_text("the the is the c it the is é" * 3, "utf-8")
    where = plan(files=(str(tmp_path / "t.txt"),))
    before = MemoryReading(fresh, top=1, projection="raw")
    run(fresh, before, where)
    vocabulary = before.totals.vocabulary()
    with torch.no_grad():
        changed = 0
        for neuron in range(24):
            (trigger,) = before.totals.triggers_of(2, neuron, vocabulary, [""]) or (None,)
            if trigger is not None and trigger.next_id >= 0:
                # The last layer's values change nothing in what fires any neuron.
                fresh.W_out(2)[neuron] = 100 * fresh.W_U[:, trigger.next_id]
                fresh.W_out(2)[neuron] /= fresh.W_U[:, trigger.next_id].norm() ** 2
                changed += 1
    says = (fresh.W_out(2) @ fresh.W_U).argmax(1)
    after = MemoryReading(fresh, top=1, projection="raw")
    memory = run(fresh, after, where)
    follows = [
        t[0].next_id if (t := after.totals.triggers_of(2, n, vocabulary, [""])) else -1
        for n in range(24)
    ]
    expected = np.mean([int(says[n]) == f for n, f in enumerate(follows) if f >= 0])
    assert changed > 10
    assert memory.agreement[2] == pytest.approx(expected)
    assert memory.agreement[2] > 0.5 > memory.agreement_chance[2]


def test_a_model_without_a_head_has_norms_and_triggers_but_no_lens(tiny, read, plan):
    from resid.model import Model

    base = Model(tiny.hf.transformer, tiny.vocabulary.tokenizer)
    assert read("norms", plan(), model=base).tokens
    memory = read("memory", plan(), model=base)
    assert memory.projection is None
    assert np.isnan(memory.agreement).all()
    assert memory.fires.max() > 0
    with pytest.raises(ResidError, match="no language-model head"):
        read("lens", plan(), model=base)


@pytest.mark.parametrize("kind", ["lens", "norms", "memory"])
def test_what_is_not_finite_is_left_out_and_told(fresh, read, plan, kind):
    def break_one_place(module, inputs, out):
        out[:, 7:8] = torch.nan
        return out

    hook = fresh.hf.transformer.h[2].mlp.act.register_forward_hook(break_one_place)
    result = read(kind, plan(), model=fresh)
    (failure,) = result.failures
    assert failure.name == "finite"
    assert 0 < failure.error < result.tokens / 8
    assert failure.where == "document 0 at position 7"
    numbers = {"lens": "cross_entropy", "memory": "active"}.get(kind)
    assert np.isfinite(getattr(result, numbers) if numbers else result.l2.mean).all()
    assert result.not_finite == failure.error
    if kind == "lens":
        assert result.settled_histogram.sum() == result.tokens - failure.error
    if kind == "memory":
        # Of a token that is lost in one layer, the layers before know as much as ever.
        hook.remove()
        whole = read(kind, plan(), model=fresh)
        np.testing.assert_array_equal(result.fires[:2], whole.fires[:2])
        assert result.fires[2].max() <= 1
        assert not np.array_equal(result.fires[2], whole.fires[2])


@pytest.mark.parametrize("kind", ["lens", "norms", "memory"])
def test_the_model_is_left_as_it_was(tiny, read, plan, kind):
    before = {name: weight.clone() for name, weight in tiny.hf.state_dict().items()}
    read(kind, plan())
    assert all(torch.equal(before[name], weight) for name, weight in tiny.hf.state_dict().items())
    assert not any(m._forward_hooks or m._forward_pre_hooks for m in tiny.hf.modules())


def test_results_are_complete_records(read, plan):
    for kind in ("lens", "norms", "memory"):
        result = read(kind, plan())
        document = result.to_json()
        assert f'"analysis": "corpus_{kind}"' in document
        assert result.source.bad_lines == 2
        assert result.source.empty_documents == 1
        assert [bad["line"] for bad in result.source.bad_lines_first] == [6, 8]
        assert len(result.to_csv().splitlines()) > 4
        with pytest.raises(dataclasses.FrozenInstanceError):
            result.tokens = 0


def test_a_value_that_promotes_nothing_known_does_not_count(fresh, plan):
    reading = MemoryReading(fresh, top=1)
    run(fresh, reading, plan())
    follows = reading.totals.triggers[2].context[:, 0, BEFORE + 1]
    counted = np.flatnonzero(follows != NONE)
    with torch.no_grad():  # Of the last layer: no coefficient depends on them.
        for neuron in counted:
            fresh.W_out(2)[neuron] = fresh.W_U[:, follows[neuron]]
        fresh.W_out(2)[counted[0]] = torch.nan
    says = (fresh.W_out(2) @ fresh.W_U).argmax(1).numpy()
    result = run(fresh, MemoryReading(fresh, top=1, projection="raw"), plan())
    agrees = (says == follows)[counted[1:]]
    assert 0.3 < agrees.mean() == pytest.approx(result.agreement[2])
    (failure,) = [failure for failure in result.failures if failure.name == "finite"]
    assert (failure.error, failure.where) == (1, f"the value of L2N{counted[0]}")


def test_what_is_not_finite_in_one_layer_leaves_those_before_known(fresh, read, plan):
    with torch.no_grad():
        fresh.W_out(1)[3] = torch.nan
    result = read("memory", plan(), model=fresh)
    # Behind its layer nothing is finite.
    assert result.known_dead()[2] is None
    assert result.known_dead()[:2] == result.dead[:2].tolist()
    assert np.isfinite(result.agreement[:2]).all()
    assert np.isfinite(result.agreement_chance[:2]).all()


def test_neurons_that_do_not_add_up_are_told(fresh, read, plan):
    fresh.hf.transformer.h[1].mlp.register_forward_hook(lambda module, inputs, out: out * 1.01)
    (failure,) = read("memory", plan(), model=fresh).failures
    assert failure.name == "neurons_add_up"
    assert 1e-3 < failure.error < 1e-1


def test_an_mlp_that_writes_numbers_where_its_neurons_are_none_is_told(fresh, read, plan):
    mlp = fresh.hf.transformer.h[1].mlp
    mlp.act.register_forward_hook(lambda module, inputs, out: out * torch.nan)
    mlp.register_forward_hook(lambda module, inputs, out: torch.ones_like(out))
    failures = {check.name: check for check in read("memory", plan(), model=fresh).failures}
    assert set(failures) == {"finite", "neurons_add_up"}
    assert np.isnan(failures["neurons_add_up"].error)
