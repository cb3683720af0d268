"""Checkpoints as other people and other versions wrote them: read exactly, or refused by name."""

import json
import os
import pickle
import shutil
import zipfile

import pytest
import torch
from safetensors.torch import load_file, save_file

import resid
from resid import ResidError

from .conftest import IDS, tiny_config, tiny_hf, write_checkpoint, write_tokenizer

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"a" * 64 + b"\nsize 5481\n"
FC = "transformer.h.1.mlp.c_fc.weight"


@pytest.fixture
def folder(tiny_folder, tmp_path):
    """A copy of the tiny checkpoint, to spoil."""
    return shutil.copytree(tiny_folder, tmp_path / "model")


def logits(model):
    with torch.no_grad():
        return model.hf(torch.tensor([IDS])).logits


def same_logits(folder, hf=None):
    with torch.no_grad():
        expected = (hf or tiny_hf())(torch.tensor([IDS])).logits
    return torch.equal(logits(resid.load(folder)), expected)


def weights_of(folder):
    # Copies: some versions map the file, and `rewrite` writes it anew.
    return {name: w.clone() for name, w in load_file(folder / "model.safetensors").items()}


def rewrite(folder, weights, metadata=None):
    whole = {name: weight.contiguous() for name, weight in weights.items()}
    save_file(whole, folder / "model.safetensors", metadata=metadata)
    return folder


def as_bin(folder, found=None, **options):
    found = weights_of(folder) if found is None else found
    (folder / "model.safetensors").unlink()
    torch.save(found, folder / "pytorch_model.bin", **options)
    return folder


def configure(folder, **fields):
    file = folder / "config.json"
    kept = {k: v for k, v in (json.loads(file.read_text()) | fields).items() if v is not ...}
    file.write_text(json.dumps(kept))
    return folder


def with_masks(weights):
    for layer in range(3):
        weights[f"transformer.h.{layer}.attn.bias"] = torch.ones(1, 1, 32, 32).tril().byte()
        weights[f"transformer.h.{layer}.attn.masked_bias"] = torch.tensor(-1e4)
    return weights


def without_prefix(weights):
    return {name.removeprefix("transformer."): weight for name, weight in weights.items()}


def random_head(model_class, **fields):
    hf = model_class(tiny_config(**fields)).eval()
    generator = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for parameter in hf.parameters():
            parameter.copy_(0.5 * torch.randn(parameter.shape, generator=generator))
    return hf


# --- read exactly ---------------------------------------------------------------------------------


@pytest.mark.parametrize("zipped", [True, False])
def test_bin_of_both_formats(folder, zipped):
    assert same_logits(as_bin(folder, _use_new_zipfile_serialization=zipped))


@pytest.mark.parametrize("change", [without_prefix, with_masks])
@pytest.mark.parametrize("write", [rewrite, as_bin])
def test_old_names_and_mask_buffers(folder, change, write):
    assert same_logits(write(folder, change(weights_of(folder))))


def test_masks_are_not_parameters(folder):
    model = resid.load(rewrite(folder, with_masks(weights_of(folder))))
    assert sum(p.numel() for p in model.hf.parameters()) == resid.param_count(model).total


def test_safetensors_without_metadata(folder):
    assert same_logits(rewrite(folder, weights_of(folder)))


def test_shards(tmp_path):
    hf = tiny_hf()
    hf.save_pretrained(tmp_path, max_shard_size="10KB")
    assert len(list(tmp_path.glob("model-*.safetensors"))) > 2
    assert same_logits(tmp_path, hf)


def test_bin_shards(folder):
    weights = weights_of(folder)
    (folder / "model.safetensors").unlink()
    where = {name: f"pytorch_model-{1 + i % 2}.bin" for i, name in enumerate(weights)}
    for file in set(where.values()):
        torch.save({n: weights[n] for n in weights if where[n] == file}, folder / file)
    (folder / "pytorch_model.bin.index.json").write_text(json.dumps({"weight_map": where}))
    assert same_logits(folder)


@pytest.mark.parametrize("saved", [torch.float16, torch.bfloat16, torch.float64])
def test_loads_float32_whatever_was_saved(folder, saved):
    weights = {name: weight.to(saved) for name, weight in weights_of(folder).items()}
    model = resid.load(rewrite(configure(folder, dtype=str(saved)[6:]), weights))
    assert {parameter.dtype for parameter in model.hf.parameters()} == {torch.float32}


