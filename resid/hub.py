"""Where a model's files are: the local Hugging Face cache, and the hub when it can be reached.

Everything here ends in a folder on this machine; only `download` moves bytes, with a progress bar.
"""

from __future__ import annotations

import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPException
from pathlib import Path

from resid.errors import ResidError, first_line

BUNDLED = "mini"
BUNDLED_FOLDER = Path(__file__).parent / "bundled" / BUNDLED

# The hub's full names for the short ones; a cache may hold a model under either.
_FULL_NAME = {
    "gpt2": "openai-community/gpt2",
    "gpt2-medium": "openai-community/gpt2-medium",
    "gpt2-large": "openai-community/gpt2-large",
    "gpt2-xl": "openai-community/gpt2-xl",
    "distilgpt2": "distilbert/distilgpt2",
}
# In order of preference: safetensors cannot hold code.
WEIGHT_FILES = (
    "model.safetensors",
    "model.safetensors.index.json",
    "pytorch_model.bin",
    "pytorch_model.bin.index.json",
)
TOKENIZER_FILES = (
    "tokenizer.json",
    "tokenizer_config.json",
    "vocab.json",
    "merges.txt",
    "vocab.txt",
    "special_tokens_map.json",
    "added_tokens.json",
)
# Long enough for a slow line, short enough that a network which only drops packets costs little.
_REACH_SECONDS = 2.0


@dataclass(frozen=True)
class Snapshot:
    """A model's files on this machine."""

    folder: Path
    revision: str
    """The commit on the hub."""


@dataclass(frozen=True)
class Found:
    """The folder in which a model was found, and how it got to be that one."""

    folder: Path
    name: str
    """How the model was asked for."""
    revision: str | None = None
    """The commit of a model from the hub."""
    notices: tuple[str, ...] = ()
    """What to tell about the choice, one line each."""


def locate(name: str | None, revision: str | None = None) -> Found:
    """Where a model is: the bundled one, a folder, the local cache or, fetched now, the hub.

    Args:
        name: "mini", a folder, or a name on the hub; None: gpt2, or else mini.
        revision: of a model from the hub, a branch, tag or commit.

    Raises:
        ResidError: there is no such model, or it is not to be had now.
    """
    if name is None:
        return _default(revision)
    found = on_this_machine(name)
    if found is None:
        snapshot = find(name, revision)
        return Found(snapshot.folder, name, snapshot.revision)
    refuse_revision(revision, f"'{name}' is a folder")
    return found


def refuse_revision(revision: str | None, why: str) -> None:
    """Refuse a revision of what has none, rather than to read something else than was asked for."""
    if revision is not None:
        raise ResidError(f"--revision is for models from the hub; {why}")


def on_this_machine(name: str) -> Found | None:
    """The bundled model or the folder that a name means; None where it can only be on the hub.

    Raises:
        ResidError: the name is empty, or means a folder that is not there or holds no model.
    """
    if name == BUNDLED:
        return Found(BUNDLED_FOLDER, name)
    if not name.strip():
        raise ResidError("the model's name is empty; give a hub name, a folder, or mini")
    folder = expanded(name)
    if not _exists(folder):
        if looks_like_path(name):
            raise ResidError(f"the folder '{name}' does not exist")
        return None
    if not folder.is_dir():
        raise ResidError(f"'{name}' is a file; give the folder that holds config.json and weights")
    if looks_like_path(name):
        return Found(folder, name)
    if not (folder / "config.json").exists():
        raise ResidError(
            f"the folder '{name}' in the working directory was taken for the model, "
            "and it has no config.json\nfor the hub model of that name, run from another directory"
        )
    notice = f"model: the folder '{name}' here, not a hub model of that name"
    return Found(folder, name, notices=(notice,))


def _default(revision: str | None) -> Found:
    if revision is not None:
        raise ResidError("--revision needs the model that it is a revision of; give -m too")
    snapshot, why = default_model()
    if snapshot is None:
        notice = f"model: {BUNDLED}, bundled with resid, because {why}; -m gpt2 insists on gpt2"
        return Found(BUNDLED_FOLDER, BUNDLED, notices=(notice,))
    return Found(snapshot.folder, "gpt2", snapshot.revision, (f"model: gpt2, {why}",))


def expanded(name: str) -> Path:
    """The path that a name means, ~ being somebody's home; as it stands where nobody has one."""
    try:
        return Path(name).expanduser()
    except RuntimeError:
        return Path(name)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        return False  # Too long for a name, or with signs in it that no name can have.


def in_cache(name: str, revision: str | None = None) -> Snapshot | None:
    """The cached snapshot of a hub model that holds a configuration and weights, or None."""
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    for repo_id in _spellings(name):
        try:
            # Of one file: for a snapshot, newer versions ask for every file that the hub has.
            config = try_to_load_from_cache(repo_id, "config.json", revision=revision)
        except (HFValidationError, OSError):
            continue  # No name that the hub could have, or a cache that cannot be read: not there.
        if isinstance(config, str) and _is_whole(Path(config).parent):
            return Snapshot(Path(config).parent, Path(config).parent.name)
    return None


