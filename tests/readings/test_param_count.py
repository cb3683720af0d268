"""Counts against published numbers, and against torch's own parameters."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import resid
from resid.errors import ResidError
from resid.layout import Sizes, known
from resid.readings import parameters
from resid.readings.param_count import count, param_count

from ..conftest import D_MODEL, D_VOCAB, tiny_config, tiny_hf

# Total, one block, attention weights and biases, MLP weights and biases, a block's norms, FLOPs per
# token at 1,024. Totals: KerasHub's gpt2 presets; the rest by hand from the sizes.
PUBLISHED = {
    "distilgpt2": (81912576, 7087872, 2359296, 3072, 4718592, 3840, 3072, 181003776),
    "gpt2": (124439808, 7087872, 2359296, 3072, 4718592, 3840, 3072, 284812800),
    "gpt2-medium": (354823168, 12596224, 4194304, 4096, 8388608, 5120, 4096, 807569408),
    "gpt2-large": (774030080, 19677440, 6553600, 5120, 13107200, 6400, 5120, 1732979200),
    "gpt2-xl": (1557611200, 30740800, 10240000, 6400, 20480000, 8000, 6400, 3424515200),
}
BLOCKS = {"distilgpt2": 6, "gpt2": 12, "gpt2-medium": 24, "gpt2-large": 36, "gpt2-xl": 48}
TRUNK = {"wte": 38597376, "wpe": 786432, "ln_f": 1536}


def on_meta(**changes):
    """A GPT2LMHeadModel without numbers."""
    from transformers import GPT2LMHeadModel

    with torch.device("meta"):
        return GPT2LMHeadModel(tiny_config(**changes))


def distinct(hf):
    """torch's own count: named_parameters() gives a shared one once."""
    return sum(parameter.numel() for _, parameter in hf.named_parameters())


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_models_to_the_unit(name):
    found = param_count(name)
    total, block, *parts, flops = PUBLISHED[name]
    assert found.total == total
    assert len(found.blocks) == BLOCKS[name]
    assert found.flops_per_token.total == flops
    for layer, each in enumerate(found.blocks):
        numbers = (each.attention_weights, each.attention_biases, each.mlp_weights)
        numbers += (each.mlp_biases, each.norms)
        assert (each.layer, each.total) == (layer, block)
        assert list(numbers) == parts
    assert found.unembedding == 0
    assert found.unembedding_tied


def test_the_rest_of_gpt2_to_the_unit():
    found = param_count("gpt2")
    assert found.token_embedding == TRUNK["wte"]
    assert found.position_embedding == TRUNK["wpe"]
    assert found.ln_final == TRUNK["ln_f"]
    assert sum(block.total for block in found.blocks) + found.ln_final == 85056000
    assert found.bytes == {"float32": 497759232, "bfloat16": 248879616, "float16": 248879616}
    assert found.shares["mlp"] == pytest.approx(0.45539, abs=5e-6)
    assert sum(found.shares.values()) == pytest.approx(1)


def test_untied_adds_exactly_the_embedding():
    sizes = replace(known("gpt2"), tied=False)
    found = count(parameters.published("gpt2", sizes))
    assert found.total == 163037184
    assert found.unembedding == TRUNK["wte"]
    assert not found.unembedding_tied


@pytest.mark.parametrize(
    ("name", "ratio"),
    [
        ("gpt2", 1.999025),
        ("gpt2-medium", 1.999268),
        ("gpt2-large", 1.999415),
        ("gpt2-xl", 1.999532),
    ],
)
def test_mlp_is_twice_attention_in_weights_and_nearly_with_biases(name, ratio):
    found = param_count(name)
    assert found.mlp_to_attention_weights == 2
    assert found.mlp_to_attention == pytest.approx(ratio, abs=5e-7)


@pytest.mark.parametrize("name", ["openai-community/gpt2-xl", "distilbert/distilgpt2"])
def test_full_names_are_known_too(name):
    found = param_count(name)
    assert found.total == PUBLISHED[name.split("/")[1]][0]
    assert found.source.model == name


def test_length_changes_flops_and_nothing_else():
    short, full = param_count("gpt2", length=1), param_count("gpt2")
    assert short.flops_per_token.total == 169869312 + 77194752 + 4 * 12 * 768
    assert full.flops_per_token.blocks == 169869312
    assert full.flops_per_token.attention_mix == 4 * 12 * 1024 * 768
    assert full.flops_per_token.unembedding == 77194752
    assert short.total == full.total