def test_head_of_its_own_beats_a_tied_flag(folder):
    weights = weights_of(folder) | {"lm_head.weight": torch.randn(300, 16)}
    model = resid.load(rewrite(folder, weights))
    assert torch.equal(model.W_U.T, weights["lm_head.weight"])
    assert torch.equal(model.W_E, weights["transformer.wte.weight"])
    assert "unembedding of its own" in model.notices[0]


def test_head_saved_twice_is_tied(folder):
    weights = weights_of(folder)
    weights["lm_head.weight"] = weights["transformer.wte.weight"].clone()
    model = resid.load(rewrite(folder, weights))
    assert model.W_U.data_ptr() == model.W_E.data_ptr()


def test_untied_head(tmp_path):
    hf = tiny_hf(tie_word_embeddings=False)
    assert same_logits(write_checkpoint(tmp_path, hf), hf)


@pytest.mark.parametrize(
    "changes", [{"n_inner": 16}, {"activation_function": "relu"}, {"vocab_size": 53}]
)
def test_other_shapes_and_activations(tmp_path, changes):
    hf = tiny_hf(**changes)
    with torch.no_grad():
        expected = hf(torch.tensor([[5, 17, 3]])).logits
        model = resid.load(write_checkpoint(tmp_path, hf, tokenizer=False))
        assert torch.equal(model.hf(torch.tensor([[5, 17, 3]])).logits, expected)


def test_double_heads(tmp_path):
    from transformers import GPT2DoubleHeadsModel

    hf = random_head(GPT2DoubleHeadsModel)
    assert same_logits(write_checkpoint(tmp_path, hf), hf)


def test_base_model_alone_gets_its_tied_head(tmp_path):
    from transformers import GPT2Model

    model = resid.load(write_checkpoint(tmp_path, random_head(GPT2Model)))
    assert model.has_head
    assert "saved without a head" in model.notices[0]


@pytest.mark.parametrize(
    "name", ["SequenceClassification", "TokenClassification", "QuestionAnswering"]
)
def test_other_heads_can_be_recorded_but_not_decoded(tmp_path, name):
    import transformers

    hf = random_head(getattr(transformers, f"GPT2For{name}"))
    model = resid.load(write_checkpoint(tmp_path, hf))
    assert resid.record(model, IDS, logits=False)["2.post"].shape == (7, 16)
    with pytest.raises(ResidError, match="has no language-model head"):
        _ = model.W_U


@pytest.mark.parametrize(
    "fields",
    [
        {"auto_map": {"AutoConfig": "evil.Config"}},
        {"_attn_implementation": "flash_attention_2", "attn_implementation": "x"},
        {"torch_dtype": "float16", "dtype": "evil"},
        {"tie_word_embeddings": None, "activation_function": None, "use_cache": "x"},
        {"id2label": 5, "pad_token_id": -7, "eos_token_id": 10**9, "bos_token_id": -1},
        {"output_hidden_states": True, "output_attentions": True, "return_dict": False},
        {"architectures": ["os.system"]},
        {"initializer_range": "x", "pruned_heads": {"0": "x"}, "transformers_version": 5},
    ],
)
def test_fields_without_a_say_are_not_read(folder, fields, capsys):
    assert same_logits(configure(folder, **fields))
    assert capsys.readouterr() == ("", "")


# --- refused by name ------------------------------------------------------------------------------


def refused(folder, match):
    with pytest.raises(ResidError, match=match) as error:
        resid.load(folder)
    assert len(str(error.value).splitlines()) <= 3


def test_missing_weight(folder):
    weights = weights_of(folder)
    del weights[FC]
    refused(rewrite(folder, weights), r"the checkpoint lacks h\.1\.mlp\.c_fc\.weight\n")


def test_missing_weight_that_looks_like_a_mask_buffer(folder):
    weights = weights_of(folder) | {"transformer.h.1.attn.x_attn.bias": torch.zeros(2)}
    refused(rewrite(folder, weights), r"does not call for: h\.1\.attn\.x_attn\.bias")


