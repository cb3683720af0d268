"""Models in memory, names and devices: what `load` hands out, and what it leaves alone."""

import os

import pytest
import torch

import resid
from resid import ResidError
from resid.model import Model

from .conftest import IDS, tiny_config, tiny_hf


def logits(hf):
    with torch.no_grad():
        return hf(torch.tensor([IDS])).logits


def test_loaded_model_is_ready_to_be_read(tiny):
    assert not any(module.training for module in tiny.hf.modules())
    assert {parameter.dtype for parameter in tiny.hf.parameters()} == {torch.float32}
    recording = resid.record(tiny, IDS)
    assert not recording["2.post"].requires_grad


def test_bundled_model():
    mini = resid.load("mini")
    assert (mini.name, mini.n_layers, mini.revision, mini.notices) == ("mini", 8, None, ())
    text = "The café is → 🤗"
    assert mini.vocabulary.tokenizer.decode(mini.encode(text)) == text


def test_path_objects_and_strings_are_the_same(tiny_folder, tiny):
    assert torch.equal(resid.load(str(tiny_folder)).W_U, tiny.W_U)


def test_home_is_expanded(tiny_folder, monkeypatch):
    monkeypatch.setenv("HOME", str(tiny_folder.parent))
    assert resid.load(f"~/{tiny_folder.name}").n_layers == 3


@pytest.mark.parametrize("dtype", ["bfloat16", torch.bfloat16])
def test_dtype_on_request(tiny_folder, dtype):
    assert resid.load(tiny_folder, dtype=dtype).dtype == torch.bfloat16


def test_unknown_dtype(tiny_folder):
    with pytest.raises(ResidError, match="the dtype is 'int8'; choose one of float32, bfloat16"):
        resid.load(tiny_folder, dtype="int8")


@pytest.mark.parametrize("device", ["tpu", "meta0", ""])
def test_unknown_device(tiny_folder, device):
    with pytest.raises(ResidError, match=f"the device '{device}' is not to be had"):
        resid.load(tiny_folder, device=device)


# --- in memory ------------------------------------------------------------------------------------


def test_model_in_memory_stays_the_same_object():
    hf = tiny_hf()
    model = resid.load(hf)
    assert model.hf is hf
    assert model.vocabulary.tokenizer is None


def test_pair_of_model_and_tokenizer(tiny):
    tokenizer = tiny.vocabulary.tokenizer
    for model in (resid.load((tiny.hf, tokenizer)), resid.load(tiny.hf, tokenizer=tokenizer)):
        assert model.encode("the") == [257]


def test_tokenizer_folder_for_a_model_in_memory(tiny_folder):
    assert resid.load(tiny_hf(), tokenizer=tiny_folder).encode("the") == [257]


def test_training_model_is_read_in_evaluation_mode_and_left_training():
    hf = tiny_hf().train()
    hf.transformer.h[1].eval()
    modes = [module.training for module in hf.modules()]
    model = resid.load(hf)
    first, second = (resid.record(model, IDS)["2.post"] for _ in range(2))
    assert torch.equal(first, second)
    assert torch.equal(first, resid.record(resid.load(tiny_hf()), IDS)["2.post"])
    assert [module.training for module in hf.modules()] == modes


