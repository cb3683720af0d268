"""Checkpoints of which something is changed: the numbers that are in the files, or a refusal."""

import json
import os
import pickle
import re
import tempfile
import warnings
import zipfile
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file
from transformers import GPT2Config, GPT2LMHeadModel

import resid
from tests.conftest import IDS, tiny_config, tiny_hf, write_checkpoint
from tests.fuzz import mutations
from tests.fuzz.budget import fuzz
from tests.fuzz.endings import ends_well, refusal_of

_IDS = ",".join(map(str, IDS))
_COMMANDS = {
    "lens": ["lens", "--ids", _IDS, "--format", "json"],
    "lens table": ["lens", "--ids", _IDS, "--target", "id:260", "--points", "all"],
    "norms": ["norms", "--ids", _IDS],
    "params": ["params"],
    "verify": ["verify", "--ids", "5,290,17", "--no-float64"],
    "find": ["find", "id:260"],
    "neuron": ["neuron", "L1N3", "--format", "json"],
    "attribute": ["attribute", "--ids", _IDS, "--target", "id:9"],
}
_MASK = re.compile(r"h\.[0-9]{1,9}\.(attn|crossattention)\.(bias|masked_bias)")
_FLOATS = (torch.float32, torch.float16, torch.bfloat16, torch.float64)


def _folder_of(**changes):
    """The files of a tiny checkpoint without a tokenizer, by name."""
    with tempfile.TemporaryDirectory() as name:
        write_checkpoint(Path(name), tiny_hf(**changes), tokenizer=False)
        return {file.name: file.read_bytes() for file in Path(name).iterdir()}


SOUND = _folder_of()
UNTIED = _folder_of(tie_word_embeddings=False)
CONFIG = json.loads(SOUND["config.json"])


def _tensors_of(content):
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "x").write_bytes(content)
        return load_file(Path(name) / "x")


TENSORS = _tensors_of(SOUND["model.safetensors"])
_UNTIED_TENSORS = _tensors_of(UNTIED["model.safetensors"])


@contextmanager
def folder(files):
    """A folder with these files, by name; of None there is none."""
    with tempfile.TemporaryDirectory() as name:
        for file, content in files.items():
            if content is not None:
                (Path(name) / file).write_bytes(content)
        yield Path(name)


def by_transformers(tensors, tied=True):
    """The model that tensors are, put together without resid; None where they are no whole one."""
    if any(tensor.dtype not in _FLOATS for name, tensor in tensors.items() if not _is_mask(name)):
        return None
    if "wte.weight" in tensors and any(name.startswith("transformer.") for name in tensors):
        return None
    named = [(name.removeprefix("transformer."), tensor) for name, tensor in tensors.items()]
    weights = {name: tensor for name, tensor in named if not _MASK.fullmatch(name)}
    if len(weights) < sum(not _MASK.fullmatch(name) for name, _ in named):
        return None
    own_head = "lm_head.weight" in weights
    hf = GPT2LMHeadModel(tiny_config(tie_word_embeddings=not own_head)).eval()
    wanted = {name.removeprefix("transformer."): p for name, p in hf.named_parameters()}
    shapes = {name: tuple(weight.shape) for name, weight in weights.items()}
    if shapes != {name: tuple(parameter.shape) for name, parameter in wanted.items()}:
        return None
    with torch.no_grad():
        for name, parameter in wanted.items():
            parameter.copy_(weights[name])
    return hf if own_head or tied else None


def _is_mask(name):
    return _MASK.fullmatch(name.removeprefix("transformer."))


def reads_the_same(model, hf):
    """Hold a loaded model against transformers' own: weights, logits, and every row of the lens."""
    theirs = dict(hf.named_parameters())
    ours = dict(model.hf.named_parameters())
    assert ours.keys() == theirs.keys()
    for name, parameter in ours.items():
        assert torch.equal(parameter.nan_to_num(1e33), theirs[name].nan_to_num(1e33)), name
    with torch.no_grad():
        # As resid asks for it: of NaN the attention kernels make one thing or another.
        expected = hf(torch.tensor([IDS]), output_hidden_states=True, use_cache=False)
        assert same(model.own_logits(IDS, range(len(IDS))), expected.logits[0])
        lens = resid.logit_lens(model, resid.record(model, IDS), top=3)
        for row, hidden in enumerate(expected.hidden_states[:-1]):
            logits = hf.lm_head(hf.transformer.ln_f(hidden))[0].double()
            agrees(lens, row, logits)
        agrees(lens, len(lens.points) - 1, expected.logits[0].double())
    finite = torch.isfinite(expected.logits).all()
    assert bool(finite) or lens.failures