def test_missing_untied_head(tmp_path):
    write_checkpoint(tmp_path, tiny_hf(tie_word_embeddings=False))
    weights = weights_of(tmp_path)
    del weights["lm_head.weight"]
    refused(rewrite(tmp_path, weights), r"lacks lm_head\.weight")


def test_missing_embedding(folder):
    weights = weights_of(folder)
    weights["lm_head.weight"] = weights.pop("transformer.wte.weight")
    refused(rewrite(folder, weights), r"model: there is no wte\.weight")


@pytest.mark.parametrize(
    ("n_layer", "told"),
    [(4, r"3 blocks, .* n_layer is 4: .* lacks h\.3\."), (2, r"n_layer is 2: .* has h\.2\.")],
)
def test_another_number_of_blocks(folder, n_layer, told):
    refused(configure(folder, n_layer=n_layer), told)


def test_transposed_weight(folder):
    weights = weights_of(folder)
    weights[FC] = weights[FC].T
    refused(rewrite(folder, weights), r"h\.1\.mlp\.c_fc\.weight is \[24, 16\] .* \[16, 24\]")


def test_unknown_weight(folder):
    weights = weights_of(folder) | {"v_head.summary.weight": torch.zeros(2)}
    refused(rewrite(folder, weights), r"does not call for: v_head\.summary\.weight")


def test_missing_classifier_head(tmp_path):
    from transformers import GPT2ForSequenceClassification

    write_checkpoint(tmp_path, random_head(GPT2ForSequenceClassification))
    weights = weights_of(tmp_path)
    del weights["score.weight"]
    refused(rewrite(tmp_path, weights), r"lacks score\.weight")


def test_weight_under_two_names(folder):
    weights = weights_of(folder)
    weights["wpe.weight"] = weights["transformer.wpe.weight"].clone()
    refused(rewrite(folder, weights), r"holds wpe\.weight twice|does not call for")


@pytest.mark.parametrize("dtype", [torch.int8, torch.float8_e4m3fn, torch.complex64])
def test_packed_numbers(folder, dtype):
    weights = weights_of(folder)
    weights[FC] = weights[FC].to(dtype)
    try:
        rewrite(folder, weights)
    except KeyError:
        pytest.skip(f"this safetensors cannot save {dtype}")
    refused(folder, rf"c_fc\.weight holds {str(dtype)[6:]} numbers")


def test_quantized(folder):
    refused(configure(folder, quantization_config={"load_in_4bit": True}), "are quantized")


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "vocab.json"])
def test_lfs_pointer(folder, name):
    (folder / name).write_bytes(POINTER)
    refused(folder, rf"{name} is a Git LFS pointer.* `git lfs pull`")


@pytest.mark.parametrize("kept", [5, 100, 4000])
def test_cut_safetensors(folder, kept):
    file = folder / "model.safetensors"
    file.write_bytes(file.read_bytes()[:kept])
    refused(folder, r"model\.safetensors is cut off or damaged; copy or download it again")


@pytest.mark.parametrize("zipped", [True, False])
@pytest.mark.parametrize("kept", [5, 100, 20000])
def test_cut_bin(folder, zipped, kept):
    as_bin(folder, _use_new_zipfile_serialization=zipped)
    file = folder / "pytorch_model.bin"
    assert file.stat().st_size > kept
    file.write_bytes(file.read_bytes()[:kept])
    refused(folder, r"pytorch_model\.bin is cut off or damaged")


def test_empty_file(folder):
    (folder / "model.safetensors").write_bytes(b"")
    refused(folder, r"model\.safetensors is empty")


def test_folder_in_place_of_a_file(folder):
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors").mkdir()
    refused(folder, r"model\.safetensors cannot be read: Is a directory")


class Payload:
    """What leaves a file behind when it is unpickled without care."""

    def __init__(self, marker):
        self.marker = marker

    def __reduce__(self):
        return os.system, (f"touch {self.marker}",)


@pytest.mark.parametrize("zipped", [True, False])
def test_code_in_a_bin_is_not_run(folder, tmp_path, zipped):
    found = weights_of(folder) | {"x": Payload(tmp_path / "ran")}
    as_bin(folder, found, _use_new_zipfile_serialization=zipped)
    refused(folder, r"holds more than tensors: \w+\.system\nreading it could run code")
    assert not (tmp_path / "ran").exists()


