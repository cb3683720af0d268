"""Batches, and devices that nobody asked for."""

import pytest
import torch

import resid
from resid.loading import _pick_device
from tests.conftest import IDS


def test_a_prompt_that_holds_the_end_of_text_keeps_it_in_a_batch(tiny):
    """No token stands for padding: there is a mask, and the tokenizer is asked for none."""
    prompts = ["the<|endoftext|> is", "the is the is the"]
    before = tiny.vocabulary.tokenizer.pad_token, len(tiny.vocabulary.tokenizer)
    batch = resid.record(tiny, prompts)
    assert batch[0].ids == (257, 264, 260)
    for prompt, recorded in zip(prompts, batch, strict=True):
        single = resid.record(tiny, prompt)
        for name in single:
            torch.testing.assert_close(recorded[name], single[name], atol=1e-5, rtol=1e-5)
    assert (tiny.vocabulary.tokenizer.pad_token, len(tiny.vocabulary.tokenizer)) == before


@pytest.mark.parametrize("pad", [{"padding_side": "left"}, {"pad_token": "<|endoftext|>"}])
def test_padding_settings_of_a_tokenizer_change_no_number(tiny, tiny_folder, pad):
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(tiny_folder, **pad)
    model = resid.load(tiny.hf, tokenizer=tokenizer)
    for recorded, prompt in zip(
        resid.record(model, ["the", "the is ?"]), ["the", "the is ?"], strict=True
    ):
        assert recorded.ids == resid.record(tiny, prompt).ids
        torch.testing.assert_close(
            recorded["2.post"], resid.record(tiny, prompt)["2.post"], atol=1e-5, rtol=1e-5
        )


def test_apples_device_is_never_picked_unasked(monkeypatch):
    monkeypatch.setattr("torch.backends.mps.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    assert _pick_device("auto") == torch.device("cpu")


def test_every_result_says_on_which_device_it_was_computed(tiny):
    assert resid.record(tiny, IDS).source.device == "cpu"