def agrees(lens, row, logits):
    """One point's entropies and top probabilities against those of plain logits."""
    log_p = logits.log_softmax(-1)
    entropy = -(log_p.exp() * log_p).nansum(-1).numpy()
    known = torch.isfinite(logits).all(-1).numpy()
    shown = np.isfinite(lens.entropy[row])
    # In float32 a sum may overflow where its terms do not.
    large = logits.abs().nan_to_num(torch.inf).amax(-1).numpy() > 1e30
    assert (shown == known)[~large].all()
    at = known & shown
    scale = 1 + np.abs(logits.numpy()[at]).max(initial=0)
    np.testing.assert_allclose(lens.entropy[row][at], entropy[at], atol=1e-5 * scale)
    probs = log_p.exp().topk(3).values.numpy()
    np.testing.assert_allclose(lens.top_probs[row][at], probs[at], atol=1e-5 * scale)


def same(one, other):
    return torch.equal(one.nan_to_num(1e33, 1e34, -1e34), other.nan_to_num(1e33, 1e34, -1e34))


def holds(path, tensors, tied=True, words=None):
    """Load a folder with these tensors, and run a command on it: the right numbers or a refusal."""
    hf = by_transformers(tensors, tied)
    model, refusal = refusal_of(resid.load, path)
    if hf is None:
        assert refusal is not None
        assert str(path) in str(refusal)
    else:
        assert refusal is None, refusal
        reads_the_same(model, hf)
    counted, not_counted = refusal_of(resid.param_count, path)
    if hf is not None:
        assert not_counted is None, not_counted
        expected = sum(parameter.numel() for parameter in hf.parameters())
        # Where the head holds the embedding's numbers once more, it is the embedding.
        if "lm_head.weight" in tensors and counted.unembedding_tied:
            expected -= hf.lm_head.weight.numel()
        assert counted.total == expected
    if words is not None:
        ran = ends_well(*words, "-m", path, names=[path])
        if words[0] != "params":
            assert (ran.exit_code == 1) == (hf is None), ran.stderr


@fuzz(40, 1500, changed=mutations.tensors(TENSORS), command=st.sampled_from(sorted(_COMMANDS)))
def test_weights_are_read_as_they_are_or_refused(changed, command):
    with folder(SOUND | {"model.safetensors": None}) as path:
        save_file(changed, path / "model.safetensors")
        holds(path, changed, words=_COMMANDS[command])


@fuzz(15, 750, changed=mutations.tensors(_UNTIED_TENSORS, dtypes=("float16",)))
def test_weights_of_an_untied_model_are_read_as_they_are_or_refused(changed):
    with folder(UNTIED | {"model.safetensors": None}) as path:
        save_file(changed, path / "model.safetensors")
        holds(path, changed, tied=False)


@fuzz(
    40,
    2000,
    content=mutations.headers(SOUND["model.safetensors"])
    | mutations.damaged(SOUND["model.safetensors"]),
    command=st.sampled_from(("lens", "params", "norms")),
)
def test_a_damaged_safetensors_file_is_refused_or_read_as_it_is(content, command):
    with folder(SOUND | {"model.safetensors": content}) as path:
        try:
            tensors = load_file(path / "model.safetensors")
        except Exception:  # Whatever safetensors makes of it.
            tensors = {}
        if not _covered(content):
            tensors = {}  # What has holes, or names twice, was not written by a program.
        holds(path, tensors, words=_COMMANDS[command])