def test_code_in_a_bare_pickle_is_not_run(folder, tmp_path):
    as_bin(folder)
    (folder / "pytorch_model.bin").write_bytes(pickle.dumps(Payload(tmp_path / "ran"), protocol=2))
    refused(folder, "holds more than tensors")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    ("found", "told"),
    [
        ({"step": 3}, "'step' is of type int"),
        ([torch.ones(2)], "holds a list, not weights by name"),
    ],
)
def test_bin_of_something_else(folder, found, told):
    refused(as_bin(folder, found), told)


def test_missing_shard(folder):
    index = {"weight_map": {"transformer.wte.weight": "model-1.safetensors"}}
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    refused(folder, r"the shard model-1\.safetensors is missing")


def test_shard_outside_of_the_folder(folder):
    (folder / "model.safetensors").rename(folder.parent / "outside.safetensors")
    index = {"weight_map": {"transformer.wte.weight": "../outside.safetensors"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    refused(folder, "lies outside of the folder")


def test_weights_of_another_framework(folder):
    (folder / "model.safetensors").rename(folder / "tf_model.h5")
    refused(folder, r"no model\.safetensors .* found tf_model\.h5, which is of another framework")


@pytest.mark.parametrize(
    "fields",
    [
        {"n_layer": "3"},
        {"n_layer": True},
        {"n_layer": 10**9},
        {"n_head": 3},
        {"n_embd": 10**30},
        {"vocab_size": -1},
        {"n_positions": 2.5},
        {"n_inner": 10**12},
        {"activation_function": "nope"},
        {"layer_norm_epsilon": "small"},
        {"layer_norm_epsilon": float("nan")},
        {"tie_word_embeddings": "false"},
        {"architectures": 5},
        {"num_labels": 10**9},
        {"scale_attn_by_inverse_layer_idx": "yes"},
        {"add_cross_attention": True},
    ],
)
def test_hostile_configuration(folder, fields):
    (name,) = fields
    named = {"n_embd": r"wte\.weight", "n_positions": name, "n_inner": r"c_fc\.weight",
             "n_head": "heads", "add_cross_attention": "crossattention"}  # fmt: skip
    refused(configure(folder, **fields), named.get(name, name))


@pytest.mark.parametrize(
    ("kind", "told"), [("bert", "resid reads gpt2 models; got 'bert'"), (..., "has no model_type")]
)
def test_other_architecture(folder, kind, told):
    refused(configure(folder, model_type=kind), told)


@pytest.mark.parametrize("text", ["", "[]", "[" * 100_000, '{"a": ', "\udcff"])
def test_unreadable_configuration(folder, text):
    (folder / "config.json").write_bytes(text.encode("utf-8", "surrogateescape"))
    refused(folder, r"config\.json (is empty|cannot be read|is not the configuration of a model)")


def test_no_configuration(folder):
    (folder / "config.json").unlink()
    refused(folder, r"model: no config\.json, so this is not the folder of a model")


# --- tokenizers -----------------------------------------------------------------------------------


def test_without_tokenizer_files_text_is_refused_and_ids_work(folder):
    for name in ("vocab.json", "merges.txt", "tokenizer_config.json"):
        (folder / name).unlink()
    model = resid.load(folder)
    assert model.encode([1, 2]) == [1, 2]
    with pytest.raises(ResidError, match=f"'{folder}' has no tokenizer files; give ids"):
        model.encode("the")


def test_tokenizer_config_alone_is_no_tokenizer(folder):
    for name in ("vocab.json", "merges.txt"):
        (folder / name).unlink()
    assert resid.load(folder).vocabulary.tokenizer is None


def test_tokenizer_of_another_folder(tmp_path):
    write_checkpoint(tmp_path / "model", tokenizer=False)
    (tmp_path / "words").mkdir()
    write_tokenizer(tmp_path / "words")
    assert resid.load(tmp_path / "model", tokenizer=tmp_path / "words").encode(" the") == [258]


@pytest.mark.parametrize("text", ["{", "[]", '{"model": 5}', "\x00"])
def test_broken_tokenizer(folder, text):
    for name in ("vocab.json", "merges.txt"):
        (folder / name).unlink()
    (folder / "tokenizer.json").write_text(text)
    refused(folder, "the tokenizer files in .* (cannot be read|hold no tokens)")


def test_tokenizer_without_tokens(folder):
    for name in ("vocab.json", "merges.txt", "tokenizer_config.json"):
        (folder / name).unlink()
    (folder / "vocab.txt").write_text("the\n")
    refused(folder, r"hold no tokens \(vocab\.txt\)|cannot be read")


def test_one_id_for_two_tokens(folder):
    """The tokenizers library would show one of them in this run and the other in the next."""
    vocabulary = json.loads((folder / "vocab.json").read_text("utf-8"))
    vocabulary["!"] = vocabulary["A"]
    (folder / "vocab.json").write_text(json.dumps(vocabulary), "utf-8")
    refused(folder, f"tokenizer files in .* give one id, {vocabulary['A']}, to '!' and 'A'")


def test_word_pieces(folder):
    for name in ("vocab.json", "merges.txt"):
        (folder / name).unlink()
    words = ["[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]", "the", "##se"]
    (folder / "vocab.txt").write_text("\n".join(words) + "\n")
    (folder / "tokenizer_config.json").write_text('{"tokenizer_class": "BertTokenizer"}')
    assert resid.load(folder).encode("these the") == [5, 6, 5]


def test_bos_is_never_added_unasked(folder):
    file = folder / "tokenizer_config.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"add_bos_token": True}))
    model = resid.load(folder)
    assert model.encode("the") == [257]
    assert model.encode("the", bos=True) == [264, 257]


def test_token_without_an_embedding(tmp_path):
    write_checkpoint(tmp_path, tiny_hf(vocab_size=260, bos_token_id=0, eos_token_id=0))
    model = resid.load(tmp_path)
    with pytest.raises(ResidError, match="has id 264 at position 1; the model embeds ids 0 to 259"):
        model.encode("a<|endoftext|>")


# --- files that lie, or that are damaged ----------------------------------------------------------


@pytest.mark.parametrize("name", ["layer_norm_epsilon", "embd_pdrop"])
def test_a_whole_number_is_a_number(folder, name):
    assert resid.load(configure(folder, **{name: 0})).hf.config.to_dict()[name] == 0.0


@pytest.mark.parametrize(
    "fields", [{"num_attention_heads": 4}, {"hidden_size": 8}, {"max_position_embeddings": 31}]
)
def test_two_spellings_that_differ(folder, fields):
    (name,) = fields
    refused(configure(folder, **fields), rf"config\.json: n_\w+ is \d+, and {name} is \d+")


@pytest.mark.parametrize("value", ["\x1b[31m" + "x" * 5000, [[["a\nb"] * 50] * 50] * 50, 10**4000])
@pytest.mark.parametrize("name", ["n_layer", "layer_norm_epsilon", "activation_function"])
def test_a_long_value_is_told_in_few_words(folder, name, value):
    with pytest.raises(ResidError, match=name) as error:
        resid.load(configure(folder, **{name: value, "num_hidden_layers": ...}))
    assert len(str(error.value)) < 500


@pytest.mark.parametrize(
    "name",
    ["a\nb\nc\nd", "x" * 5000, f"transformer.h.{'9' * 5000}.ln_1.weight", "h.\u0661.ln_1.bias"],
)
def test_a_name_that_no_message_can_hold(folder, name):
    refused(rewrite(folder, weights_of(folder) | {name: torch.zeros(1)}), "checkpoint")


def test_one_weight_in_two_shards(folder):
    weights = weights_of(folder)
    where = {name: f"model-{1 + i % 2}.safetensors" for i, name in enumerate(weights)}
    for file in sorted(set(where.values())):
        shard = {name: weights[name] for name in weights if where[name] == file}
        save_file(shard | {FC: weights[FC] + (file[6] == "1")}, folder / file)
    (folder / "model.safetensors").unlink()
    (folder / "model.safetensors.index.json").write_text(json.dumps({"weight_map": where}))
    refused(folder, rf"holds {FC} in two files")


def test_one_weight_twice_in_a_header(folder):
    file = folder / "model.safetensors"
    content = file.read_bytes()
    length = int.from_bytes(content[:8], "little")
    header = content[8 : 8 + length].rstrip()
    entry = json.dumps({FC: json.loads(header)[FC]})[1:-1]
    header = header[:-1] + f",{entry}}}".encode()
    file.write_bytes(len(header).to_bytes(8, "little") + header + content[8 + length :])
    refused(folder, "a name is there twice")


@pytest.mark.parametrize(
    "shard", ["a\0b", "x" * 300, "", "\ud800", 5, None, "model.bin", "a\nb\nc\nd"]
)
def test_names_that_no_shard_has(folder, shard):
    (folder / "model.safetensors").unlink()
    index = {"weight_map": {"transformer.wte.weight": shard}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    refused(folder, r"index\.json: (a|the) shard")


def rezip(folder, change, packed=False):
    """The archive of a .bin written anew, with a change to the bytes of each of its members."""
    file = folder / "pytorch_model.bin"
    with zipfile.ZipFile(file) as archive:
        members = [(info.filename, archive.read(info)) for info in archive.infolist()]
    how = zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED
    with zipfile.ZipFile(file, "w", how) as archive:
        for name, content in members:
            archive.writestr(name, change(name, content))
    return folder


def test_a_bin_that_was_zipped_anew_is_read(folder):
    assert same_logits(rezip(as_bin(folder), lambda name, content: content))


def test_a_cut_part_of_a_bin_is_not_filled_from_its_neighbour(folder):
    def cut(name, content):
        return content[: len(content) // 2] if name.endswith("data/3") else content

    refused(rezip(as_bin(folder), cut), r"pytorch_model\.bin is cut off or damaged")


def test_a_packed_bin_is_not_read_as_if_it_were_not(folder):
    refused(rezip(as_bin(folder), lambda name, content: content, packed=True), "was packed")


@pytest.mark.parametrize("kind", ["sparse", "meta"])
def test_odd_tensors_in_a_bin(folder, kind):
    weights = weights_of(folder)
    weights["lm_head.weight"] = weights["transformer.wte.weight"].clone()
    odd = {"sparse": torch.Tensor.to_sparse, "meta": lambda weight: weight.to("meta")}[kind]
    weights["lm_head.weight"] = odd(weights["lm_head.weight"])
    refused(as_bin(folder, weights), "is (on the meta device|sparse)")


def test_a_head_saved_twice_in_another_format_is_tied(folder):
    weights = {name: weight.bfloat16().float() for name, weight in weights_of(folder).items()}
    weights["lm_head.weight"] = weights["transformer.wte.weight"].bfloat16()
    model = resid.load(rewrite(folder, weights))
    assert model.W_U.data_ptr() == model.W_E.data_ptr()


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "vocab.json", "merges.txt"])
def test_a_pipe_is_not_waited_for(folder, name):
    (folder / name).unlink()
    os.mkfifo(folder / name)
    if name == "vocab.json":
        assert resid.load(folder).vocabulary.tokenizer is None
    else:
        refused(folder, f"{folder}")


def test_what_a_tokenizers_library_prints_is_not_among_the_results(folder, capfd):
    token = {"content": "the", "\x1b[31m": 5}
    (folder / "special_tokens_map.json").write_text(json.dumps({"pad_token": token}))
    from click.testing import CliRunner

    from resid.commands import cli

    ran = CliRunner().invoke(cli, ["norms", "the", "-m", str(folder), "--format", "json"])
    assert ran.exit_code == 0, ran.output
    assert capfd.readouterr().out == ""
    print("still here")
    assert capfd.readouterr().out == "still here\n"


def test_a_token_with_an_id_beyond_their_number_is_shown(folder):
    vocabulary = json.loads((folder / "vocab.json").read_text())
    vocabulary["the"] = 299
    (folder / "vocab.json").write_text(json.dumps(vocabulary))
    assert resid.load(folder).vocabulary.show(299) == "the"


def test_a_weight_with_one_prefix_too_many_does_not_take_anothers_place(folder):
    weights = weights_of(folder)
    weights["transformer.transformer.wpe.weight"] = torch.zeros(32, 16)
    refused(as_bin(folder, weights), r"does not call for: transformer\.wpe\.weight")
