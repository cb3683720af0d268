import json
import random

import pytest

from resid.corpus.lens import LensReading
from resid.corpus.memory import MemoryReading
from resid.corpus.norms import NormsReading
from resid.corpus.plan import Plan
from resid.corpus.running import run

READINGS = {"lens": LensReading, "norms": NormsReading, "memory": MemoryReading}


def make_texts(n=14, seed=0):
    """Documents of a few to some hundred tokens for the tiny model, whose context is 32."""
    generator = random.Random(seed)
    words = ["the", " the", " is", " c", "the the", " it?", "é", " x9", "\n"]
    return ["".join(generator.choices(words, k=generator.randint(1, 60))) for _ in range(n)]


@pytest.fixture(scope="session")
def texts():
    return make_texts()


@pytest.fixture(scope="session")
def corpus_file(tmp_path_factory, texts):
    """The texts as .jsonl, with an empty document and two lines that cannot be read."""
    file = tmp_path_factory.mktemp("corpus") / "text.jsonl"
    lines = [json.dumps({"text": text}) for text in texts]
    lines[5:5] = ["{broken", json.dumps({"text": ""}), json.dumps({"title": "none"})]
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return file


@pytest.fixture
def plan(corpus_file):
    """A plan over that file in small batches: several to a packet, several packets."""

    def make(**changes):
        return Plan(**{"files": (str(corpus_file),), "batch_tokens": 24} | changes)

    return make


@pytest.fixture
def read(tiny):
    """The result of one analysis, and its reading."""

    def go(kind, plan, model=tiny, world=None, on_step=lambda step: None, **options):
        reading = READINGS[kind](model, **options)
        return run(model, reading, plan, world=world, on_step=on_step)

    return go