@pytest.mark.parametrize("length", [0, -1, 1025])
def test_length_outside_of_the_context_is_refused(length):
    with pytest.raises(ResidError, match=rf"{length}; gpt2 reads 1 to 1024"):
        param_count("gpt2", length=length)


odd_configs = st.fixed_dictionaries(
    {
        "n_layer": st.integers(1, 4),
        "n_head": st.sampled_from([1, 2, 4]),
        "n_embd": st.sampled_from([4, 12, 20]),
        "n_inner": st.sampled_from([None, 1, 12, 33]),
        "n_positions": st.integers(1, 40),
        "vocab_size": st.integers(265, 400),
        "add_cross_attention": st.booleans(),
        "tie_word_embeddings": st.booleans(),
    }
)


@settings(max_examples=25)
@given(odd_configs)
def test_arithmetic_is_what_torch_builds(fields):
    hf = on_meta(**fields)
    found = param_count(hf)
    by_config = count(parameters.published("x", Sizes.from_config(hf.config.to_dict(), "x")))
    assert found.total == by_config.total == distinct(hf)
    assert found.blocks == by_config.blocks
    assert found.parts == by_config.parts
    assert found.unembedding_tied == by_config.unembedding_tied == fields["tie_word_embeddings"]
    assert found.flops_per_token == by_config.flops_per_token
    for layer, block in enumerate(found.blocks):
        assert block.total == distinct(hf.transformer.h[layer])
    assert not found.failures


def test_a_tied_head_is_counted_once():
    hf = tiny_hf()
    found = param_count(hf)
    assert found.total == distinct(hf)
    assert found.total + D_VOCAB * D_MODEL == sum(w.numel() for w in hf.state_dict().values())
    assert found.unembedding == 0


def test_two_parameters_in_one_memory_are_one():
    hf = tiny_hf(tie_word_embeddings=False)
    hf.lm_head.weight = torch.nn.Parameter(hf.transformer.wte.weight.detach())
    assert hf.lm_head.weight is not hf.transformer.wte.weight
    found = param_count(hf)
    assert found.unembedding_tied
    assert found.total == param_count(tiny_hf()).total


def test_equal_numbers_in_two_memories_are_two():
    hf = tiny_hf(tie_word_embeddings=False)
    with torch.no_grad():
        hf.lm_head.weight.copy_(hf.transformer.wte.weight)
    found = param_count(hf)
    assert (found.unembedding, found.unembedding_tied) == (D_VOCAB * D_MODEL, False)


def test_folder_model_and_parameters_in_memory_agree(tiny_folder, tiny):
    found = [param_count(source) for source in (tiny_folder, str(tiny_folder), tiny, tiny.hf)]
    assert len({each.total for each in found}) == 1
    assert len({each.blocks for each in found}) == 1
    assert found[0].total == distinct(tiny.hf)
    assert found[0].counted_from == "config.json and the header of model.safetensors"
    assert found[2].counted_from == "the parameters of a GPT2LMHeadModel in memory"


def test_mini_is_counted_in_the_format_it_is_stored_in():
    found = param_count("mini")
    assert found.total == distinct(resid.load("mini").hf)
    assert found.dtypes == {"float16": found.total}
    assert found.source.dtype == "float16"


def test_resized_vocabulary_is_counted_as_it_is():
    hf = tiny_hf()
    before = param_count(hf).total
    hf.resize_token_embeddings(53)
    found = param_count(hf)
    assert found.total == distinct(hf) == before - (D_VOCAB - 53) * D_MODEL
    assert found.unembedding_tied
    assert found.source.d_vocab == 53


def test_cross_attention_and_its_norm():
    both = (on_meta(n_inner=None, add_cross_attention=crossed) for crossed in (False, True))
    plain, crossed = map(param_count, both)
    assert (plain.blocks[0].total, crossed.blocks[0].total) == (3280, 4400)
    assert crossed.blocks[0].cross_attention == 4 * 16 * 16 + 4 * 16
    assert crossed.blocks[0].norms - plain.blocks[0].norms == 2 * 16


def test_blocks_without_a_head():
    from transformers import GPT2Model

    with torch.device("meta"):
        hf = GPT2Model(tiny_config())
    found = param_count(hf)
    assert (found.unembedding, found.unembedding_tied) == (0, False)
    assert found.flops_per_token.unembedding == 0
    assert found.total == distinct(hf)


class Adapted(torch.nn.Module):
    """A layer as adapter libraries wrap it."""

    def __init__(self, layer):
        super().__init__()
        self.base_layer = layer
        self.lora_A = torch.nn.ModuleDict({"default": torch.nn.Linear(16, 2, bias=False)})
        self.lora_B = torch.nn.ModuleDict({"default": torch.nn.Linear(2, 48, bias=False)})


