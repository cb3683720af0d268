"""Tokenizer files of which something is changed: transformers' ids, plain signs, or a refusal."""

import functools
import json
import os
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import strategies as st
from transformers import AutoTokenizer

import resid
from tests.conftest import D_VOCAB, tiny_hf, write_checkpoint
from tests.fuzz import mutations
from tests.fuzz.budget import LONG, TRIED, fuzz
from tests.fuzz.endings import commands_in, ends_well, refusal_of

PROMPTS = ("the the is ?", "a\tb\x1b[31m \u202e\0\n", "é🤗<|endoftext|> the", "")
_MARKER = Path(tempfile.gettempdir()) / f"resid-fuzz-tokenizer-ran-{os.getpid()}"
_EVIL = f"open({str(_MARKER)!r}, 'w')\nclass Evil: pass\n".encode()
_TEMPLATES = (
    "{{ ''.__class__.__mro__[1].__subclasses__() }}",
    "{% for i in range(10**9) %}{{ i }}{% endfor %}",
    f"{{{{ cycler.__init__.__globals__.os.system('touch {_MARKER}') }}}}",
    "{% include '/etc/passwd' %}",
    "{% raw",
    ["x"],
    {"default": 5},
)
_CLASSES = (
    "GPT2Tokenizer", "GPT2TokenizerFast", "BertTokenizer", "LlamaTokenizer", "T5Tokenizer", "Evil",
    "evil.Evil", "os.system", "PreTrainedTokenizerFast", "ByT5Tokenizer", "", None, 5,
    "CLIPTokenizer", "MistralCommonTokenizer", "../evil",
)  # fmt: skip


@functools.cache
def legacy():
    """The files of a checkpoint with vocab.json and merges.txt."""
    with tempfile.TemporaryDirectory() as name:
        write_checkpoint(Path(name), tiny_hf())
        return {file.name: file.read_bytes() for file in Path(name).iterdir()}


@functools.cache
def fast():
    """The same with tokenizer.json in their place."""
    with folder(legacy()) as path, tempfile.TemporaryDirectory() as name:
        AutoTokenizer.from_pretrained(path).save_pretrained(name)
        saved = {file.name: file.read_bytes() for file in Path(name).iterdir()}
    kept = {n: content for n, content in legacy().items() if n not in ("vocab.json", "merges.txt")}
    return kept | {n: saved[n] for n in ("tokenizer.json", "tokenizer_config.json")}


@contextmanager
def folder(files):
    """A folder with these files."""
    with tempfile.TemporaryDirectory() as name:
        for file, content in files.items():
            (Path(name) / file).write_bytes(content)
        yield Path(name)


def holds(files, prompt, command, capfd):
    """Load a folder and read a prompt: the ids that transformers finds, or a refusal."""
    with folder(files | {"evil.py": _EVIL}) as path:
        model, refusal = refusal_of(resid.load, path)
        if refusal is None:
            ids, _ = refusal_of(model.vocabulary.encode, prompt)
            assert ids == _ids_of_transformers(path, prompt)
            shown = model.vocabulary.show_all(range(-1, D_VOCAB + 3))
            assert not commands_in("".join(shown).replace("\n", "\0"))
            assert "\n" not in "".join(shown)
        else:
            assert str(path) in str(refusal)
        capfd.readouterr()  # What the libraries said to this test.
        words = {
            "lens": ["lens", "--format", "json", "--", prompt],
            "table": ["lens", "--points", "all", "--", prompt],
            "bos": ["norms", "--bos", "--", prompt],
            "target": ["lens", "--target", " the", "--ids", "5,17"],
            "find": ["find", "--", prompt[:4] or " the"],
            "neuron": ["neuron", "L1N3", "--top", "300"],
        }[command]
        at = words.index("--") if "--" in words else len(words)
        ran = ends_well(*words[:at], "-m", path, *words[at:])
        assert refusal is None or ran.exit_code == 1
        told = capfd.readouterr()
        if command == "lens" and ran.exit_code == 0:
            source = json.loads(ran.stdout)["source"]
            assert source["ids"] == _ids_of_transformers(path, prompt)
            assert source["tokens"] == list(model.vocabulary.show_all(source["ids"]))
        assert told.out == "", told.out[:1000]
        # What a library written in Rust says past Python when it panics cannot be held back.
        assert command == "lens" or "panicked at" in told.err or told.err == "", told.err[:1000]
        assert not commands_in(told.err), told.err[:1000]
        assert not _MARKER.exists()