def _covered(content):
    """Whether a header's tensors lie side by side from the first byte to the last, each once."""
    length = int.from_bytes(content[:8], "little")
    try:
        pairs = json.loads(content[8 : 8 + length], object_pairs_hook=list)
        names = [name for name, _ in pairs]
        entries = [dict(entry) for name, entry in pairs if name != "__metadata__"]
        spans = sorted((start, end) for start, end in (entry["data_offsets"] for entry in entries))
    except (ValueError, TypeError, KeyError, RecursionError):
        return False
    ends = [0, *(end for _, end in spans)]
    starts = [*(start for start, _ in spans), len(content) - 8 - length]
    return ends == starts and len(set(names)) == len(names)


def _sharded():
    """The files of a checkpoint in two shards, and its index."""
    names = sorted(TENSORS)
    where = {name: f"model-{1 + i % 2}.safetensors" for i, name in enumerate(names)}
    files = {}
    with tempfile.TemporaryDirectory() as temporary:
        for shard in set(where.values()):
            save_file({n: TENSORS[n] for n in names if where[n] == shard}, Path(temporary) / shard)
            files[shard] = mutations.Content((Path(temporary) / shard).read_bytes())
    return files, {"metadata": {"total_size": 1}, "weight_map": where}


SHARDS, INDEX = _sharded()
_SHARD_NAMES = (
    "model-1.safetensors", "model-2.safetensors", "model-3.safetensors", "../model-1.safetensors",
    "./model-1.safetensors", "/etc/passwd", "..", ".", "", "\0", "\ud800", "x" * 300, "a\nb\nc\nd",
    "model-1.safetensors/", "model-1.bin", "config.json", 5, None, ["model-1.safetensors"],
)  # fmt: skip


@st.composite
def _indexes(draw):
    """The bytes of an index, and which files are beside it."""
    files = dict(SHARDS)
    kind = draw(st.sampled_from(("text", "shard", "shards", "gone", "link", "both", "name")))
    index = json.loads(json.dumps(INDEX))
    name = draw(st.sampled_from(sorted(TENSORS)))
    if kind == "text":
        return draw(mutations.json_texts(index)), files
    if kind == "name":
        index["weight_map"] = {draw(st.sampled_from(_SHARD_NAMES[:3])): "model-1.safetensors"}
    elif kind == "shard":
        index["weight_map"][name] = draw(st.sampled_from(_SHARD_NAMES))
    elif kind == "shards":
        index["weight_map"] = dict.fromkeys(TENSORS, draw(st.sampled_from(_SHARD_NAMES)))
    elif kind == "gone":
        del files[draw(st.sampled_from(sorted(files)))]
    elif kind == "link":
        files["link"] = draw(
            st.sampled_from(("model-2.safetensors", "nowhere", "/dev/zero", "/etc/passwd", "."))
        ).encode()
    else:
        # One weight in both shards, the second time with other numbers.
        files["both"] = name.encode()
    return json.dumps(index).encode(), files


@fuzz(40, 1500, drawn=_indexes(), command=st.sampled_from(("lens", "params")))
def test_an_index_leads_to_its_shards_or_is_refused(drawn, command):
    index, files = drawn
    link, both = files.pop("link", None), files.pop("both", None)
    plain = {"config.json": SOUND["config.json"], "model.safetensors.index.json": index}
    with folder(plain | files) as path:
        if link is not None:
            (path / "model-1.safetensors").unlink()
            (path / "model-1.safetensors").symlink_to(link.decode())
        if both is not None:
            for shard in files:
                tensors = load_file(path / shard)
                tensors[both.decode()] = TENSORS[both.decode()] + len(shard) * (shard == "model-2")
                save_file(tensors, path / shard)
        holds(path, _reached(path, index) if both is None else {}, words=_COMMANDS[command])


def _reached(path, index):
    """The tensors of all shards that an index names; none where it names anything else."""
    try:
        shards = set(json.loads(index.decode())["weight_map"].values())
        inside = {file.name for file in path.iterdir() if file.is_file()}
        if not shards or not shards <= inside:
            return {}
        found = [load_file(path / shard) for shard in shards]
    except Exception:  # No JSON, no map, no names, no safetensors.
        return {}
    return {name: tensor for part in found for name, tensor in part.items()}


# --- .bin -----------------------------------------------------------------------------------------


