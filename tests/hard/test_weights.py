"""Weights that are not finite, of half precision, or without a head, under every command."""

import json
import re

import pytest
import torch
import transformers

import resid
from resid.errors import ResidError
from tests.conftest import IDS, tiny_config, tiny_hf, write_checkpoint
from tests.hard.every_command import NAMES, NEED_A_HEAD, WITH_FORMATS, run

# A weight, its row in which a number is spoilt, and the commands that read it there.
SPOILT = {
    "transformer.h.1.mlp.c_proj.weight": (
        3,
        {"lens", "norms", "memory", "find", "neuron", "attribute", "record", "report", "verify",
         "block", "activations"},
    ),
    "transformer.wte.weight": (
        299,
        {"lens", "memory", "neuron", "attribute", "record", "report", "verify", "block"},
    ),
}  # fmt: skip


@pytest.fixture(scope="module", params=SPOILT, ids=lambda name: name.split(".")[-2])
def spoilt(request, tmp_path_factory):
    """A checkpoint with one number that is not finite, and who must notice."""
    row, readers = SPOILT[request.param]
    hf = tiny_hf()
    with torch.no_grad():
        hf.get_parameter(request.param)[row, 2] = torch.inf
    return write_checkpoint(tmp_path_factory.mktemp("spoilt"), hf), readers


@pytest.mark.parametrize("name", NAMES)
def test_what_is_not_finite_is_told_and_ends_with_3(spoilt, tmp_path, name):
    folder, readers = spoilt
    result = run(name, folder, out=tmp_path)
    assert result.exit_code == (3 if name in readers else 0), result.output
    assert ("check failed" in result.stderr) == (name in readers)
    assert not re.search(r"\b(nan|inf)\b", result.stdout, re.IGNORECASE)


@pytest.mark.parametrize("name", WITH_FORMATS)
def test_json_of_what_is_not_finite_is_json(spoilt, name):
    result = run(name, spoilt[0], "--format", "json")
    document = json.loads(result.stdout, parse_constant=lambda text: pytest.fail(text))
    failed = [check for check in document["checks"] if not check["passed"]]
    assert bool(failed) == (name in spoilt[1])
    assert all(check["where"] for check in failed)


def test_no_token_stands_where_its_score_is_not_finite(spoilt):
    document = json.loads(run("neuron", spoilt[0], "--format", "json").stdout)["data"]
    assert {token["id"] for token in document["promoted"] + document["suppressed"]} == {None}
    assert {token["token"] for token in document["promoted"]} == {None}
    assert "n/a" in run("neuron", spoilt[0]).stdout


def test_a_neuron_whose_score_is_not_finite_comes_after_all_others():
    hf = tiny_hf()
    with torch.no_grad():
        hf.transformer.h[1].mlp.c_proj.weight[3] = torch.nan
    found = resid.find_neurons(resid.load(hf), 3, neurons=72)
    for listed in (found.promotes, found.suppresses):
        assert (listed.layer[-1], listed.neuron[-1]) == (1, 3)
        assert [bool(lost) for lost in listed.score != listed.score] == [False] * 71 + [True]
    (check,) = found.checks
    assert (check.name, check.passed, check.where) == ("finite", False, "the score of L1N3")


@pytest.mark.parametrize("block_rows", [1, 2, 2048])
@pytest.mark.parametrize("at", [0, 299])
@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
def test_a_score_that_is_not_finite_is_seen_in_whichever_block(bad, at, block_rows):
    from resid import unembed

    hf = tiny_hf(tie_word_embeddings=False)
    with torch.no_grad():
        hf.lm_head.weight[at] = 0
        hf.lm_head.weight[at, 0] = bad
    model = resid.load(hf)
    rows = torch.randn(3, 16, generator=torch.Generator().manual_seed(0))
    rows[:, 0] = torch.tensor([1.0, 0.5, 2.0])
    for sign in (1, -1):
        scores, ids = unembed.top_tokens(
            model, sign * rows, 4, block_rows=block_rows, block_vocab=64
        )
        # The most negative score is at the other end, and seen from there.
        if bad == sign * torch.inf or bad != bad:
            assert (ids == -1).all() and scores.isnan().all()


@pytest.mark.parametrize("bad", [torch.inf, -torch.inf])
def test_a_score_that_is_not_finite_at_one_end_hides_both(bad):
    from resid.projection import extremes

    hf = tiny_hf(tie_word_embeddings=False)
    with torch.no_grad():
        hf.lm_head.weight[299] = 0
        hf.lm_head.weight[299, 0] = bad
    rows = torch.ones(2, 16)
    rows[1, 0] = 0  # 0 x inf is no number either.
    for found in extremes(resid.load(hf), rows, 3, "raw"):
        assert found.ids.tolist() == [[-1] * 3] * 2
        assert set(found.tokens.ravel()) == {""}
        assert not found.known.any()


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("name", [name for name in NAMES if name != "params"])
def test_every_command_and_file_in_half_precision(tiny_folder, tmp_path, name, dtype):
    files = [tmp_path / f"result{suffix}" for suffix in (".png", ".html", ".json", ".csv")]
    wanted = files if name in WITH_FORMATS else []
    more = [word for file in wanted for word in ("-o", file)]
    result = run(name, tiny_folder, "--dtype", dtype, *more, out=tmp_path)
    assert result.exit_code == 0, result.output
    assert all(file.stat().st_size for file in wanted)


@pytest.fixture(scope="module")
def headless(tmp_path_factory):
    """Blocks and embeddings alone, and nothing that says what the unembedding would be."""
    hf = transformers.GPT2Model(tiny_config(tie_word_embeddings=False)).eval()
    return write_checkpoint(tmp_path_factory.mktemp("headless"), hf)


@pytest.mark.parametrize("name", NAMES)
def test_without_a_head_what_needs_none_works_and_the_rest_says_so(headless, tmp_path, name):
    result = run(name, headless, out=tmp_path)
    if name in NEED_A_HEAD:
        assert (result.exit_code, result.stdout) == (1, "")
        assert "is a GPT2Model: it has no language-model head" in result.stderr
        assert len(result.stderr.splitlines()) <= 3
        assert list(tmp_path.iterdir()) == []
    else:
        assert result.exit_code == 0, result.output


@pytest.mark.parametrize("name", NAMES)
def test_a_model_of_another_architecture_is_refused_by_every_command(tiny_folder, tmp_path, name):
    (tmp_path / "config.json").write_text('{"model_type": "bert"}')
    result = run(name, tmp_path, out=tmp_path)
    assert (result.exit_code, result.stdout) == (1, "")
    assert "resid reads gpt2 models; got 'bert'" in result.stderr
    assert len(result.stderr.splitlines()) <= 3


def test_a_packed_layer_is_refused_and_not_halved():
    """As four-bit loaders leave it: one column, two numbers a byte."""
    hf = tiny_hf()
    packed = torch.zeros(16 * 48 // 2, 1, dtype=torch.uint8)
    hf.transformer.h[0].attn.c_attn.weight = torch.nn.Parameter(packed, requires_grad=False)
    with pytest.raises(ResidError, match=r"h\.0\.attn\.c_attn\.weight"):
        resid.param_count(hf)
    assert len(resid.load(tiny_hf()).encode(IDS)) == len(IDS)
