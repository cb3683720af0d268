"""What the bundled model is asked, and what it should say: written to a file beside this one.

    python scripts/mini_questions.py        # after a change of what is held out

The file lets anybody measure the model without the packages that its training text comes from. In
it a group of questions is a list of [prompt, answer] or [prompt, answer, rival]; `documents` are
texts by source, drawn from what training never sees.
"""

import json
import random
import re
from itertools import cycle
from pathlib import Path

from mini_corpus import Corpus, capitalise
from mini_sources import Country
from mini_templates import (
    BEGINNINGS,
    CAPITAL_PHRASINGS,
    HELD_OUT,
    HELD_OUT_PHRASINGS,
    HELD_OUT_RELATIONS,
    LANGUAGES,
    MEN,
    NEVER_SAID,
    NEW_OBJECTS,
    NEW_PLACES,
    NOUNS,
    OBJECTS,
    PLACES,
    ROUND_AND_ROUND,
    SEQUENCES,
    TWO_NAMES,
    WOMEN,
)  # fmt: skip

QUESTIONS = Path(__file__).with_suffix(".json")
PLURALS = {" is": " are", " was": " were", " has": " have"}
RIVALS = PLURALS | {plural: single for single, plural in PLURALS.items()}
# Lines that do not give the hero's pronoun away.
NEUTRAL = [line for line in BEGINNINGS if "{N}" in line and not re.search("{[Hh](e|is|im)}", line)]
ABOUT_A_PAIR = " After that, {N} and {M} were friends."
ABOUT_THINGS = " There were many {plural} in the {place}, and they were {look}."
BEFORE_A_PRONOUN = (" Then", " The next day,", " So", " In the end, {N} was {mood} and")

Question = tuple[str, ...]


def about(country: Country, phrasing: str) -> Question | None:
    """A phrasing without its last words, and these; None where there is no such fact."""
    question, answer = re.fullmatch(r"(.*) \{(\w)\}\.", phrasing).groups()
    facts = {
        "k": country.capital,
        "n": country.continent,
        "m": country.currency,
        "l": LANGUAGES.get(country.iso),
    }
    if facts[answer] is None:
        return None
    name = country.with_article
    return question.format(c=name, C=capitalise(name), p="Mary"), f" {facts[answer]}"


def facts(corpus: Corpus) -> dict[str, list[Question]]:
    """Capitals, continents, currencies and languages, in phrasings held out and others."""
    held_out = [corpus.countries[iso] for iso in HELD_OUT]

    def ask(phrasings: tuple[str, ...], answer: str) -> list[Question]:
        wanted = [p for p in phrasings if p.endswith(f"{{{answer}}}.")]
        asked = (about(country, phrasing) for phrasing in wanted for country in held_out)
        return [question for question in asked if question]

    seen = cycle(p for p in CAPITAL_PHRASINGS[2:] if p.endswith("{k}.") and "{c}" in p.lower())
    first, second = ((phrasing,) for phrasing in HELD_OUT_PHRASINGS)
    return {
        "capital after `The capital of X is`, 27 countries held out": ask(first, "k"),
        "capital after `X's capital is`, 27 countries held out": ask(second, "k"),
        "capital of 195 countries, phrasings seen in training": [
            about(country, next(seen)) for country in corpus.countries.values() for _ in range(2)
        ],
        "continent, phrasings held out for 27 countries": ask(HELD_OUT_RELATIONS, "n"),
        "currency, phrasings held out for 27 countries": ask(HELD_OUT_RELATIONS, "m"),
        "language, phrasings held out for 22 countries": ask(HELD_OUT_RELATIONS, "l"),
        "capital, phrasings that no text contained": ask(NEVER_SAID, "k"),
        "continent, phrasings that no text contained": ask(NEVER_SAID, "n"),
        "currency, phrasings that no text contained": ask(NEVER_SAID, "m"),
        "language, phrasings that no text contained": ask(NEVER_SAID, "l"),
    }


