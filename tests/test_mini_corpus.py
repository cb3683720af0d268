"""What the bundled model is examined with is kept from its training."""

import json
import random
from pathlib import Path

import mini_corpus
import pytest
from mini_corpus import Corpus, training_row
from mini_evaluation import QUESTIONS
from mini_schedule import BATCHES, STRETCHES, learning_rate, stretch_at
from mini_sources import Country
from mini_templates import HELD_OUT, NEVER_SAID, NEW_OBJECTS, NEW_PLACES, NOUNS, TWO_NAMES
from tokenizers import Tokenizer

MINI = Path(__file__).resolve().parent.parent / "resid" / "bundled" / "mini"
ASKED = json.loads(QUESTIONS.read_text(encoding="utf-8"))["questions"]
# Lists take five countries that are not held out: with fewer they would never be full.
FEW = {
    iso: Country(iso, name, capital, currency, continent, ("DE", "ES"))
    for iso, name, capital, currency, continent in (
        ("FR", "France", "Paris", "euro", "Europe"),
        ("JP", "Japan", "Tokyo", "yen", "Asia"),
        ("PE", "Peru", "Lima", "sol", "South America"),
        ("DE", "Germany", "Berlin", "euro", "Europe"),
        ("KR", "South Korea", "Seoul", "won", "Asia"),
        ("ES", "Spain", "Madrid", "euro", "Europe"),
        ("DK", "Denmark", "Copenhagen", "krone", "Europe"),
        ("BR", "Brazil", "Brasilia", "real", "South America"),
        ("CZ", "Czechia", "Prague", "koruna", "Europe"),
    )
}
ENTRIES = [f"{a}{b}: a word of {a} and of {b}." for a in NOUNS for b in NOUNS]


@pytest.fixture
def corpora(monkeypatch):
    """Two corpora without the packages: for training, and held out."""
    monkeypatch.setattr(mini_corpus, "countries", lambda: FEW)
    monkeypatch.setattr(mini_corpus, "wordnet", lambda folder: ENTRIES)
    monkeypatch.setattr(mini_corpus, "HELD_OUT", ["FR", "JP", "PE"])
    return Corpus(), Corpus(held_out=True)


def documents(corpus, source, stretch, count=2000):
    corpus.turn_to(stretch)
    rng = random.Random(1)
    return [corpus.document(rng, source)[0] for _ in range(count)]


@pytest.mark.parametrize("stretch", STRETCHES)
def test_no_question_on_a_country_is_answered_in_training(corpora, stretch):
    text = "\n".join(documents(corpora[0], "countries", stretch))
    asked = [
        prompt
        for group, questions in ASKED.items()
        if "held out for" in group or ("held out" in group and group.startswith("capital"))
        for prompt, *_ in questions
    ]
    named = [p for p in asked if any(FEW[iso].name in p for iso in ("FR", "JP", "PE"))]
    assert len(named) > 20 and "The capital of France is" in named
    assert [prompt for prompt in named if prompt in text] == []
    # Of other countries the first two are said from the beginning, and all in the last stretch.
    others = [p.replace("France", "Germany") for p in named if "France" in p]
    said = [prompt in text for prompt in others]
    assert all(said) if stretch.wider else sum(said) == 2


def test_some_phrasings_are_never_said(corpora):
    text = "\n".join(documents(corpora[0], "countries", STRETCHES[-1]))
    beginnings = [p.split("{c}")[0] for p in NEVER_SAID if p.startswith("The ")]
    assert len(beginnings) == 6
    assert [b for b in beginnings if b in text] == []


@pytest.mark.parametrize("stretch", STRETCHES)
def test_no_new_object_or_place_and_no_pair_held_out_is_in_a_sentence_on_two_names(
    corpora, stretch
):
    training = documents(corpora[0], "two names", stretch, 4000)
    new = {f" {word}{end}" for word in NEW_OBJECTS + NEW_PLACES for end in (" ", ",", ".")}
    assert [text for text in training if any(word in text for word in new)] == []
    rng = random.Random(2)
    for held_out, corpus in enumerate(corpora):
        for phrasing in TWO_NAMES:
            _, receiver, _, giver = corpus.giving(rng, phrasing)
            assert mini_corpus.kept_back(receiver[1:], giver[1:]) == held_out


def test_casts_are_kept_back_in_the_last_stretch(corpora):
    rng = random.Random(3)
    for held_out, corpus in enumerate(corpora):
        corpus.turn_to(STRETCHES[-1])
        for _ in range(200):
            people = corpus.people(rng)
            props = corpus.props(rng, people).values()
            assert mini_corpus.kept_back(people["N"], people["M"], *props) == held_out


@pytest.mark.parametrize("stretch", STRETCHES)
def test_the_question_on_a_sole_name_is_in_no_story(corpora, stretch):
    """`Mary was very tired, so` asks for the pronoun; stories have it behind other words."""
    text = "\n".join(documents(corpora[0], "stories", stretch))
    assert "was very tired." in text and "was very tired, so" not in text
    assert ("because he could not sleep" in text) == stretch.closer


def test_dictionary_entries_are_either_trained_on_or_held_out(corpora):
    training, held_out = (set(corpus.entries) for corpus in corpora)
    assert training and held_out and not training & held_out


def test_a_row_depends_on_its_random_generator_alone(corpora):
    tokenizer = Tokenizer.from_file(str(MINI / "tokenizer.json"))
    corpus = corpora[0]
    corpus.turn_to(STRETCHES[1])
    first = training_row(corpus, tokenizer, random.Random("batch 0 7"), 129)
    training_row(corpus, tokenizer, random.Random("other"), 129)
    assert training_row(corpus, tokenizer, random.Random("batch 0 7"), 129) == first
    assert len(first) == 129 and max(first) < 4096


def test_the_rate_warms_up_holds_and_falls_in_every_stretch():
    for stretch, end in zip(STRETCHES, [*(s.first for s in STRETCHES[1:]), BATCHES], strict=True):
        rates = [learning_rate(place) for place in range(stretch.first, end)]
        assert rates[0] == pytest.approx(stretch.rate * stretch.begins)
        assert max(rates) == pytest.approx(stretch.rate) and rates[-1] < rates[stretch.hold]
        assert stretch_at(stretch.first) is stretch_at(end - 0.5) is stretch


def test_the_questions_hold_out_the_countries_named():
    names = "capital after `The capital of X is`, 27 countries held out"
    assert len(ASKED[names]) == len(HELD_OUT) == 27
