import json
import re
from dataclasses import replace

import pytest
import torch

import resid
from resid import forward_pass
from resid.readings.verification import certificate, identities, prompts, running, streaming

from ..conftest import D_MODEL, IDS, N_CTX, tiny_hf
from ..faults import FAULTS

KINDS = {
    "lens_equals_logits", "finite", "stream_adds_up", "points_chain", "neurons_add_up",
    "waterfall_telescopes", "direct_closes", "heads_add_up", "logits_unchanged",
    "lens_equals_full", "blocks_agree", "blocks_same_tokens", "hooks_removed", "modes_restored",
    "hooks_removed_after_error", "modes_restored_after_error", "batch_equals_single",
    "parts_add_up",
}  # fmt: skip
ROWS = [IDS, IDS[:2]]


def failed(found, dtype=None):
    dtypes = zip(found.checks, found.dtypes, strict=True)
    return {c.name for c, of in dtypes if not c.passed and dtype in (None, of)}


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"tie_word_embeddings": False},
        {"activation_function": "relu"},
        {"n_inner": D_MODEL},
        {"reorder_and_upcast_attn": True, "attn_implementation": "eager"},
        {"scale_attn_by_inverse_layer_idx": True, "attn_implementation": "eager"},
    ],
    ids=str,
)
def test_a_sound_model_passes_every_check_in_both_formats(changes):
    found = resid.verify(resid.load(tiny_hf(**changes)))
    assert found.failures == ()
    for dtype in ("float32", "float64"):
        made = {
            check.name for check, of in zip(found.checks, found.dtypes, strict=True) if of == dtype
        }
        assert made == KINDS - ({"parts_add_up"} if dtype == "float64" else set())


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_passes_within_its_own_tolerances(dtype):
    found = resid.verify(resid.load(tiny_hf().to(dtype)), ROWS)
    assert found.failures == ()
    loose = {
        line.check.name: line.check.tolerance for line in found.lines() if line.dtype != "float64"
    }
    tight = {
        line.check.name: line.check.tolerance for line in found.lines() if line.dtype == "float64"
    }
    assert loose["batch_equals_single"] > 1e-3 > 1e-9 > tight["batch_equals_single"]


def test_the_bundled_model_passes():
    assert resid.verify(resid.load("mini")).failures == ()


def test_float64_tolerances_are_far_tighter(tiny):
    found = resid.verify(tiny, ROWS)
    tight = [line.check for line in found.lines() if line.dtype == "float64"]
    assert len(tight) == len(KINDS) - 1
    assert max(check.tolerance for check in tight) < 1e-8
    assert max(check.error for check in tight) < 1e-12


def test_a_float64_model_needs_no_copy():
    found = resid.verify(resid.load(tiny_hf().double()), ROWS)
    assert set(found.dtypes) == {"float64"} and found.failures == ()
    assert max(check.tolerance for check in found.checks) < 1e-8


def test_the_copy_is_left_out_on_request(tiny, monkeypatch):
    monkeypatch.setattr(certificate.exactly, "in_float64", None)
    assert set(resid.verify(tiny, ROWS, float64=False).dtypes) == {"float32"}


def test_the_model_is_left_as_it_was():
    hf = tiny_hf().train()
    hf.transformer.h[1].eval()
    before = {
        name: (module.training, len(module._forward_pre_hooks))
        for name, module in hf.named_modules()
    }
    weights = {name: weight.clone() for name, weight in hf.state_dict().items()}
    assert resid.verify(resid.load(hf), ROWS).failures == ()
    assert {n: (m.training, len(m._forward_pre_hooks)) for n, m in hf.named_modules()} == before
    assert all(torch.equal(weights[name], weight) for name, weight in hf.state_dict().items())


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_is_seen_and_placed(fault, monkeypatch):
    model = resid.load(tiny_hf(n_inner=D_MODEL))
    fault.plant(monkeypatch)
    found = resid.verify(model, ROWS)
    assert set(fault.seen_by) <= failed(found, "float32")
    places = [check.where for check in found.failures if check.name == fault.seen_by[0]]
    assert re.fullmatch(fault.where, places[0])
    if fault.seen_by != ("parts_add_up",):  # Rounding would have shrunk.
        assert set(fault.seen_by) <= failed(found, "float64")


# What to switch off so that nothing is left that sees the fault.
ALONE = {
    "transposed values": [(identities, "mlp_memory")],
    "tied head counted twice": [(identities, "parts_add_up")],
    "points off by one": [(certificate.streaming, "lens_equals_full")],
    "last statistics at every layer": [(certificate.streaming, "lens_equals_full")],
}


@pytest.mark.parametrize("name", ALONE)
def test_without_its_check_the_fault_goes_unseen(name, monkeypatch):
    (fault,) = [fault for fault in FAULTS if fault.name == name]
    model = resid.load(tiny_hf(n_inner=D_MODEL))
    for module, check in ALONE[name]:
        right = getattr(module, check)
        monkeypatch.setattr(module, check, always_passes(right))
    fault.plant(monkeypatch)
    assert resid.verify(model, ROWS).failures == ()


