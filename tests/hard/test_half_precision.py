"""Half precision: right numbers, stored or computed in it, and an overflow told as one."""

import json
import re

import numpy as np
import pytest
import torch
from click.testing import CliRunner
from safetensors.torch import load_file

import resid
from resid.commands import cli
from tests.conftest import IDS, N_LAYERS, tiny_hf, write_checkpoint
from tests.hard.every_command import NAMES, run
from tests.oracle import Oracle, entropy, kl, log_softmax

DTYPES = ("float16", "bfloat16")
POINTS = ("embed", "0.mid", "0.post", "1.mid", "1.post", "2.mid", "2.post")
TARGET, FOIL = 17, 99
PROMPT = ["--ids", ",".join(map(str, IDS)), "--positions", "all"]


def asked(folder, *line):
    """The document that a command line gives, every check passed."""
    result = CliRunner().invoke(cli, [*line, "-m", str(folder), "--format", "json"])
    assert (result.exit_code, result.stderr) == (0, "")
    return json.loads(result.stdout)["data"]


def close(found, expected, tolerance):
    """Relative to the largest number expected."""
    found, expected = np.asarray(found, dtype=float), np.asarray(expected)
    assert found.shape == expected.shape
    assert np.abs(found - expected).max() <= tolerance * max(1.0, np.abs(expected).max())


def direction(oracle, *tokens):
    """On which a vector's share is the token's score, minus the foil's: gain, then centring."""
    columns = [oracle.W_U[:, token] for token in tokens]
    wanted = (columns[0] - sum(columns[1:])) * oracle.weights["ln_f.weight"]
    return wanted - wanted.mean()


def final_scale(oracle, stream):
    return np.sqrt(stream.var(-1) + oracle.eps)


# --- stored in half precision, computed in float32 ------------------------------------------------


@pytest.fixture(scope="module", params=DTYPES)
def stored(request, tmp_path_factory):
    """A checkpoint of half-precision numbers, and the oracle of just these numbers."""
    hf = tiny_hf().to(getattr(torch, request.param))
    folder = write_checkpoint(tmp_path_factory.mktemp("stored"), hf)
    kept = {weight.dtype for weight in load_file(folder / "model.safetensors").values()}
    assert kept == {hf.dtype}
    return folder, Oracle(hf, IDS)


# What float32 leaves of the tiny model: sums of at most a few hundred numbers of size 10.
FLOAT32 = 1e-5


def test_lens_of_a_checkpoint_stored_in_half(stored):
    folder, oracle = stored
    found = asked(folder, "lens", *PROMPT, "--points", "all", "--top", "300", "--target", "id:17")
    log_p = np.stack([log_softmax(oracle.decode(oracle.at[point])) for point in POINTS])
    by_id = np.take_along_axis(log_p, np.array(found["top_ids"]), -1)
    close(found["top_probs"], np.exp(by_id), FLOAT32)
    close(found["entropy"], entropy(log_p), FLOAT32)
    close(found["kl_to_final"], kl(log_p[-1], log_p), FLOAT32)
    close(found["target"]["logprob"], log_p[..., TARGET], FLOAT32)


def test_norms_of_a_checkpoint_stored_in_half(stored):
    folder, oracle = stored
    found = asked(folder, "norms", *PROMPT, "--points", "all")
    close(found["l2"], [np.linalg.norm(oracle.at[p], axis=-1) for p in POINTS], FLOAT32)
    for write in ("attn_out", "mlp_out"):
        at = [oracle.at[f"{layer}.{write}"] for layer in range(N_LAYERS)]
        close(found[f"{write}_l2"], np.linalg.norm(at, axis=-1), FLOAT32)


def test_neurons_of_a_checkpoint_stored_in_half(stored):
    folder, oracle = stored
    found = asked(folder, "memory", *PROMPT, "--neurons", "24", "--target", "id:17")["neurons"]
    places = [(n["layer"], n["pos"], n["neuron"]) for n in found]
    assert len(set(places)) == len(places) == N_LAYERS * len(IDS) * 24
    for name, at in (("pre_activation", "mlp_pre"), ("coefficient", "mlp_post")):
        expected = [oracle.at[f"{layer}.{at}"][pos, neuron] for layer, pos, neuron in places]
        close([n[name] for n in found], expected, FLOAT32)
    scale = final_scale(oracle, oracle.at["2.post"])
    share = [oracle.weights[f"h.{i}.mlp.c_proj.weight"] @ direction(oracle, TARGET)
             for i in range(N_LAYERS)]  # fmt: skip
    expected = [oracle.at[f"{i}.mlp_post"][p, n] * share[i][n] / scale[p] for i, p, n in places]
    close([n["target_logit"] for n in found], expected, FLOAT32)


def test_find_of_a_checkpoint_stored_in_half(stored):
    folder, oracle = stored
    found = asked(folder, "find", "id:17", "--foil", "id:99", "--neurons", "72")["promotes"]
    values = [oracle.weights[f"h.{layer}.mlp.c_proj.weight"] for layer in range(N_LAYERS)]
    expected = [values[n["layer"]][n["neuron"]] @ direction(oracle, TARGET, FOIL) for n in found]
    assert len(expected) == 72
    close([n["score"] for n in found], expected, FLOAT32)