def _ids_of_transformers(path, prompt):
    """The ids of a prompt by transformers alone, or None where it fails."""
    try:
        tokenizer = AutoTokenizer.from_pretrained(path, trust_remote_code=False)
        return list(tokenizer(prompt, add_special_tokens=False, verbose=False)["input_ids"])
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt | SystemExit):
            raise
        return None


_NAMES = ("lens", "table", "bos", "target", "find", "neuron")
_COMMANDS = st.sampled_from(_NAMES)


@st.composite
def _configs(draw, config):
    """A tokenizer_config.json of which a field that classes and special tokens hang on is other."""
    fields = dict(config)
    for name in draw(st.lists(st.sampled_from(sorted(_CONFIG_FIELDS)), min_size=1, max_size=2)):
        fields[name] = draw(st.sampled_from(_CONFIG_FIELDS[name]) | mutations.JUNK)
    return json.dumps(fields).encode()


_TOKENS = ("<|endoftext|>", "the", "new", "\x1b[31m", "\0", "", " ", "\u202e", "x" * 2000)
_CONFIG_FIELDS = {
    "tokenizer_class": _CLASSES,
    "auto_map": ({"AutoTokenizer": ["evil.Evil", None]}, {"AutoTokenizer": "evil.Evil"},
                 {"AutoTokenizer": [None, "other/repo--evil.Evil"]}),
    "bos_token": (*_TOKENS, {"__type": "AddedToken", "content": "the", "lstrip": True}, 5, None),
    "eos_token": _TOKENS,
    "unk_token": _TOKENS,
    "pad_token": _TOKENS,
    "extra_special_tokens": ({"a": "b"}, ["x"], {"image_token": "\x1b"}),
    "additional_special_tokens": (["a", "b"], "x", [5], [{"content": "x"}]),
    "added_tokens_decoder": (
        {"264": {"content": "the", "special": True}}, {"299": {"content": "\x1b[31m"}},
        {"x": {}}, {"10000000": {"content": "far"}}, {"-1": {"content": "x"}},
        {"5": {"content": ""}},
        {"5": {"content": "the", "lstrip": True, "rstrip": True, "normalized": 5}},
    ),
    "chat_template": _TEMPLATES,
    "model_max_length": (1, 0, -1, 10**30, "x", None),
    "add_prefix_space": (True, "x"),
    "add_bos_token": (True,),
    "add_eos_token": (True,),
    "clean_up_tokenization_spaces": (True,),
    "errors": ("strict", "evil"),
    "vocab_file": ("/etc/passwd", "../x"),
    "merges_file": ("/dev/zero",),
    "tokenizer_file": ("/etc/passwd", 5),
    "name_or_path": ("evil/evil", 5),
    "processor_class": ("Evil",),
    "truncation_side": ("x", "left"),
    "padding_side": ("x", "left"),
    "split_special_tokens": (True,),
    "use_fast": (False, True),
    "backend": ("sentencepiece", "mistral-common", "evil"),
    "is_local": (False,),
    "trust_remote_code": (True,),
    "local_files_only": (False,),
    "from_slow": (True,),
    "do_lower_case": (True,),
    "legacy": (False,),
    "fix_mistral_regex": (True,),
}  # fmt: skip


@fuzz(
    5,
    450,
    config=st.deferred(lambda: _configs(json.loads(legacy()["tokenizer_config.json"]))),
    prompt=st.sampled_from(PROMPTS),
    command=_COMMANDS,
    is_fast=st.booleans(),
)
def test_a_configuration_of_a_tokenizer(config, prompt, command, is_fast, capfd):
    files = fast() if is_fast else legacy()
    holds(files | {"tokenizer_config.json": config}, prompt, command, capfd)


@st.composite
def _vocabularies(draw):
    """vocab.json and merges.txt of which entries are other, doubled, out of range, or gone."""
    vocabulary = json.loads(legacy()["vocab.json"])
    merges = legacy()["merges.txt"].decode()
    kind = draw(st.sampled_from(("text", "ids", "words", "merges", "bytes", "pairs", "size")))
    if kind == "text":
        return draw(mutations.json_texts(vocabulary)), merges.encode()
    if kind == "bytes":
        return legacy()["vocab.json"], draw(mutations.damaged(merges.encode()))
    if kind == "merges":
        lines = merges.splitlines()
        at = draw(st.integers(0, len(lines) - 1))
        lines[at] = draw(
            st.sampled_from(("", "x", "t h e", "zz zz", "\0 \0", "#", "the the", " ", "\ud800 a"))
        )
        merges = "\n".join(lines)
    words = sorted(vocabulary)
    for _ in range(draw(st.integers(1, 4)) if kind in ("ids", "words") else 0):
        word = draw(st.sampled_from(words))
        if kind == "ids":
            vocabulary[word] = draw(
                st.sampled_from((0, 5, 264, 265, 299, 300, 10**6, 2**32, -1, 2.0, None, "7"))
            )
        elif word in vocabulary:
            vocabulary[draw(st.sampled_from(mutations.HOSTILE))] = vocabulary.pop(word)
    if kind == "size":
        count = draw(st.sampled_from((0, 1, 3, 200, 5000)))
        kept = dict(list(vocabulary.items())[:count])
        vocabulary = kept | {f"more{i}": len(kept) + i for i in range(count - len(kept))}
    if kind == "pairs":
        vocabulary = [[word, i] for word, i in vocabulary.items()]
    merged = mutations.Content(merges.encode("utf-8", "surrogatepass"))
    return mutations.Content(json.dumps(vocabulary).encode()), merged


