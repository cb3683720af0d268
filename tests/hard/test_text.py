"""Text and tokenizers that other tools stumble over."""

import csv
import io
import json
import os
import shutil
from pathlib import Path

import pytest
import torch

import resid
from resid.errors import ResidError
from tests.conftest import tiny_hf, write_checkpoint
from tests.hard.every_command import NAMES, WITH_FORMATS, run

PROMPT = "y is ? the<|endoftext|>"
PROMPT_IDS = [121, 260, 261, 258, 264]


@pytest.fixture
def folder(tiny_folder, tmp_path):
    """A copy of the tiny checkpoint, to spoil."""
    return shutil.copytree(tiny_folder, tmp_path / "model")


@pytest.mark.parametrize(
    "fields",
    [
        {"model_max_length": 4},
        {"model_max_length": 10**30},
        {"clean_up_tokenization_spaces": True},
        {"truncation_side": "left"},
        {"padding_side": "left", "pad_token": "<|endoftext|>"},
        {"add_bos_token": True},
    ],
    ids=str,
)
def test_settings_of_a_tokenizer_change_no_id_and_no_label(folder, fields):
    file = folder / "tokenizer_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | fields))
    model = resid.load(folder)
    assert model.encode(PROMPT) == PROMPT_IDS
    assert "".join(model.vocabulary.show_all(PROMPT_IDS)) == PROMPT
    assert len(model.encode("y" * 32)) == model.n_ctx


def test_a_tokenizer_saved_with_truncation_and_padding_neither_cuts_nor_pads(folder):
    tokenizer = resid.load(folder).vocabulary.tokenizer
    tokenizer.backend_tokenizer.enable_truncation(2)
    tokenizer.backend_tokenizer.enable_padding(length=9)
    tokenizer.save_pretrained(folder)
    saved = json.loads((folder / "tokenizer.json").read_text("utf-8"))
    assert saved["truncation"] and saved["padding"]
    assert resid.load(folder).encode(PROMPT) == PROMPT_IDS


@pytest.mark.parametrize("size", [1000, 260])
def test_a_tokenizer_that_can_hardly_be_the_models_is_told(tmp_path, size):
    hf = tiny_hf(vocab_size=size, bos_token_id=0, eos_token_id=0)
    model = resid.load(write_checkpoint(tmp_path, hf))
    told = f"the tokenizer has 265 tokens and the model {size:,}; is it this model's?"
    assert model.notices == (told,)
    result = run("norms", tmp_path, prompt="abc")
    assert (result.exit_code, result.stderr) == (0, told + "\n")


def test_a_padded_embedding_is_no_news(tiny):
    assert (len(tiny.vocabulary.tokenizer), tiny.n_embeddings, tiny.notices) == (265, 300, ())


@pytest.mark.parametrize("with_tokenizer", [True, False])
@pytest.mark.skipif(os.name == "nt", reason="names are text there")
def test_a_folder_whose_name_is_not_utf8_is_refused_for_what_it_is(
    tiny_folder, tmp_path, with_tokenizer
):
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9"))
    shutil.copytree(tiny_folder, folder)
    if not with_tokenizer:
        for name in ("vocab.json", "merges.txt"):
            (folder / name).unlink()
    with pytest.raises(ResidError, match="the name is not valid UTF-8; rename it"):
        resid.load(folder)
    result = run("norms", folder)
    assert result.exit_code == 1
    assert r"caf\xe9" in result.stderr


@pytest.mark.skipif(os.name == "nt", reason="names are text there")
@pytest.mark.parametrize("suffix", [".png", ".svg", ".pdf", ".html", ".json", ".csv"])
def test_every_file_can_name_a_folder_that_is_not_utf8(tiny_folder, tmp_path, suffix):
    folder = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9"))
    shutil.copytree(tiny_folder, folder)
    result = run("params", folder, "-o", tmp_path / f"a{suffix}", "--format", "csv")
    assert result.exit_code == 0, result.output
    content = (tmp_path / f"a{suffix}").read_bytes()
    if suffix in (".html", ".json"):
        assert r"caf\udce9" in content.decode("utf-8")


HOSTILE = ("\x1b[31m", "=1+1", '"', "a,b", "line\nbreak", "\r", "\x00", "\u202eabc", "🤗", "\\x1b")


@pytest.fixture(scope="module")
def hostile_folder(tmp_path_factory):
    """A model whose likeliest tokens are what no terminal, table or spreadsheet should obey."""
    hf = tiny_hf(tie_word_embeddings=False)
    folder = write_checkpoint(tmp_path_factory.mktemp("hostile"), hf)
    tokenizer = resid.load(folder).vocabulary.tokenizer
    ids = []
    for text in HOSTILE:
        tokenizer.add_tokens([text])
        ids.append(tokenizer.convert_tokens_to_ids(text))
    assert len({*ids}) == len(HOSTILE) and max(ids) < 300
    with torch.no_grad():
        hf.transformer.ln_f.weight.zero_()
        for i, token_id in enumerate(ids):
            hf.lm_head.weight[token_id] = (100 - i) * hf.transformer.ln_f.bias
    write_checkpoint(folder, hf, tokenizer=False)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.mark.parametrize("name", NAMES)
def test_nothing_that_a_terminal_obeys_is_printed(hostile_folder, tmp_path, name):
    result = run(name, hostile_folder, prompt="the\x1b[31m\r\x00 is", out=tmp_path)
    assert result.exit_code == 0, result.output
    for printed in (result.stdout, result.stderr):
        assert not {sign for sign in printed if not sign.isprintable()} - {"\n"}


@pytest.mark.parametrize("name", WITH_FORMATS)
def test_csv_and_json_of_hostile_tokens_read_back_to_the_same(hostile_folder, name):
    written = run(name, hostile_folder, "--format", "csv").stdout
    rows = list(csv.DictReader(io.StringIO(written)))
    assert rows and all(None not in row and None not in row.values() for row in rows)
    document = json.loads(run(name, hostile_folder, "--format", "json").stdout)
    if name == "lens":
        top = document["data"]["top_tokens"][-1][-1]
        assert top == [r"\x1b[31m", "=1+1", '"', "a,b", r"line\nbreak"]
        # A table of numbers for programs: a token that a spreadsheet takes for a formula stays.
        assert [rows[-1][f"top{k}_token"] for k in range(1, 6)] == top


@pytest.mark.parametrize("file", ["config.json", "tokenizer_config.json"])
@pytest.mark.parametrize("tokenizer_class", ["Own", "GPT2Tokenizer"])
def test_code_beside_a_checkpoint_is_not_imported(folder, file, tokenizer_class):
    ran = folder / "ran"  # By its path: such code is copied before it is run.
    (folder / "own.py").write_text(f"open({str(ran)!r}, 'w')\nclass Own: pass\n")
    fields = json.loads((folder / file).read_text())
    own = {"AutoConfig": "own.Own", "AutoModel": "own.Own", "AutoTokenizer": ["own.Own", "own.Own"]}
    fields |= {"auto_map": own, "tokenizer_class": tokenizer_class}
    (folder / file).write_text(json.dumps(fields))
    result = run("norms", folder)
    assert result.exit_code in (0, 1)
    assert len(result.stderr.splitlines()) <= 3
    assert not ran.exists()
