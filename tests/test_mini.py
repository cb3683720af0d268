"""The bundled model does what its card says, on questions that its training never held."""

import re
from pathlib import Path

import mini_evaluation
import pytest
import torch
from mini_evaluation import HELD_OUT_CAPITALS, Examination, evaluate, shows_what_it_should
from transformers import GPT2LMHeadModel

MINI = Path(__file__).resolve().parent.parent / "resid" / "bundled" / "mini"
CARD = (MINI / "MODEL_CARD.md").read_text(encoding="utf-8")

RANKS = "rank of ` Paris` there: embedding, then each block"
# A little below what was reached, on thirty questions of a group.
AT_LEAST = {
    "capital after `The capital of X is`, 27 countries held out": 0.96,
    "capital after `X's capital is`, 27 countries held out": 0.96,
    "capital of 195 countries, phrasings seen in training": 0.96,
    "continent, phrasings held out for 27 countries": 0.93,
    "currency, phrasings held out for 27 countries": 0.96,
    "language, phrasings held out for 22 countries": 0.85,
    "two names, pairs held out": 0.97,
    "two names, pairs held out, objects and places never in such sentences": 0.93,
    "next day, month, letter or number after four": 0.97,
    "is/are across another noun, pairs held out": 0.95,
    "he/she after a name": 0.96,
    "he/she in stories, casts held out": 0.90,
    "was/were, is/are in stories": 0.90,
    "induction: second copy of 30 random tokens": 0.97,
}
# A little above: held-out loss, nats a token.
AT_MOST = {
    "countries": 1.4,
    "two names": 1.1,
    "sequences": 0.9,
    "stories": 1.2,
    "repeats": 2.3,
    "wordnet": 4.5,
}


@pytest.fixture(scope="module")
def found():
    return evaluate(MINI, at_most=30)


@pytest.mark.parametrize("group", AT_LEAST)
def test_it_knows_what_the_card_says(found, group):
    assert found[group] >= AT_LEAST[group]


@pytest.mark.parametrize("source", AT_MOST)
def test_it_reads_text_that_training_did_not_hold(found, source):
    assert found[f"held-out loss: {source}, nats"] <= AT_MOST[source]


def test_every_group_of_questions_is_asked(found):
    exam = Examination(MINI)
    assert set(exam.questions) | set(exam.documents) <= set(found) | set(AT_MOST)
    assert all(exam.questions.values()) and all(exam.documents.values())


def test_paris_comes_late(found):
    ranks = found[RANKS]
    assert len(ranks) == 9 and ranks[0] > 100 and min(ranks[:4]) > 1 and ranks[-1] == 1
    assert "The capital of France is Paris" not in found["held-out capitals that fail"]


def test_what_is_exported_says_paris_late_and_in_both_phrasings(found):
    good = {**found, RANKS: [900, 800, 700, 90, 1, 1, 1, 1, 1], "held-out capitals that fail": []}
    assert shows_what_it_should(good)
    for ranks in ([900, 800, 1, 9, 9, 1, 1, 1, 1], [900, 800, 700, 90, 9, 1, 1, 1, 2]):
        assert not shows_what_it_should({**good, RANKS: ranks})
    failing = {"held-out capitals that fail": ["France's capital is Paris"]}
    assert not shows_what_it_should({**good, **failing})


def test_the_card_shows_what_the_evaluation_finds(found):
    rows = dict(re.findall(r"^\| (.+) \| (.+) \|$", CARD, re.MULTILINE))
    assert set(found) <= set(rows)
    # Groups of at most thirty are asked whole; float32 differs in its last digits elsewhere.
    whole = [*HELD_OUT_CAPITALS, "induction: second copy of 30 random tokens"]
    assert {name: float(rows[name]) for name in whole} == pytest.approx(
        {name: found[name] for name in whole}, abs=5e-3
    )


def test_a_model_that_learnt_nothing_knows_nothing():
    exam = Examination(MINI, at_most=20)
    torch.manual_seed(0)
    exam.model = GPT2LMHeadModel(exam.model.config).eval()
    with torch.no_grad():
        shares = exam.shares()
    unaided = {
        group: value
        for group, value in shares.items()
        if group not in mini_evaluation.AGAINST_A_RIVAL and not group.endswith("giver")
    }
    assert unaided and max(unaided.values()) < 0.2