@fuzz(15, 600, drawn=_vocabularies(), prompt=st.sampled_from(PROMPTS), command=_COMMANDS)
def test_a_vocabulary(drawn, prompt, command, capfd):
    vocabulary, merges = drawn
    files = legacy() | {"vocab.json": vocabulary, "merges.txt": merges}
    holds(files, prompt, command, capfd)


_PARTS = {
    "normalizer": (
        {"type": "Lowercase"}, {"type": "NFKC"}, {"type": "Prepend", "prepend": "\x1b"},
        {"type": "Replace", "pattern": {"Regex": "(a|a)*$"}, "content": "\x1b[31m"},
        {"type": "Replace", "pattern": {"String": ""}, "content": "x"},
        {"type": "Precompiled", "precompiled_charsmap": "AAAA"},
    ),
    "pre_tokenizer": (
        None, {"type": "Whitespace"}, {"type": "Evil"},
        {"type": "Split", "pattern": {"Regex": "(x+x+)+y"}, "behavior": "Removed", "invert": True},
        {"type": "Split", "pattern": {"Regex": "["}, "behavior": "Isolated", "invert": False},
        {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": False},
        {"type": "FixedLength", "length": 0}, {"type": "FixedLength", "length": 2},
    ),
    "post_processor": (
        None, {"type": "BertProcessing", "sep": ["x", 999], "cls": ["the", 257]},
        {"type": "TemplateProcessing", "single": [], "pair": [], "special_tokens": {}},
    ),
    "decoder": (None, {"type": "WordPiece", "prefix": "##", "cleanup": True}, {"type": "Fuse"}),
    "truncation": (
        {"direction": "Right", "max_length": 1, "strategy": "LongestFirst", "stride": 0},
        {"direction": "Right", "max_length": 0, "strategy": "LongestFirst", "stride": 5},
    ),
    "padding": (
        {"strategy": {"Fixed": 9}, "direction": "Right", "pad_to_multiple_of": None,
         "pad_id": 7, "pad_type_id": 0, "pad_token": "the"},
    ),
    "added_tokens": (
        [], [{"id": 264, "content": "the", "single_word": False, "lstrip": True, "rstrip": True,
              "normalized": False, "special": True}],
        [{"id": 299, "content": "\x1b[31m", "single_word": False, "lstrip": False, "rstrip": False,
          "normalized": False, "special": False}],
        [{"id": 5, "content": "", "single_word": False, "lstrip": False, "rstrip": False,
          "normalized": False, "special": False}],
        [{"id": 3000, "content": "t", "single_word": False, "lstrip": False, "rstrip": False,
          "normalized": True, "special": False}],
    ),
}  # fmt: skip
_MODEL = {
    "type": ("BPE", "WordLevel", "WordPiece", "Unigram", "Evil", None),
    "dropout": (0.5, 1.0, 2.0, -1),
    "unk_token": (None, "x", "<|endoftext|>", 5),
    "continuing_subword_prefix": ("##", "\0"),
    "end_of_word_suffix": ("</w>",),
    "fuse_unk": (True,),
    "byte_fallback": (True,),
    "ignore_merges": (True,),
    "merges": ([], [["t", "h"]], ["t h"], [["x", "y"]], "x", [["t", "h", "e"]], [[]]),
    "vocab": ({}, {"the": 0}, {"a": 0, "b": 0}, {"a": 4_000_000_000}, [["a", 0.5]], {"\x1b": 5}),
}


@st.composite
def _tokenizer_files(draw):
    """A tokenizer.json of which a part is of another kind, or anything else is other."""
    document = json.loads(fast()["tokenizer.json"])
    kind = draw(st.sampled_from(("part", "part", "model", "model", "value", "text", "bytes")))
    if kind == "text":
        return draw(mutations.json_texts(document))
    if kind == "bytes":
        return draw(mutations.damaged(fast()["tokenizer.json"]))
    if kind == "part":
        name = draw(st.sampled_from(sorted(_PARTS)))
        document[name] = draw(st.sampled_from(_PARTS[name]) | mutations.JUNK)
    elif kind == "model":
        name = draw(st.sampled_from(sorted(_MODEL)))
        document["model"][name] = draw(st.sampled_from(_MODEL[name]) | mutations.JUNK)
    else:
        # The many tokens left out, or nearly all changes would be to them.
        vocabulary, document["model"]["vocab"] = document["model"]["vocab"], {}
        document = draw(mutations.json_values(document))
        if isinstance(document, dict) and isinstance(document.get("model"), dict):
            document["model"].setdefault("vocab", {})
            if document["model"]["vocab"] == {}:
                document["model"]["vocab"] = vocabulary
    return mutations.Content(json.dumps(document).encode())


@fuzz(10, 900, content=_tokenizer_files(), prompt=st.sampled_from(PROMPTS), command=_COMMANDS)
def test_a_tokenizer_in_one_file(content, prompt, command, capfd):
    holds(fast() | {"tokenizer.json": content}, prompt, command, capfd)


def _table():
    """Files of which one part, or one field, is one of those above: each of them once."""
    config = json.loads(legacy()["tokenizer_config.json"])
    document = json.loads(fast()["tokenizer.json"])
    for name, values in _CONFIG_FIELDS.items():
        for i, value in enumerate(values):
            files = fast() if i % 2 else legacy()
            yield files | {"tokenizer_config.json": json.dumps(config | {name: value}).encode()}
    for name, values in _PARTS.items():
        for value in values:
            yield fast() | {"tokenizer.json": json.dumps(document | {name: value}).encode()}
    for name, values in _MODEL.items():
        for value in values:
            model = document["model"] | {name: value}
            yield fast() | {"tokenizer.json": json.dumps(document | {"model": model}).encode()}


def test_every_part_of_a_tokenizer(capfd):
    """Usually every other one."""
    for i, files in enumerate(_table()):
        if i % 2 and not LONG:
            continue
        TRIED["test_every_part_of_a_tokenizer"] += 1
        holds(files, PROMPTS[i // 2 % len(PROMPTS)], _NAMES[i // 2 % len(_NAMES)], capfd)


_BESIDE = {
    "added_tokens.json": {"new": 265, "\x1b[31m": 266, "the": 5, "far": 5000},
    "special_tokens_map.json": {"bos_token": "<|endoftext|>", "pad_token": {"content": "the"}},
    "chat_template.jinja": "x",
    "chat_template.json": {"chat_template": "x"},
    "tokenizer.model": {},
    "vocab.txt": {},
    "processor_config.json": {"auto_map": {"AutoProcessor": "evil.Evil"}},
}


@st.composite
def _others(draw):
    name = draw(st.sampled_from(sorted(_BESIDE)))
    if name.startswith("chat_template.jinja"):
        return name, draw(st.sampled_from(_TEMPLATES[:5])).encode()
    return name, draw(mutations.json_texts(_BESIDE[name]))


@fuzz(
    10,
    400,
    drawn=_others(),
    prompt=st.sampled_from(PROMPTS),
    command=_COMMANDS,
    is_fast=st.booleans(),
)
def test_files_beside_a_tokenizer(drawn, prompt, command, is_fast, capfd):
    name, content = drawn
    holds((fast() if is_fast else legacy()) | {name: content}, prompt, command, capfd)


@pytest.mark.parametrize("name", ["vocab.json", "merges.txt", "tokenizer_config.json"])
def test_a_pipe_in_place_of_a_tokenizer_file_is_refused_and_not_waited_for(name):
    with folder(legacy()) as path:
        (path / name).unlink()
        os.mkfifo(path / name)
        model, refusal = refusal_of(resid.load, path)
        assert refusal is not None or model.vocabulary.tokenizer is None


@pytest.mark.parametrize("name", ["merges_file", "vocab_file", "tokenizer_file"])
def test_a_device_as_a_file_of_the_tokenizer_is_not_read(name):
    config = json.loads(legacy()["tokenizer_config.json"]) | {name: "/dev/zero"}
    with folder(legacy() | {"tokenizer_config.json": json.dumps(config).encode()}) as path:
        _, refusal = refusal_of(resid.load, path)
        assert f"names /dev/zero as {name}, which is no file" in str(refusal)


def teardown_module():
    _MARKER.unlink(missing_ok=True)
