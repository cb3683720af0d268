"""Where models come from: a hub of our own, the cache that it fills, and no network at all."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
import time

import pytest

from .hub_server import OLDER_SHA, SHA, Hub, serving

LOCATE = """
import json, sys
from resid import ResidError, hub
try:
    found = hub.locate(*json.loads(sys.argv[1]))
    told = [found.folder.name, found.name, found.revision, *found.notices]
    told.append(sorted(file.name for file in found.folder.iterdir()))
except ResidError as error:
    told = str(error)
assert "torch" not in sys.modules
print(json.dumps(told))
"""
NO_NETWORK = """
import socket
def refuse(*_):
    raise SystemExit("a network call")
socket.socket.connect = socket.getaddrinfo = socket.create_connection = refuse
"""


@pytest.fixture
def files(tiny_folder):
    """What the hub holds: the model in two formats, and things nobody needs."""
    found = {file.name: file.read_bytes() for file in tiny_folder.iterdir()}
    return found | {"pytorch_model.bin": b"never read", "tf_model.h5": b"never read"}


@pytest.fixture
def hub(files):
    return Hub(files, older=files | {"config.json": files["config.json"] + b"\n"})


def run(script, home, *arguments, **environment):
    """A process with a Hugging Face cache of its own."""
    kept = {k: v for k, v in os.environ.items() if not k.lower().startswith(("hf_", "http"))}
    environment = {"NO_PROXY": "127.0.0.1", "HF_HOME": str(home)} | environment
    return subprocess.run(
        [sys.executable, "-W", "error::FutureWarning", "-c", script, *arguments],
        env=kept | environment, capture_output=True, text=True, timeout=60,
    )  # fmt: skip


def locate(home, name, revision=None, before="", **environment):
    """What `hub.locate` finds in such a process, and its standard error."""
    done = run(before + LOCATE, home, json.dumps([name, revision]), **environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


def test_download_takes_one_set_of_weights_and_shows_a_bar(hub, tmp_path):
    with serving(hub) as url:
        found, told = locate(tmp_path, "someone/tiny", HF_ENDPOINT=url)
    assert found[:3] == [SHA, "someone/tiny", SHA]
    assert "model.safetensors" in found[-1] and "vocab.json" in found[-1]
    assert not {"pytorch_model.bin", "tf_model.h5"} & set(found[-1])
    assert "Fetching" in told and "100%" in told


@pytest.mark.parametrize(
    ("revision", "sha"), [(None, SHA), ("v1", OLDER_SHA), (OLDER_SHA, OLDER_SHA)]
)
def test_second_load_needs_no_network(hub, tmp_path, revision, sha):
    with serving(hub) as url:
        locate(tmp_path, "someone/tiny", revision, HF_ENDPOINT=url)
    found, told = locate(tmp_path, "someone/tiny", revision, before=NO_NETWORK)
    assert found[:3] == [sha, "someone/tiny", sha]
    assert told == ""


def test_half_a_download_is_no_model(hub, tmp_path):
    with serving(hub) as url:
        locate(tmp_path, "someone/tiny", HF_ENDPOINT=url)
    (weights,) = tmp_path.rglob("snapshots/*/model.safetensors")
    weights.unlink()
    found, _ = locate(tmp_path, "someone/tiny", HF_HUB_OFFLINE="1")
    assert "is not in the local cache" in found


def test_short_name_is_found_under_its_full_one(hub, tmp_path):
    with serving(hub) as url:
        locate(tmp_path, "openai-community/gpt2", HF_ENDPOINT=url)
    found, _ = locate(tmp_path, None, before=NO_NETWORK)
    assert found[1:4] == ["gpt2", SHA, "model: gpt2, from the local cache"]


def test_default_is_fetched_from_the_hub(hub, tmp_path):
    with serving(hub) as url:
        found, _ = locate(tmp_path, None, HF_ENDPOINT=url)
    assert found[1:4] == ["gpt2", SHA, "model: gpt2, from the hub"]


def test_unknown_model(hub, tmp_path):
    with serving(hub) as url:
        found, _ = locate(tmp_path, "someone/nothing", HF_ENDPOINT=url)
    assert found.startswith("there is no model 'someone/nothing' on the hub, and no folder of that")


def test_unknown_revision(hub, tmp_path):
    with serving(hub) as url:
        found, _ = locate(tmp_path, "someone/tiny", "v9", HF_ENDPOINT=url)
    assert found == "the model 'someone/tiny' has no revision 'v9'"


@pytest.mark.parametrize("name", ["a b?c", "x--y", "é", "-x", "x" * 300])
def test_names_that_no_model_can_have(hub, tmp_path, name):
    with serving(hub) as url:
        found, _ = locate(tmp_path, name, HF_ENDPOINT=url)
    assert found.startswith(f"there is no model '{name}' on the hub")
    assert not any("a b" in asked or "x--y" in asked for asked in hub.asked)


def test_model_without_weights(files, tmp_path):
    bare = {"config.json": files["config.json"], "tf_model.h5": b""}
    with serving(Hub(bare, bare)) as url:
        found, _ = locate(tmp_path, "someone/tiny", HF_ENDPOINT=url)
    assert (
        found
        == "the model 'someone/tiny' on the hub has no weights in safetensors or PyTorch format"
    )


def test_failing_hub_gives_mini(files, tmp_path):
    with serving(Hub(files, files, status=503)) as url:
        found, _ = locate(tmp_path, None, HF_ENDPOINT=url)
    assert found[1] == "mini"
    assert found[3] == (
        "model: mini, bundled with resid, because gpt2 is not in the local cache, and the hub "
        "answers 503; -m gpt2 insists on gpt2"
    )


def test_a_hub_that_never_answers_costs_three_seconds(tmp_path):
    asked = []
    with socket.create_server(("127.0.0.1", 0)) as silent:

        def listen():
            with contextlib.suppress(OSError):  # Closed at the end.
                while True:
                    asked.append((silent.accept()[0], time.monotonic()))

        threading.Thread(target=listen, daemon=True).start()
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        found, _ = locate(tmp_path, None, HF_ENDPOINT=url)
        ended = time.monotonic()
        silent.shutdown(socket.SHUT_RDWR)
    assert found[1] == "mini"
    assert "the hub does not answer" in found[3] or "cannot be reached" in found[3]
    ((connection, at),) = asked
    connection.close()
    # Two seconds of waiting; all imports were done when it began, on however slow a machine.
    assert ended - at < 6


def test_offline_names_the_model_and_a_way_out(tmp_path):
    found, _ = locate(tmp_path, "someone/tiny", "v1", before=NO_NETWORK, HF_HUB_OFFLINE="1")
    assert found.splitlines() == [
        "the model 'someone/tiny' at revision 'v1' is not in the local cache, and HF_HUB_OFFLINE "
        "is set",
        "give a folder with -m FOLDER, or use the bundled model with -m mini",
    ]


LOAD = "import sys, resid\nfor name in sys.argv[1:]: print(resid.load(name).encode('the'))"


def test_fetched_models_folders_and_mini_load_without_network(hub, tiny_folder, tmp_path):
    with serving(hub) as url:
        locate(tmp_path, "someone/tiny", HF_ENDPOINT=url)
    done = run(NO_NETWORK + LOAD, tmp_path, "someone/tiny", str(tiny_folder), "mini")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.splitlines()[:2] == ["[257]", "[257]"]