def _is_whole(snapshot: Path) -> bool:
    """Whether weights are there: fetching a tokenizer, or half a model, leaves a snapshot too."""
    weights = next((snapshot / f for f in WEIGHT_FILES if (snapshot / f).exists()), None)
    if weights is None:
        return False
    if not weights.name.endswith(".index.json"):
        return True
    try:
        shards = set(json.loads(weights.read_text(encoding="utf-8"))["weight_map"].values())
        return all((snapshot / shard).exists() for shard in shards)
    except (OSError, ValueError, KeyError, AttributeError, TypeError, RecursionError):
        return True  # Whoever reads the checkpoint says what is wrong with its index.


def unreachable() -> str | None:
    """Why the hub cannot be asked, found out within about two seconds; None where it can."""
    from huggingface_hub import constants

    if constants.HF_HUB_OFFLINE:
        return "HF_HUB_OFFLINE is set"
    answered: list[str | None] = []
    # In a thread of its own: looking up a name has no time limit of its own.
    thread = threading.Thread(target=lambda: answered.append(_ask(constants.ENDPOINT)), daemon=True)
    try:
        thread.start()
    except RuntimeError:
        return "no more threads may be started to ask the hub"
    thread.join(_REACH_SECONDS)
    return answered[0] if answered else "the hub does not answer"


def _ask(endpoint: str) -> str | None:
    address = f"{endpoint}/{_FULL_NAME['gpt2']}/resolve/main/config.json"
    try:
        request = urllib.request.Request(address, method="HEAD")
        with urllib.request.urlopen(request, timeout=_REACH_SECONDS):
            return None
    except urllib.error.HTTPError as error:
        # A mirror without gpt2 is still a hub; a proxy that refuses or fails is not.
        return None if error.code in {401, 403, 404, 429} else f"the hub answers {error.code}"
    except (OSError, ValueError, HTTPException) as error:
        del error  # A dozen spellings of the same news.
        return "the hub cannot be reached"


def download(name: str, revision: str | None = None) -> Snapshot:
    """The snapshot of a hub model, fetched with a progress bar on standard error.

    Takes the configuration, the tokenizer and one set of weights, safetensors where there is one.

    Raises:
        ResidError: there is no such model or revision, it needs a login, it has no PyTorch
            weights, or the transfer failed.
    """
    from huggingface_hub import HfApi, snapshot_download

    with explained(name, revision):
        info = HfApi().model_info(name, revision=revision, timeout=10)
        wanted = _choose_files([file.rfilename for file in info.siblings or []], name)
        # By the name of the revision, not by its commit: the cache is asked by name the next time.
        folder = Path(snapshot_download(name, revision=revision, allow_patterns=wanted))
        return Snapshot(folder, folder.name)


@contextmanager
def explained(name: str, revision: str | None) -> Iterator[None]:
    """What goes wrong while the hub is asked about a model, in our words."""
    from huggingface_hub.errors import (
        GatedRepoError,
        HFValidationError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    try:
        yield
    except GatedRepoError:
        raise ResidError(f"the model '{name}' asks for a login: run `hf auth login`") from None
    except RevisionNotFoundError:
        raise ResidError(f"the model '{name}' has no revision '{revision}'") from None
    except (RepositoryNotFoundError, HFValidationError):
        raise ResidError(
            f"there is no model '{name}' on the hub, and no folder of that name here\n"
            "give a hub name such as gpt2, a folder, or mini"
        ) from None
    except ResidError:
        raise
    except Exception as error:  # httpx and requests, by version of the library, share no base.
        raise ResidError(f"fetching '{name}' from the hub failed: {first_line(error)}") from error


def _choose_files(names: list[str], model: str) -> list[str]:
    chosen = next((f for f in WEIGHT_FILES if f in names), None)
    if chosen is None or "config.json" not in names:
        missing = "config.json" if chosen else "weights in safetensors or PyTorch format"
        raise ResidError(f"the model '{model}' on the hub has no {missing}")
    wanted = [f for f in names if f in TOKENIZER_FILES] + ["config.json", chosen]
    if chosen.endswith(".index.json"):
        shard_end = ".safetensors" if "safetensors" in chosen else ".bin"
        wanted += [f for f in names if f.endswith(shard_end) and "/" not in f]
    return wanted


def _spellings(name: str) -> list[str]:
    return [name, _FULL_NAME[name]] if name in _FULL_NAME else [name]


def find(name: str, revision: str | None = None) -> Snapshot:
    """The files of the hub model that was asked for by name: from the cache, else from the hub.

    Raises:
        ResidError: neither has it; the message says which of the two failed how.
    """
    snapshot = in_cache(name, revision)
    if snapshot is not None:
        return snapshot
    why = unreachable()
    if why is None:
        return download(name, revision)
    at = f" at revision '{revision}'" if revision else ""
    raise ResidError(
        f"the model '{name}'{at} is not in the local cache, and {why}\n"
        "give a folder with -m FOLDER, or use the bundled model with -m mini"
    )


def default_model() -> tuple[Snapshot | None, str]:
    """GPT-2 small from the cache, else from the hub; or None and the reason in words."""
    snapshot = in_cache("gpt2")
    if snapshot is not None:
        return snapshot, "from the local cache"
    why = unreachable()
    if why is None:
        try:
            return download(_FULL_NAME["gpt2"]), "from the hub"
        except ResidError as error:
            why = first_line(error)
    return None, f"gpt2 is not in the local cache, and {why}"


def looks_like_path(name: str) -> bool:
    """Whether a name can only be meant as a folder."""
    return name.startswith((".", "~", "/", "\\")) or "\\" in name or name.count("/") > 1
