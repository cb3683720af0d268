"""Checkpoints of every kind and with every fault, counted from their headers."""

import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

import resid
from resid.errors import ResidError
from resid.layout import known
from resid.readings.param_count import param_count

from ..conftest import D_MODEL, D_VOCAB, N_CTX, N_LAYERS, tiny_config, tiny_hf


@pytest.fixture(scope="module")
def weights(tiny_folder):
    """The tiny model's tensors by name, as its file holds them."""
    return load_file(tiny_folder / "model.safetensors")


@pytest.fixture(scope="module")
def distinct():
    """How many parameters the tiny model has, by torch's own count."""
    return sum(parameter.numel() for parameter in tiny_hf().parameters())


def write(folder: Path, weights, name="model.safetensors", **fields) -> Path:
    config = tiny_config().to_dict() | {"architectures": ["GPT2LMHeadModel"]} | fields
    (folder / "config.json").write_text(json.dumps(config), "utf-8")
    if name.endswith(".bin"):
        torch.save(weights, folder / name)
    else:
        save_file(weights, folder / name)
    return folder


def bare(weights):
    return {name.removeprefix("transformer."): weight for name, weight in weights.items()}


def masked(weights):
    """With the causal masks that older versions of transformers saved."""
    masks = {}
    for layer in range(N_LAYERS):
        masks[f"transformer.h.{layer}.attn.bias"] = torch.ones(1, 1, N_CTX, N_CTX).bool()
        masks[f"transformer.h.{layer}.attn.masked_bias"] = torch.tensor(-1e4)
    return weights | masks


def twice(weights):
    return weights | {"lm_head.weight": weights["transformer.wte.weight"].clone()}


@pytest.mark.parametrize("name", ["model.safetensors", "pytorch_model.bin"])
@pytest.mark.parametrize("change", [dict, bare, masked, twice])
def test_same_model_same_count(tmp_path, weights, distinct, name, change):
    folder = write(tmp_path, change(weights), name)
    found = param_count(folder)
    assert found.total == distinct
    assert found.unembedding_tied
    assert not found.failures
    assert found.total == param_count(resid.load(folder)).total


def test_masks_are_in_the_file_and_not_in_the_count(tmp_path, weights, distinct):
    with_masks = sum(weight.numel() for weight in masked(weights).values())
    assert with_masks == distinct + N_LAYERS * (N_CTX * N_CTX + 1)
    assert param_count(write(tmp_path, masked(weights))).total == distinct