class _Runs:
    """What leaves a file behind when it is unpickled without care."""

    def __init__(self, call, *arguments):
        self.call, self.arguments = call, arguments

    def __reduce__(self):
        return self.call, self.arguments


def _saved(found, **options):
    with tempfile.TemporaryDirectory() as name:
        torch.save(found, Path(name) / "x", **options)
        return (Path(name) / "x").read_bytes()


BIN = _saved(TENSORS)
OLD_BIN = _saved(TENSORS, _use_new_zipfile_serialization=False)


def _odd_tensor(kind):
    weight = TENSORS["transformer.wpe.weight"]
    return {
        "sparse": lambda: weight.to_sparse(),
        "meta": lambda: weight.to("meta"),
        "quantized": lambda: torch.quantize_per_tensor(weight, 0.1, 0, torch.qint8),
        "expanded": lambda: torch.zeros(1).expand(32, 16),
        "turned": lambda: weight.T.contiguous().T,
        "parameter": lambda: torch.nn.Parameter(weight),
        "view": lambda: torch.cat([weight, weight])[32:],
        "conjugate": lambda: torch.complex(weight, weight).conj(),
        "double": lambda: weight.double(),
        "number": lambda: 3,
        "list": lambda: [weight],
        "none": lambda: None,
        "csr": lambda: weight.to_sparse_csr(),
    }[kind]()


_ODD = (
    "sparse", "meta", "quantized", "expanded", "turned", "parameter", "view", "conjugate", "double",
    "number", "list", "none", "csr",
)  # fmt: skip


@fuzz(26, 300, kind=st.sampled_from(_ODD), head=st.booleans(), zipped=st.booleans())
def test_odd_tensors_in_a_bin_are_read_as_they_are_or_refused(kind, head, zipped):
    name = "lm_head.weight" if head else "transformer.wpe.weight"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Some kinds are new, others are going.
            odd = _odd_tensor(kind)
            content = _saved(TENSORS | {name: odd}, _use_new_zipfile_serialization=zipped)
    except (RuntimeError, NotImplementedError):
        return  # Not in this torch.
    with folder({"config.json": SOUND["config.json"], "pytorch_model.bin": content}) as path:
        plain = kind in ("expanded", "turned", "parameter", "view", "double")
        if head:  # Of another shape than a head.
            plain = False
        tensors = TENSORS | {name: odd} if plain else {}
        holds(path, tensors, words=_COMMANDS["lens"])


@st.composite
def _pickles(draw, marker):
    """A pickle that would leave a marker, in one of the ways in which a .bin is stored."""
    call = draw(
        st.sampled_from(
            ((os.system, f"touch {marker}"), (eval, f"open({str(marker)!r}, 'w')"),
             (exec, f"open({str(marker)!r}, 'w')"), (open, str(marker), "w"),
             (getattr, "x", "join"), (torch.load, str(marker)))
        )
    )  # fmt: skip
    evil = _Runs(*call)
    found = draw(
        st.sampled_from(
            (evil, {"x": evil}, TENSORS | {"x": evil}, [evil], {"wte.weight": {"y": evil}})
        )
    )
    return found, draw(st.sampled_from(("zip", "old", "0", "2", "4", "5")))


_MARKER = Path(tempfile.gettempdir()) / f"resid-fuzz-ran-{os.getpid()}"


@fuzz(40, 800, drawn=_pickles(_MARKER), command=st.sampled_from(("lens", "params")))
def test_code_in_a_bin_is_never_run(drawn, command):
    found, how = drawn
    if how in ("zip", "old"):
        content = _saved(found, _use_new_zipfile_serialization=how == "zip")
    else:
        content = pickle.dumps(found, protocol=int(how))
    with folder({"config.json": SOUND["config.json"], "pytorch_model.bin": content}) as path:
        assert refusal_of(resid.load, path)[1] is not None
        assert ends_well(*_COMMANDS[command], "-m", path, names=[path]).exit_code == 1
        assert not _MARKER.exists()