def always_passes(right):
    def passed(check):
        return replace(check, error=0.0, passed=True, where=None)

    def deaf(*arguments, **options):
        found = right(*arguments, **options)
        if hasattr(found, "checks"):
            return replace(found, checks=tuple(map(passed, found.checks)))
        return passed(found)

    return deaf


def test_a_hook_that_stays_is_named(fresh, monkeypatch):
    right = running.record

    def forgetful(model, *arguments, **options):
        model.site("1.mlp_out")[0].register_forward_hook(lambda *_: None)
        return right(model, *arguments, **options)

    monkeypatch.setattr(running, "record", forgetful)
    checks = {check.name: check for check in running.left_behind(fresh, IDS)}
    assert checks["hooks_removed"].where == "the hooks of transformer.h.1.mlp"
    assert not checks["hooks_removed_after_error"].passed
    assert checks["modes_restored"].passed


def test_a_training_flag_that_is_not_given_back_is_named(monkeypatch):
    model = resid.load(tiny_hf().train())
    right = running.record

    def forgetful(model, *arguments, **options):
        model.site("0.post")[0].training = False
        return right(model, *arguments, **options)

    monkeypatch.setattr(running, "record", forgetful)
    checks = {check.name: check for check in running.left_behind(model, IDS)}
    assert checks["modes_restored"].where == "the training flag of transformer.h.0"


def test_one_bit_of_the_logits_is_seen(tiny):
    recording = resid.record(tiny, IDS)
    logits = recording.logits.clone()
    logits[3, 7] = torch.nextafter(logits[3, 7], torch.tensor(torch.inf))
    check = running.logits_unchanged(tiny, replace(recording, logits=logits))
    assert not check.passed and check.where == "logits at position 3"


def test_padding_that_is_read_is_seen(tiny, monkeypatch):
    right = forward_pass.padded

    def unmasked(ids, device):  # Counts positions from the right, as left-padding would.
        batch, options = right(ids, device)
        if len(ids) > 1:
            options["position_ids"] = torch.arange(batch.shape[1]).flip(0).expand_as(batch)
        return batch, options

    monkeypatch.setattr("resid.model.padded", unmasked)
    check = running.batch_equals_single(tiny, ROWS)
    assert not check.passed and check.where.startswith("row ")


@pytest.mark.parametrize("rows", [[[5]], [[5, 6, 7]], [[5, 6], [7, 8]]])
def test_a_batch_is_made_of_unequal_lengths(rows):
    assert len({len(row) for row in running._unequal(rows, N_CTX)}) > 1


def test_blocks_that_name_other_tokens_are_seen(tiny, monkeypatch):
    right = streaming.unembed.decode

    def wrong(model, rows, top, tracked=(), **blocks):
        found = right(model, rows, top, tracked, **blocks)
        smaller = blocks.get("block_vocab", 0) == model.d_vocab
        return replace(found, top_ids=found.top_ids + 1) if smaller else found

    monkeypatch.setattr(streaming.unembed, "decode", wrong)
    checks = {c.name: c for c in streaming.blocks_agree(tiny, resid.record(tiny, IDS))}
    assert not checks["blocks_same_tokens"].passed and checks["blocks_agree"].passed


def test_ties_may_come_in_either_order():
    ties = streaming._ties(torch.tensor([[-1.0, -2.0, -2.0, -3.0]]), 1e-6)
    assert ties.tolist() == [[False, True, True, False]]


def test_what_is_not_finite_fails_with_its_place():
    hf = tiny_hf()
    with torch.no_grad():
        hf.transformer.h[1].mlp.c_proj.bias[2] = torch.nan
    found = resid.verify(resid.load(hf), ROWS)
    wheres = [check.where for check in found.failures if check.name == "finite"]
    assert "1.mlp_out at position 0, prompt 0, float32" in wheres
    assert found.to_json()


def test_without_a_tokenizer_ids_are_drawn_from_a_fixed_seed():
    model = resid.load(tiny_hf())
    drawn = prompts.built_in(model)
    assert drawn == prompts.built_in(model)
    assert [text for text, _ in drawn] == [None] * 3
    assert len({len(ids) for _, ids in drawn}) == 3


def test_built_in_prompts_fit_the_context(tiny):
    built_in = prompts.built_in(tiny)
    assert built_in[0][0] == "The capital of France is"
    assert max(len(ids) for _, ids in built_in) == N_CTX


def test_a_model_without_a_head_is_refused():
    from transformers import GPT2Model

    from ..conftest import tiny_config

    with pytest.raises(resid.ResidError, match="no language-model head"):
        resid.verify(resid.load(GPT2Model(tiny_config())), ROWS)


def test_a_prompt_that_cannot_be_read_is_refused(tiny):
    with pytest.raises(resid.ResidError, match="reads at most 32"):
        resid.verify(tiny, [list(range(33))])


def test_the_result_has_lines_rows_and_json(tiny):
    found = resid.verify(tiny, " the is")
    assert found.prompts == (" the is",)
    document = json.loads(found.to_json())
    assert document["analysis"] == "verify"
    assert len(document["checks"]) == len(document["axes"]["check"]) == len(list(found.rows()))
    assert sum(group["runs"] for group in document["data"]["groups"]) == len(found.checks)
    assert set(document["data"]) == {"passed", "prompts", "groups", "group", "dtype", "run"}