def test_gpt2s_own_file_is_not_its_parameters(tmp_path):
    """As on the hub: 137,022,720 numbers in a file of 548 MB, of which none is read here."""
    shapes = {n: s for n, s in known("gpt2").shapes().items() if n != "lm_head.weight"}
    shapes |= {f"h.{layer}.attn.bias": (1, 1, 1024, 1024) for layer in range(12)}
    header, at = {}, 0
    for name, shape in shapes.items():
        n = 4 * int(torch.Size(shape).numel())
        header[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + n]}
        at += n
    assert at == 4 * 137022720
    text = json.dumps(header).encode()
    (tmp_path / "config.json").write_text('{"model_type": "gpt2"}')
    with (tmp_path / "model.safetensors").open("wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + at)
    assert param_count(tmp_path).total == 124439808


def test_shards(tmp_path, distinct):
    tiny_hf().save_pretrained(tmp_path, max_shard_size="20KB")
    shards = sorted(tmp_path.glob("model-*.safetensors"))
    assert len(shards) > 1
    found = param_count(tmp_path)
    assert found.total == distinct
    assert found.counted_from == f"config.json and the headers of {len(shards)} shards"
    shards[0].unlink()
    with pytest.raises(ResidError, match=f"{shards[0].name} is missing"):
        param_count(tmp_path)


@pytest.mark.parametrize("name", ["model.safetensors", "pytorch_model.bin"])
def test_a_head_of_its_own_counts_whatever_the_configuration_says(
    tmp_path, weights, distinct, name
):
    own = twice(weights)
    own["lm_head.weight"][-1, -1] += 1
    folder = write(tmp_path, own, name)
    found = param_count(folder)
    assert (found.unembedding, found.unembedding_tied) == (D_VOCAB * D_MODEL, False)
    assert found.total == distinct + D_VOCAB * D_MODEL
    assert found.total == param_count(resid.load(folder)).total


def test_untied_configuration_with_equal_head_counts_both_as_loading_does(tmp_path, weights):
    folder = write(tmp_path, twice(weights), tie_word_embeddings=False)
    found = param_count(folder)
    assert not found.unembedding_tied
    assert found.total == param_count(resid.load(folder)).total


def test_a_classifier_has_no_unembedding(tmp_path, weights, distinct):
    with_score = weights | {"score.weight": torch.ones(3, D_MODEL)}
    folder = write(tmp_path, with_score, architectures=["GPT2ForSequenceClassification"])
    found = param_count(folder)
    assert (found.unembedding, found.unembedding_tied) == (0, False)
    assert found.other_parts == {"score": 3 * D_MODEL}
    assert found.total == distinct + 3 * D_MODEL


def without(name):
    return lambda weights: {key: w for key, w in weights.items() if not key.endswith(name)}


def changed(name, weight):
    return lambda weights: weights | {name: weight}


FAULTS = [
    (without("h.1.mlp.c_fc.weight"), {}, r"lacks h\.1\.mlp\.c_fc\.weight$"),
    (without("ln_f.bias"), {}, r"lacks ln_f\.bias"),
    (without("wte.weight"), {}, r"no wte\.weight"),
    (dict, {"n_layer": 4}, r"lacks h\.3\..*\(and 11 more\)"),
    (dict, {"n_layer": 1}, r"configuration does not have: h\.1\..*\(and 23 more\)"),
    (dict, {"tie_word_embeddings": False}, r"lacks lm_head\.weight"),
    (dict, {"vocab_size": 299}, r"wte\.weight is \[300, 16\].*makes it \[299, 16\]"),
    (dict, {"n_inner": None}, r"c_fc\.(weight|bias) is .*24.*makes it .*64"),
    (
        changed("transformer.h.0.mlp.c_fc.weight", torch.ones(24, 16)),
        {},
        r"h\.0\.mlp\.c_fc\.weight is \[24, 16\].*\[16, 24\]",
    ),
    (changed("lm_head.weight", torch.ones(9, 16)), {}, r"lm_head\.weight is \[9, 16\]"),
    (
        changed("transformer.h.0.mlp.c_fc.weight", torch.ones(8, 24, dtype=torch.uint8)),
        {},
        r"h\.0\.mlp\.c_fc\.weight holds uint8 numbers",
    ),
    (dict, {"model_type": "bert"}, "reads gpt2 models; got 'bert'"),
    (dict, {"model_type": None}, "no model_type"),
    (dict, {"quantization_config": {"bits": 4}}, "quantized"),
    (dict, {"n_embd": "16"}, "n_embd is '16', not a whole number"),
    (dict, {"n_layer": 0}, "n_layer is 0"),
    (dict, {"n_layer": 10**9}, "no file holds that many blocks"),
    (dict, {"n_inner": -3}, "n_inner is -3"),
    (dict, {"n_head": 3}, "n_embd is 16, which 3 heads cannot share"),
]


@pytest.mark.parametrize("name", ["model.safetensors", "pytorch_model.bin"])
@pytest.mark.parametrize(("change", "fields", "message"), FAULTS)
def test_faults_are_named(tmp_path, weights, name, change, fields, message):
    folder = write(tmp_path, change(weights), name, **fields)
    with pytest.raises(ResidError, match=message) as caught:
        param_count(folder)
    assert str(folder) in str(caught.value) or "no wte" in message
    assert len(str(caught.value).splitlines()) <= 3


POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 548105171\n"
HEADER = b'{"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}}'


def safetensors(header, data=b"12345678"):
    return len(header).to_bytes(8, "little") + header + data


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (POINTER, "Git LFS pointer"),
        (b"", "is empty"),
        (b"abc", "cut off or damaged: a header of"),
        (b"PK\x03\x04" + bytes(100), "cut off or damaged: a header of"),
        (safetensors(HEADER)[:-1], "it has 69 bytes, its header describes 70"),
        (safetensors(HEADER, b"123456789"), "it has 71 bytes"),
        (safetensors(b"[1, 2]"), "not what safetensors writes"),
        (safetensors(b'{"a"'), "not what safetensors writes"),
        (safetensors(b'{"a": {}}'), "not what safetensors writes"),
        (safetensors(HEADER.replace(b"[2]", b"[3]")), "not what safetensors writes"),
        (safetensors(HEADER.replace(b"[2]", b"[-2]")), "not what safetensors writes"),
        (safetensors(HEADER.replace(b"[0,8]", b"[4,12]")), "a lies in a wrong place"),
        (safetensors(b"[" * 100_000), "not what safetensors writes"),
    ],
)
def test_damaged_files_are_named(tmp_path, weights, content, message):
    write(tmp_path, weights)
    (tmp_path / "model.safetensors").write_bytes(content)
    with pytest.raises(ResidError, match=message):
        param_count(tmp_path)