@st.composite
def _repacked(draw, content):
    """The zip of a .bin, written anew by another program: packed, trimmed, doubled, renamed."""
    with tempfile.TemporaryDirectory() as name:
        (Path(name) / "in").write_bytes(content)
        kind = draw(st.sampled_from(("packed", "packed one", "dropped", "twice", "renamed", "cut",
                                     "long", "stored")))  # fmt: skip
        with zipfile.ZipFile(Path(name) / "in") as old:
            members = [(info.filename, old.read(info)) for info in old.infolist()]
        at = draw(st.integers(0, len(members) - 1))
        with zipfile.ZipFile(Path(name) / "out", "w") as new:
            for i, (member, data) in enumerate(members):
                here = i == at
                if here and kind == "dropped":
                    continue
                if here and kind == "renamed":
                    member = draw(st.sampled_from(("../" + member, "/" + member, member + "x")))
                if here and kind == "cut":
                    data = data[: len(data) // 2]
                if here and kind == "long":
                    data += b"\0" * 100
                packed = kind == "packed" or (kind == "packed one" and here)
                how = zipfile.ZIP_DEFLATED if packed else zipfile.ZIP_STORED
                new.writestr(member, data, compress_type=how)
                if here and kind == "twice":
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        new.writestr(member, b"\0" * len(data))
        return mutations.Content((Path(name) / "out").read_bytes())


@fuzz(
    35,
    1500,
    content=_repacked(BIN) | mutations.damaged(BIN) | mutations.damaged(OLD_BIN, 8000),
    command=st.sampled_from(("lens", "params")),
)
def test_a_damaged_bin_is_refused_or_read_as_torch_reads_it(content, command):
    with folder({"config.json": SOUND["config.json"], "pytorch_model.bin": content}) as path:
        model, refusal = refusal_of(resid.load, path)
        ends_well(*_COMMANDS[command], "-m", path, names=[path])
        if refusal is None:
            # Without a map of the file: packed numbers are unpacked, or it is an error.
            tensors = torch.load(path / "pytorch_model.bin", map_location="cpu", weights_only=True)
            reads_the_same(model, by_transformers(tensors))


# --- config.json ----------------------------------------------------------------------------------


_FIELDS = {
    "n_layer": (0, 2, 4, -3, 10**9, 10**30, "3", 3.0, True, None),
    "n_head": (0, 1, 2, 4, 8, 16, 3, 32, -2, 10**12),
    "n_embd": (0, 15, 17, 32, 10**9, 2**63),
    "n_inner": (None, 0, 24, 25, 64, 10**12),
    "n_positions": (0, 1, 31, 33, 2**40),
    "vocab_size": (0, 1, 299, 301, 10**12),
    "num_attention_heads": (1, 4, 8),
    "num_hidden_layers": (1, 4),
    "hidden_size": (8, 32),
    "max_position_embeddings": (8, 64),
    "layer_norm_epsilon": (0, 1e-5, 1e-12, 0.5, 1, 2, -1e-5, 1e-50, "1e-5", None),
    "activation_function": ("relu", "gelu", "gelu_new", "silu", "tanh", "quick_gelu", "os.system"),
    "scale_attn_weights": (False, True, 0, "true", None),
    "scale_attn_by_inverse_layer_idx": (False, True, 1, None),
    "reorder_and_upcast_attn": (False, True, "x"),
    "tie_word_embeddings": (False, True, None, "false"),
    "add_cross_attention": (True, None),
    "architectures": (None, [], ["GPT2Model"], ["GPT2ForSequenceClassification"], ["x"], "x", [5]),
    "model_type": ("gpt2", "GPT2", "bert", "gpt_neo", "", None, ["gpt2"], "\x1b[31m"),
    "auto_map": ({"AutoConfig": "evil.Evil", "AutoModelForCausalLM": "evil.Evil"},),
    "quantization_config": ({}, {"load_in_4bit": True}, "x", 0),
    "pruned_heads": ({"0": [0]}, {0: [1]}, "x"),
    "torch_dtype": ("float16", "evil"),
    "dtype": ("bfloat16", 5),
    "attn_implementation": ("eager", "flash_attention_2"),
    "_attn_implementation": ("flex_attention", "evil"),
    "chunk_size_feed_forward": (1, 2),
    "n_ctx": (1, 64),
    "bos_token_id": (0, 264, 10**9, -1, "x", None),
    "eos_token_id": (0, 10**9, [1, 2], "x"),
    "id2label": ({}, {"0": "a", "1": "b"}, "x", ["a"]),
    "num_labels": (1, 5, 10**9, -1),
    "gradient_checkpointing": (True,),
    "is_decoder": (True, "x"),
    "trust_remote_code": (True,),
    "output_hidden_states": (True,),
    "return_dict": (False,),
    "use_cache": (False, "x"),
    "transformers_version": ("99.0", 5),
}


@st.composite
def _configurations(draw):
    """The bytes of a config.json that is another, mostly in a field or two that it should have."""
    if draw(st.integers(0, 2)) == 0:
        return draw(mutations.json_texts(CONFIG))
    fields = dict(CONFIG)
    for name in draw(st.lists(st.sampled_from(sorted(_FIELDS)), min_size=1, max_size=2)):
        value = draw(st.sampled_from((*_FIELDS[name], ...)) | mutations.JUNK)
        if value is ...:
            fields.pop(name, None)
        else:
            fields[name] = value
    return json.dumps(fields).encode()


def configured(content):
    """transformers' model of a configuration and the sound weights; None where it makes none."""
    with folder({"config.json": content, "model.safetensors": SOUND["model.safetensors"]}) as path:
        fields = json.loads(content)
        named = {name: fields[name] for name in _FIELDS if fields.get(name) is not None}
        for name in ("torch_dtype", "dtype", "attn_implementation", "_attn_implementation",
                     "auto_map", "architectures", "pruned_heads", "gradient_checkpointing",
                     "output_hidden_states", "return_dict", "trust_remote_code"):  # fmt: skip
            named.pop(name, None)
        hf = GPT2LMHeadModel(GPT2Config(**named)).eval()
        weights = load_file(path / "model.safetensors")
        told = hf.load_state_dict(weights, strict=False)
        assert set(told.missing_keys) <= {"lm_head.weight"}
        return hf


@fuzz(60, 2500, content=_configurations(), command=st.sampled_from(sorted(_COMMANDS)))
def test_a_configuration_says_what_it_says_to_transformers_or_is_refused(content, command):
    evil = f"open({str(_MARKER)!r}, 'w')\nclass Evil: pass\n".encode()
    with folder(SOUND | {"config.json": content, "evil.py": evil}) as path:
        model, refusal = refusal_of(resid.load, path)
        ran = ends_well(*_COMMANDS[command], "-m", path, names=[path])
        assert not _MARKER.exists()
        if refusal is not None:
            assert str(path) in str(refusal)
            assert ran.exit_code == 1 or command == "params"
            return
        assert ran.exit_code != 1 or not model.has_head or command in ("params", "neuron")
        if model.has_head:
            try:
                hf = configured(content)
            except Exception:
                return  # What is null or odd in a way that has no meaning, transformers fails on.
            reads_the_same(model, hf)


_BESIDE = ("generation_config.json", "adapter_config.json", "quantize_config.json", "README.md",
           "custom_generate/generate.py", "model.safetensors.index.json", "__init__.py",
           "added_tokens.json", "chat_template.jinja", "processor_config.json")  # fmt: skip


@fuzz(
    15,
    400,
    name=st.sampled_from(_BESIDE),
    content=mutations.json_texts({"transformers_version": "5", "eos_token_id": 5, "auto_map": {}}),
)
def test_files_beside_a_checkpoint_have_no_say(name, content):
    with folder(SOUND) as path:
        (path / name).parent.mkdir(exist_ok=True)
        (path / name).write_bytes(content)
        holds(path, TENSORS)


@pytest.mark.parametrize("name", ["config.json", "model.safetensors", "pytorch_model.bin"])
def test_a_pipe_in_place_of_a_file_is_refused_and_not_waited_for(name):
    with folder(SOUND | {"model.safetensors": None}) as path:
        (path / name).unlink(missing_ok=True)
        os.mkfifo(path / name)
        assert refusal_of(resid.load, path)[1] is not None
        assert refusal_of(resid.param_count, path)[1] is not None


def teardown_module():
    _MARKER.unlink(missing_ok=True)