def names(corpus: Corpus, rng: random.Random) -> dict[str, list[Question]]:
    """Who receives the object: the receiver against the giver."""

    def ask(places: list[str], objects: list[str]) -> list[Question]:
        pieces = [corpus.giving(rng, TWO_NAMES[i % 16], places, objects) for i in range(240)]
        return [(before, receiver, giver) for before, receiver, _, giver in pieces]

    return {
        "two names, pairs held out": ask(PLACES, OBJECTS),
        "two names, pairs held out, objects and places never in such sentences": ask(
            NEW_PLACES, NEW_OBJECTS
        ),
    }


def sequences() -> list[Question]:
    """The next item after four, everywhere in every sequence."""
    found = []
    for name, items in SEQUENCES.items():
        circle = items * 2 if name in ROUND_AND_ROUND else items
        for start in range(len(items) if name in ROUND_AND_ROUND else len(items) - 4):
            found.append((", ".join(circle[start : start + 4]) + ",", f" {circle[start + 4]}"))
    return found


def agreement(corpus: Corpus, rng: random.Random) -> Question:
    """A verb behind two nouns, a pair of them held out."""
    before, verb, _ = corpus.agreeing(rng)
    verb = f" {verb.split()[0]}"
    return before, verb, RIVALS[verb]


def in_stories(corpus: Corpus, rng: random.Random) -> dict[str, list[Question]]:
    """Pronouns and numbers behind the beginnings of stories, casts and props held out."""
    pronouns, numbers = [], []
    for _ in range(200):
        people = corpus.people(rng)
        while (people["N"] in WOMEN) == (people["M"] in WOMEN):
            people = corpus.people(rng)
        people |= corpus.props(rng, people)

        def tell(*lines: str, people: dict[str, str] = people) -> str:
            return corpus.told(rng, "".join(lines), people)

        beginning = rng.choice(NEUTRAL)
        between = rng.choice((ABOUT_A_PAIR, ABOUT_THINGS))
        she, he = (" she", " he") if people["N"] in WOMEN else (" he", " she")
        pronouns.append((tell(beginning, between, rng.choice(BEFORE_A_PRONOUN)), she, he))
        kind = len(numbers) % 4
        if kind < 2:
            before, verb, rival = agreement(corpus, rng)
            numbers.append((f"{tell(beginning)} {before}", verb, rival))
        elif kind == 2:
            many = ABOUT_THINGS.removesuffix(" were {look}.")
            numbers.append((tell(beginning, many), " were", " was"))
        else:
            noun = rng.choice(list(NOUNS))
            which = [f"{tell(beginning)} The {noun}", " was", " were"]
            if rng.random() < 0.5:
                which = [f"{tell(beginning)} The {NOUNS[noun]}", " were", " was"]
            numbers.append(tuple(which))
    return {"he/she in stories, casts held out": pronouns, "was/were, is/are in stories": numbers}


def questions(corpus: Corpus, rng: random.Random) -> dict[str, list[Question]]:
    """Every group of questions, by what it measures."""
    return {
        **facts(corpus),
        **names(corpus, rng),
        "next day, month, letter or number after four": sequences(),
        "is/are across another noun, pairs held out": [agreement(corpus, rng) for _ in range(200)],
        "he/she after a name": [
            (f"{name} was very tired, so", *((" she", " he") if name in WOMEN else (" he", " she")))
            for name in WOMEN + MEN
        ],
        **in_stories(corpus, rng),
    }


def main() -> None:
    """Write the file."""
    corpus, rng = Corpus(held_out=True), random.Random("evaluation")
    asked = questions(corpus, rng)
    documents = {
        source: [corpus.document(rng, source)[0] for _ in range(60)] for source in corpus.makers
    }
    QUESTIONS.write_text(
        f'{{"questions": {lines(asked)},\n"documents": {lines(documents)}}}\n', encoding="utf-8"
    )


def lines(groups: dict[str, list]) -> str:
    """JSON with one question or document a line."""
    written = (
        f"{json.dumps(name)}: [\n" + ",\n".join(map(json.dumps, group)) + "\n]"
        for name, group in groups.items()
    )
    return "{\n" + ",\n".join(written) + "\n}"


if __name__ == "__main__":
    main()