def test_half_a_file_is_refused(tmp_path, weights):
    file = write(tmp_path, weights) / "model.safetensors"
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    with pytest.raises(ResidError, match="cut off or damaged"):
        param_count(tmp_path)


class Harmful:
    def __reduce__(self):
        return (os.mkdir, ("harm-was-done",))


def test_a_pickle_that_would_run_code_is_refused(tmp_path, weights, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = write(tmp_path, weights | {"x": Harmful()}, "pytorch_model.bin")
    with pytest.raises(ResidError, match="holds more than tensors"):
        param_count(folder)
    assert not Path("harm-was-done").exists()


def test_where_nothing_is(tmp_path, monkeypatch):
    with pytest.raises(ResidError, match=r"no config\.json"):
        param_count(tmp_path)
    with pytest.raises(ResidError, match="does not exist"):
        param_count(tmp_path / "nope")
    (tmp_path / "config.json").write_text('{"model_type": "gpt2"}')
    with pytest.raises(ResidError, match=r"no model\.safetensors and no pytorch_model\.bin"):
        param_count(tmp_path)
    with pytest.raises(ResidError, match="is a file"):
        param_count(tmp_path / "config.json")
    (tmp_path / "gpt2").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ResidError, match="working directory was taken for the model"):
        param_count("gpt2")


def test_offline_and_unknown():
    with pytest.raises(ResidError, match="not in the local cache, and HF_HUB_OFFLINE is set"):
        param_count("someone/unknown")
    with pytest.raises(ResidError, match="at revision 'v1' is not in the local cache"):
        param_count("gpt2-medium", revision="v1")


COMMIT = "0123456789abcdef0123456789abcdef01234567"


class Hub(BaseHTTPRequestHandler):
    """As much of a model hub as is asked for, with one model; it notes what it served."""

    folder: Path
    served: list

    def do_HEAD(self):
        self.do_GET()

    def do_GET(self):
        prefix = "/someone/small/resolve/"
        file = self.folder / self.path.rpartition("/")[2]
        if not self.path.startswith(prefix) or not file.is_file():
            self.send_response(404)
            known = self.path.startswith(prefix)
            self.send_header("X-Error-Code", "EntryNotFound" if known else "RepoNotFound")
            self.send_header("Content-Length", "0")
            self.end_headers()
            return
        content, span = file.read_bytes(), self.headers.get("Range")
        self.send_response(206 if span else 200)
        if span:
            first, last = map(int, span.removeprefix("bytes=").split("-"))
            content = content[first : last + 1]
        self.send_header("ETag", '"abc"')
        self.send_header("X-Repo-Commit", COMMIT)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)
            self.served.append((file.name, len(content)))

    def log_message(self, *words):
        """Keep the tests' output clean."""


@pytest.fixture
def hub(tmp_path):
    """Serves a folder; gives it, what was served, and how to count from there."""
    served = []
    folder = tmp_path / "served"
    folder.mkdir()
    handler = type("Here", (Hub,), {"folder": folder, "served": served})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    environment = {k: v for k, v in os.environ.items() if "proxy" not in k.lower()}
    environment |= {
        "HF_ENDPOINT": f"http://127.0.0.1:{server.server_port}",
        "HF_HUB_OFFLINE": "0",
        "HF_HOME": str(tmp_path / "cache"),
    }

    def ask(name):
        command = [sys.executable, "-m", "resid", "params", name, "--format", "json"]
        return subprocess.run(command, capture_output=True, text=True, env=environment)

    yield folder, served, ask
    server.shutdown()
    thread.join()
    server.server_close()


def test_a_hub_model_is_counted_without_its_weights(hub):
    folder, served, ask = hub
    hf = tiny_hf(n_embd=128)
    hf.save_pretrained(folder)
    done = ask("someone/small")
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["data"]["total"] == sum(p.numel() for p in hf.parameters())
    assert document["data"]["counted_from"] == "config.json and the safetensors header on the hub"
    assert document["source"]["revision"] == COMMIT
    file = folder / "model.safetensors"
    assert 0 < sum(n for name, n in served if name == file.name) < file.stat().st_size / 4


def test_what_the_hub_lacks(hub):
    folder, _, ask = hub
    tiny_config().save_pretrained(folder)
    done = ask("someone/small")
    assert json.loads(done.stdout)["data"]["counted_from"].startswith("config.json alone")
    (folder / "config.json").unlink()
    assert "has no config.json" in ask("someone/small").stderr
    done = ask("someone/else")
    assert (done.returncode, done.stdout) == (1, "")
    assert "there is no model 'someone/else' on the hub" in done.stderr