def test_adapters_stand_apart_and_parts_still_add_up():
    hf = tiny_hf()
    plain = param_count(hf)
    hf.transformer.h[1].attn.c_attn = Adapted(hf.transformer.h[1].attn.c_attn)
    outer = torch.nn.Module()
    outer.base_model = torch.nn.Module()
    outer.base_model.model = hf
    found = param_count(outer)
    assert found.other_parts == {"lora_A": 32, "lora_B": 96}
    assert found.blocks == plain.blocks
    assert found.total == plain.total + 128 == distinct(outer)
    assert found.unembedding_tied


@pytest.mark.parametrize("name", ["GPT2ForSequenceClassification", "GPT2DoubleHeadsModel"])
def test_other_heads_stand_apart(name):
    import transformers

    with torch.device("meta"):
        hf = getattr(transformers, name)(tiny_config(num_labels=3))
    found = param_count(hf)
    (kind,) = found.other_parts
    assert kind in ("score", "multiple_choice_head")
    assert found.total == distinct(hf)
    assert not found.failures


def test_a_bias_of_the_head_belongs_to_the_unembedding():
    hf = tiny_hf()
    hf.lm_head.bias = torch.nn.Parameter(torch.zeros(D_VOCAB))
    found = param_count(hf)
    assert (found.unembedding, found.unembedding_tied) == (D_VOCAB, True)


def test_packed_weights_are_refused():
    hf = tiny_hf()
    packed = torch.zeros(192, 1, dtype=torch.uint8)
    hf.transformer.h[0].mlp.c_fc.weight = torch.nn.Parameter(packed, requires_grad=False)
    with pytest.raises(ResidError, match=r"h\.0\.mlp\.c_fc\.weight holds uint8 numbers"):
        param_count(hf)
    hf.transformer.h[0].mlp.c_fc.weight = torch.nn.Parameter(torch.zeros(192, 1))
    with pytest.raises(ResidError, match="packed or lie elsewhere"):
        param_count(hf)


def test_what_is_no_gpt2_is_refused():
    with pytest.raises(ResidError, match="got int"):
        param_count(5)
    with pytest.raises(ResidError, match=r"no wte\.weight"):
        param_count(torch.nn.Linear(2, 2))
    from transformers import BertConfig, BertModel

    with torch.device("meta"):
        bert = BertModel(BertConfig(num_hidden_layers=1))
    with pytest.raises(ResidError, match="got bert"):
        param_count(bert)
    hf = tiny_hf()
    del hf.transformer.ln_f
    with pytest.raises(ResidError, match="lacks ln_f"):
        param_count(hf)


def test_json_keys_and_rows():
    found = param_count("gpt2")
    document = json.loads(found.to_json())
    assert document["analysis"] == "param_count"
    assert document["axes"] == {"layer": list(range(12))}
    data = document["data"]
    keys = "layer attention_weights attention_biases attention mlp_weights mlp_biases mlp norms"
    assert set(data["blocks"][0]) == {*keys.split(), "cross_attention", "total"}
    wanted = "blocks token_embedding position_embedding ln_final unembedding unembedding_tied total"
    assert {*wanted.split(), "mlp_to_attention", "mlp_to_attention_weights"} <= set(data)
    assert data["total"] == 124439808
    (check,) = document["checks"]
    assert (check["name"], check["error"], check["passed"]) == ("parts_add_up", 0, True)
    rows = list(found.rows())
    assert len(rows) == 2 + 12 * 6 + 2
    assert sum(row["parameters"] for row in rows) == found.total
    assert sum(row["share"] for row in rows) == pytest.approx(1)


def test_a_wrong_sum_fails_its_check():
    found = parameters.find("gpt2")
    (check,) = count(replace(found, expected=found.expected + 1)).failures
    assert (check.error, check.where) == (1, "124,439,808 in parts, 124,439,809 distinct")


PROGRAM = """
import sys, resid
for source in sys.argv[1:]:
    print(resid.param_count(source).total)
heavy = {"torch", "transformers", "huggingface_hub", "safetensors", "matplotlib", "rich"}
print(sorted(heavy & set(sys.modules)))
"""


def test_counting_needs_no_torch(tiny_folder):
    sources = ["gpt2", "gpt2-xl", "mini", str(tiny_folder)]
    command = [sys.executable, "-c", PROGRAM, *sources]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    *totals, imported = done.stdout.splitlines()
    assert totals[:2] == ["124439808", "1557611200"]
    assert (len(totals), imported) == (4, "[]")