def test_attribution_of_a_checkpoint_stored_in_half(stored):
    folder, oracle = stored
    found = asked(folder, "attribute", *PROMPT[:2], "--target", "id:17")
    log_p = [log_softmax(oracle.decode(oracle.at[point][-1]))[TARGET] for point in POINTS]
    close([step["logprob"] for step in found["waterfall"]], log_p, FLOAT32)
    close(found["logit"], oracle.logits[-1, TARGET], FLOAT32)
    wanted = direction(oracle, TARGET) / final_scale(oracle, oracle.at["2.post"][-1])
    shares = {part["component"]: part["logit"] for part in found["direct"]}
    for layer in range(N_LAYERS):
        for part, write in (("attn", "attn_out"), ("mlp", "mlp_out")):
            expected = oracle.at[f"{layer}.{write}"][-1] @ wanted
            close(shares[f"{layer}.{part}"], expected, FLOAT32)


@pytest.fixture
def text(tmp_path):
    """One document of one window."""
    (tmp_path / "text.txt").write_text("the is ? the c", encoding="utf-8")
    return tmp_path / "text.txt"


def test_corpus_of_a_checkpoint_stored_in_half(stored, text):
    folder, _ = stored
    model = resid.load(folder)
    ids = model.encode(text.read_text("utf-8"))
    oracle = Oracle(model.hf, ids)  # Of the stored numbers too: float32 holds them all.
    posts = ("embed", "0.post", "1.post", "2.post")
    log_p = np.stack([log_softmax(oracle.decode(oracle.at[point])) for point in posts])
    lens = asked(folder, "corpus", "lens", str(text), "-q")
    close(lens["entropy"], entropy(log_p).mean(1), FLOAT32)
    rows = np.arange(len(ids) - 1)
    close(lens["cross_entropy"], -log_p[:, rows, ids[1:]].mean(1), FLOAT32)
    norms = asked(folder, "corpus", "norms", str(text), "-q")
    l2 = np.array([np.linalg.norm(oracle.at[point], axis=-1) for point in posts])
    close(norms["mean_l2"], l2[:, 1:].mean(1), FLOAT32)
    memory = asked(folder, "corpus", "memory", str(text), "-q")
    post = np.stack([oracle.at[f"{layer}.mlp_post"] for layer in range(N_LAYERS)])
    close(memory["fires"], (post > 0).mean(1), 0)


# --- computed in half precision -------------------------------------------------------------------


@pytest.fixture(scope="module", params=DTYPES)
def halved(request, tiny_folder):
    """The tiny model in half precision, what it recorded, and the oracle of its weights."""
    model = resid.load(tiny_folder, dtype=request.param)
    return model, resid.record(model, IDS), Oracle(model.hf, IDS)


# Of what the model computes in half precision, each write and each sum is rounded to 8 or 11 bits;
# measured at 1 and 0.1 %.
COMPUTED = {torch.bfloat16: 0.05, torch.float16: 0.006}


def test_readings_of_a_half_precision_stream_do_not_round(halved):
    """The stream is what it is; all that is read from it is as exact as from any other."""
    model, recording, oracle = halved
    stream = [recording[point].double().numpy() for point in POINTS]
    lens = resid.logit_lens(model, recording, points="all", top=300, target=TARGET)
    log_p = log_softmax(oracle.decode(np.stack(stream)))
    close(lens.top_probs, np.exp(np.take_along_axis(log_p, lens.top_ids, -1)), FLOAT32)
    close(lens.entropy, entropy(log_p), FLOAT32)
    close(lens.kl_to_final, kl(log_p[-1], log_p), FLOAT32)
    norms = resid.stream_norms(model, recording, points="all")
    close(norms.l2, np.linalg.norm(stream, axis=-1), FLOAT32)

    scale = final_scale(oracle, stream[-1])
    memory = resid.mlp_memory(model, recording, target=TARGET, neurons=24)
    for i, (layer, pos, neuron) in enumerate(zip(memory.layer, memory.pos, memory.neuron)):  # noqa: B905
        coefficient = float(recording[f"{layer}.mlp_post"][pos, neuron])
        assert memory.coefficient[i] == coefficient
        value = oracle.weights[f"h.{layer}.mlp.c_proj.weight"][neuron]
        share = coefficient * (value @ direction(oracle, TARGET)) / scale[pos]
        close(memory.target_logit[i], share, FLOAT32)
    why = resid.attribution(model, recording, target=TARGET)
    close(why.logprob, log_p[:, -1, TARGET], FLOAT32)
    write = recording["1.mlp_out"][-1].double().numpy()
    share = write @ direction(oracle, TARGET) / scale[-1]
    close(why.direct[why.components.index("1.mlp")], share, FLOAT32)
    for found in (lens, norms, memory, why):
        assert found.failures == ()