def test_compiled_model_is_unwrapped():
    hf = tiny_hf()

    class Compiled(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self._orig_mod = hf

    assert resid.load(Compiled()).hf is hf


def test_wrapped_model_is_found_below_its_wrapper():
    from transformers import GPT2Config

    class Wrapper(torch.nn.Module):
        def __init__(self, hf):
            super().__init__()
            self.base_model, self.config = hf, hf.config
            self.get_output_embeddings, self.forward = hf.get_output_embeddings, hf.forward

    hf = tiny_hf()
    model = resid.load(Wrapper(hf))
    assert isinstance(model.hf.config, GPT2Config)
    ids = resid.record(model, IDS)
    assert torch.equal(ids.logits, logits(hf)[0])


def test_resized_model():
    hf = tiny_hf()
    hf.resize_token_embeddings(310, mean_resizing=False)
    model = resid.load(hf)
    assert (model.d_vocab, model.n_embeddings) == (310, 310)
    assert model.W_U.data_ptr() == model.W_E.data_ptr()


@pytest.mark.parametrize("name", ["lm_head", "transformer.h.1.mlp.c_proj"])
def test_offloaded_weights(name):
    hf = tiny_hf(tie_word_embeddings=False)
    hf.get_submodule(name).to("meta")
    with pytest.raises(ResidError, match=f"offloaded: {name}.weight is on the meta device"):
        resid.load(hf)


def test_packed_embedding():
    hf = tiny_hf(tie_word_embeddings=False)
    packed = torch.zeros(300, 8, dtype=torch.uint8)
    hf.transformer.wte.weight = torch.nn.Parameter(packed, requires_grad=False)
    with pytest.raises(ResidError, match=r"packed: wte holds torch\.uint8"):
        resid.load(hf)


@pytest.mark.parametrize("part", ["ln_f", "wpe"])
def test_model_without_a_part(part):
    hf = tiny_hf()
    delattr(hf.transformer, part)
    with pytest.raises(ResidError, match=f"lacks {part}; a GPT-2 has wte, wpe, h and ln_f"):
        resid.load(hf)


def test_model_of_another_kind():
    from transformers import BertConfig, BertModel

    config = BertConfig(hidden_size=8, num_hidden_layers=1, num_attention_heads=1, vocab_size=9)
    with pytest.raises(ResidError, match="resid reads gpt2 models; got bert"):
        resid.load(BertModel(config))


@pytest.mark.parametrize("thing", [5, object(), torch.nn.Linear(2, 2), (3, None)])
def test_things_that_are_no_models(thing):
    with pytest.raises(ResidError, match=r"resid reads gpt2 models; got (int|object|Linear)"):
        resid.load(thing)


def test_a_model_in_memory_has_no_revision():
    for read in (resid.load, resid.param_count):
        with pytest.raises(ResidError, match="is for models from the hub; this one is in memory"):
            read(tiny_hf(), revision="v1")


def test_base_model_in_memory_has_no_head():
    from transformers import GPT2Model

    model = resid.load(GPT2Model(tiny_config()).eval())
    assert not model.has_head
    with pytest.raises(ResidError, match="is a GPT2Model: it has no language-model head"):
        resid.logit_lens(model, resid.record(model, IDS))


# --- prompts --------------------------------------------------------------------------------------


@pytest.mark.parametrize("prompt", ["", []])
def test_empty_prompt(tiny, prompt):
    with pytest.raises(ResidError, match="the prompt is empty"):
        tiny.encode(prompt)


def test_context_is_what_the_position_embedding_has(tiny):
    assert len(tiny.encode([0] * 32)) == 32
    with pytest.raises(ResidError, match=r"the prompt has 33 tokens; .* reads at most 32"):
        tiny.encode([0] * 33)


def test_bos_counts_towards_the_context(tiny):
    with pytest.raises(ResidError, match="the prompt has 33 tokens"):
        tiny.encode([0] * 32, bos=True)


def test_bos_without_any(tmp_path):
    model = Model(tiny_hf(bos_token_id=None))
    with pytest.raises(ResidError, match="no beginning-of-sequence token"):
        model.encode([1], bos=True)


def test_environment_is_left_alone(tiny_folder):
    before = dict(os.environ)
    resid.load(tiny_folder)
    assert dict(os.environ) == before


def test_logging_and_bars_of_transformers_are_left_alone(tiny_folder):
    from transformers.utils import logging

    before = logging.get_verbosity(), logging.is_progress_bar_enabled()
    resid.load(tiny_folder)
    assert (logging.get_verbosity(), logging.is_progress_bar_enabled()) == before
