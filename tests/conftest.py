"""The model that the tests stand on: tiny, real, every parameter random, all sizes different."""

import functools
import inspect
import json
import os
import signal
from pathlib import Path

# Before anything imports a Hugging Face library: no test talks to a network.
os.environ["HF_HUB_OFFLINE"] = "1"
os.environ.pop("RESID_MODEL", None)
os.environ.pop("COLUMNS", None)

import hypothesis
import pytest
import torch
from click.testing import CliRunner

import resid
from resid.model import Model
from resid.tokens import _byte_alphabet

# click 8.1 mixes standard error into standard output unless it is told not to; 8.2 cannot be told.
if "mix_stderr" in inspect.signature(CliRunner).parameters:
    CliRunner.__init__ = functools.partialmethod(CliRunner.__init__, mix_stderr=False)
# Tiny tensors gain nothing from threads, and lose much where the cores are busy.
torch.set_num_threads(1)
# A shell has background jobs ignore Ctrl-C, and they would hand that on to what is tested here.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
# Timing says nothing about what is tested here.
hypothesis.settings.register_profile("resid", deadline=None, max_examples=60)
hypothesis.settings.load_profile("resid")

N_LAYERS, N_HEADS, D_MODEL, D_MLP, N_CTX, D_VOCAB = 3, 2, 16, 24, 32, 300


def tiny_config(**changes):
    """The configuration of the tiny model, with changes."""
    from transformers import GPT2Config

    fields = {
        "n_layer": N_LAYERS,
        "n_head": N_HEADS,
        "n_embd": D_MODEL,
        "n_inner": D_MLP,
        "n_positions": N_CTX,
        "vocab_size": D_VOCAB,
        "bos_token_id": 264,
        "eos_token_id": 264,
    }
    return GPT2Config(**(fields | changes))


def tiny_hf(seed=0, **changes):
    """A GPT2LMHeadModel of that configuration, every parameter drawn from N(0, 0.5).

    LayerNorm gains and biases too: with gains of 1 and biases of 0, half of all bugs are invisible.
    """
    from transformers import GPT2LMHeadModel

    hf = GPT2LMHeadModel(tiny_config(**changes)).eval()
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in hf.parameters():
            parameter.copy_(0.5 * torch.randn(parameter.shape, generator=generator))
    return hf


MERGES = ["t h", "th e", "Ġ the", "Ġ i", "Ġi s", "Ġ ?", "ð Ł", "Ġ c"]


def write_tokenizer(folder: Path) -> None:
    """A byte-level BPE tokenizer: 256 bytes, a few merges, <|endoftext|> as id 264."""
    symbols = sorted(_byte_alphabet(), key=lambda sign: _byte_alphabet()[sign])
    words = symbols + [merge.replace(" ", "") for merge in MERGES] + ["<|endoftext|>"]
    vocabulary = {word: i for i, word in enumerate(words)}
    (folder / "vocab.json").write_text(json.dumps(vocabulary), encoding="utf-8")
    lines = ["#version: 0.2", *MERGES]
    (folder / "merges.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    config = {
        "tokenizer_class": "GPT2Tokenizer",
        "bos_token": "<|endoftext|>",
        "eos_token": "<|endoftext|>",
        "unk_token": "<|endoftext|>",
    }
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")


def write_checkpoint(folder: Path, hf=None, tokenizer: bool = True) -> Path:
    """A folder as `save_pretrained` writes it, with the tokenizer beside the model."""
    (hf or tiny_hf()).save_pretrained(folder)
    if tokenizer:
        write_tokenizer(folder)
    return folder


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory) -> Path:
    """The tiny checkpoint on disk; read only."""
    return write_checkpoint(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="session")
def tiny(tiny_folder) -> Model:
    """The tiny model, through the loader that users go through; read only."""
    model = resid.load(tiny_folder)
    sizes = (model.n_layers, model.n_heads, model.d_model, model.n_ctx, model.d_vocab)
    assert sizes == (N_LAYERS, N_HEADS, D_MODEL, N_CTX, D_VOCAB)
    assert len(set(sizes)) == len(sizes)
    return model


@pytest.fixture
def fresh(tiny_folder) -> Model:
    """A tiny model of one's own, to break."""
    return resid.load(tiny_folder)


IDS = [5, 290, 17, 260, 17, 99, 3]