def test_half_precision_stays_near_float64(halved):
    model, recording, oracle = halved
    tolerance = COMPUTED[model.dtype]
    lens = resid.logit_lens(model, recording, points="all", top=300, target=TARGET)
    log_p = np.stack([log_softmax(oracle.decode(oracle.at[point])) for point in POINTS])
    close(lens.target.logprob, log_p[..., TARGET], tolerance)
    norms = resid.stream_norms(model, recording, points="all")
    close(norms.l2, [np.linalg.norm(oracle.at[p], axis=-1) for p in POINTS], tolerance)
    why = resid.attribution(model, recording, target=TARGET)
    close(why.logit, oracle.logits[-1, TARGET], tolerance)


@pytest.mark.parametrize("dtype", DTYPES)
def test_corpus_in_half_precision_is_the_mean_of_single_runs(tiny_folder, text, dtype):
    model = resid.load(tiny_folder, dtype=dtype)
    recording = resid.record(model, text.read_text("utf-8"))
    following = [*recording.ids[1:]]
    lens = resid.logit_lens(model, recording, top=300)
    probs = np.zeros_like(lens.top_probs)
    np.put_along_axis(probs, lens.top_ids, lens.top_probs, -1)
    loss = -np.log(probs[:, np.arange(len(following)), following])
    found = asked(tiny_folder, "corpus", "lens", str(text), "-q", "--dtype", dtype)
    close(found["cross_entropy"], loss.mean(1), FLOAT32)
    close(found["entropy"], lens.entropy.mean(1), FLOAT32)
    norms = asked(tiny_folder, "corpus", "norms", str(text), "-q", "--dtype", dtype)
    l2 = resid.stream_norms(model, recording).l2
    close(norms["mean_l2"], l2[:, 1:].mean(1), FLOAT32)


# --- too large for float16 ------------------------------------------------------------------------

LARGEST = torch.finfo(torch.float16).max
# Neither reads what the model computes; the last is held to its own weights.
NEVER_RUN = {"find", "neuron", "params"}


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """Every number fits in float16, and so do all sums but those that block 1's MLP makes."""
    hf = tiny_hf()
    with torch.no_grad():
        hf.transformer.h[1].mlp.c_proj.weight *= 2e4
    assert max(float(weight.detach().abs().max()) for weight in hf.parameters()) < LARGEST
    at = Oracle(hf, IDS).at
    assert np.abs(at["1.mlp_out"]).max() > 2 * LARGEST
    assert np.abs(at["1.mid"]).max() < 100
    return write_checkpoint(tmp_path_factory.mktemp("large"), hf)


def computed(name, folder, dtype, tmp_path, *more):
    """The command in a number format, without recheck in float64 where it can be left out."""
    dtype = [] if name == "params" else ["--dtype", dtype]
    return run(name, folder, *dtype, *more, out=tmp_path, prompt="the is ? the c")


@pytest.mark.parametrize("name", NAMES)
def test_overflow_in_float16_ends_with_3_and_shows_no_number(large, tmp_path, name):
    result = computed(name, large, "float16", tmp_path)
    assert not re.search(r"\b(nan|inf)\b", result.stdout, re.IGNORECASE)
    if name in NEVER_RUN:
        assert (result.exit_code, result.stderr) == (0, "")
    else:
        assert result.exit_code == 3, result.output
        assert "check failed: " in result.stderr
        assert len(result.stderr.splitlines()) <= 12


@pytest.mark.parametrize("name", NAMES)
def test_what_overflows_in_float16_is_no_fault_in_the_others(large, tmp_path, name):
    for dtype in ("bfloat16", "float32"):
        assert computed(name, large, dtype, tmp_path).exit_code == 0


@pytest.mark.parametrize("kind", ["lens", "norms", "memory"])
def test_overflow_in_a_corpus_is_counted_and_placed(large, text, kind):
    line = ["corpus", kind, str(text), "-m", str(large), "--format", "json", "-q"]
    result = CliRunner().invoke(cli, [*line, "--dtype", "float16"])
    assert result.exit_code == 3, result.output
    assert result.stderr == "check failed: finite at document 0 at position 0\n"
    found = json.loads(result.stdout, parse_constant=lambda name: pytest.fail(name))
    (finite,) = (check for check in found["checks"] if check["name"] == "finite")
    tokens = found["data"]["tokens"]
    assert (finite["error"], finite["passed"]) == (tokens, False)
    assert CliRunner().invoke(cli, [*line, "--dtype", "bfloat16"]).exit_code == 0


def test_a_weight_that_float16_cannot_hold_is_told(tmp_path):
    hf = tiny_hf()
    with torch.no_grad():
        hf.transformer.h[1].mlp.c_proj.weight[3, 2] = 1e5
    folder = write_checkpoint(tmp_path, hf)
    for name in ("find", "neuron"):
        result = run(name, folder, "--dtype", "float16")
        assert result.exit_code == 3
        assert "check failed: finite at " in result.stderr and "L1N3" in result.stderr
        assert run(name, folder).exit_code == 0
