"""Text for the bundled model: what it is taught, and what is kept from it to examine it with.

A document depends only on the random generator that it is given and on the stretch of training
that it is for, so a seed gives the same corpus everywhere.
"""

import random
import re
import zlib
from pathlib import Path

from mini_schedule import STRETCHES, Stretch
from mini_sources import WORDNET, Country, countries, wordnet
from mini_templates import (
    BEGINNINGS,
    CAPITAL_PHRASINGS,
    CAPITAL_PHRASINGS_LATER,
    COLOURS,
    ENDINGS,
    HELD_OUT,
    HELD_OUT_PHRASINGS,
    HELD_OUT_RELATIONS,
    KINDS,
    LANDMARK_PHRASINGS,
    LANDMARKS,
    LANGUAGES,
    LOOKS,
    MEN,
    MIDDLES,
    MIDDLES_CLOSER,
    MIDDLES_LATER,
    MOODS,
    NAMES,
    NEW_OBJECTS,
    NEW_PLACES,
    NOUNS,
    OBJECTS,
    OPPOSITES,
    OTHER_PHRASINGS,
    OTHER_PHRASINGS_LATER,
    PERIODS,
    PLACES,
    ROUND_AND_ROUND,
    SEQUENCES,
    TWO_NAMES,
    WELL_KNOWN,
    WOMEN,
)  # fmt: skip

END = "<|endoftext|>"


def kept_back(*parts: str) -> bool:
    """Whether a combination is reserved for the evaluation: one in ten, whatever the order."""
    return zlib.crc32("|".join(sorted(parts)).encode()) % 10 == 0


def capitalise(text: str) -> str:
    """The text with a capital first letter and the rest as it was."""
    return text[:1].upper() + text[1:]


class Corpus:
    """Documents by source; with `held_out`, only what training never sees."""

    def __init__(self, folder: Path = WORDNET, held_out: bool = False):
        """Read the two packages once."""
        self.countries = countries()
        self.weights = [3 if iso in WELL_KNOWN else 1 for iso in self.countries]
        entries = wordnet(folder)
        self.entries = [
            text for text in entries if (zlib.crc32(text.encode()) % 50 == 0) == held_out
        ]
        self.words = sorted(
            {w for text in entries[::7] for w in re.findall(r"\b[a-z]{3,9}\b", text)}
        )
        self.others = [w for w in self.words if w not in NEW_OBJECTS + NEW_PLACES]
        self.held_out = held_out
        self.turn_to(STRETCHES[-1 if held_out else 0])
        self.makers = {
            "countries": self.facts, "two names": self.two_names, "sequences": self.sequence,
            "stories": self.story, "repeats": self.repeat, "wordnet": self.definition,
        }  # fmt: skip

    def turn_to(self, stretch: Stretch) -> None:
        """From now on the documents of this stretch of training."""
        self.shares, self.repeated_rows = stretch.shares, stretch.repeated_rows
        self.wider, self.closer = stretch.wider, stretch.closer
        self.on_capitals, self.on_others = CAPITAL_PHRASINGS, OTHER_PHRASINGS
        if stretch.wider:
            # Often: what "X's" asks for is learnt slowly.
            self.on_capitals += CAPITAL_PHRASINGS_LATER * 4
            self.on_others += HELD_OUT_RELATIONS * 3
        if stretch.closer:
            self.on_others += OTHER_PHRASINGS_LATER * 3

    def document(self, rng: random.Random, source: str | None = None) -> tuple[str, str]:
        """One document and its source, drawn by the sources' shares unless one is named."""
        source = source or rng.choices(list(self.shares), self.shares.values())[0]
        return self.makers[source](rng), source

    def state(self, rng: random.Random, phrasing: str, country: Country) -> str | None:
        """One sentence about a country, or None where it has none or training must not see it."""
        examined = phrasing in HELD_OUT_PHRASINGS + HELD_OUT_RELATIONS
        if examined and (country.iso in HELD_OUT) != self.held_out:
            return None
        if "{l}" in phrasing and country.iso not in LANGUAGES:
            return None
        neighbours = country.neighbours
        if "{b}" in phrasing and not neighbours:
            return None
        return phrasing.format(
            c=country.with_article, C=capitalise(country.with_article), k=country.capital,
            m=country.currency, n=country.continent, l=LANGUAGES.get(country.iso),
            p=rng.choice(NAMES),
            b=self.countries[rng.choice(neighbours)].with_article if neighbours else None,
        )  # fmt: skip

    def country(self, rng: random.Random) -> Country:
        """A country, a well-known one more often."""
        return self.countries[rng.choices(list(self.countries), self.weights)[0]]

    def facts(self, rng: random.Random) -> str:
        """Five sentences on countries: on one, on several, or one phrasing on several."""
        if self.held_out:
            pool = [self.countries[iso] for iso in HELD_OUT]
            asked = [(rng.choice(HELD_OUT_PHRASINGS), country) for country in rng.sample(pool, 5)]
            return " ".join(self.state(rng, phrasing, country) for phrasing, country in asked)
        shape = rng.choices(("one", "many", "list"), (3, 5, 2))[0]
        country, phrasing, said = self.country(rng), None, []
        while len(said) < 5:
            if shape == "many" and rng.random() < 0.06:
                landmark = rng.choice(list(LANDMARKS))
                place = {"o": landmark, "k": LANDMARKS[landmark], "p": rng.choice(NAMES)}
                said.append(rng.choice(LANDMARK_PHRASINGS).format(**place))
                continue
            if shape != "one":
                country = self.country(rng)
            if shape != "list" or phrasing is None:
                phrasing = rng.choice(self.on_capitals if rng.random() < 0.7 else self.on_others)
            sentence = self.state(rng, phrasing, country)
            if sentence and sentence not in said:
                said.append(sentence)
        return " ".join(said)

    def two_names(self, rng: random.Random) -> str:
        """One or two sentences in which the name said once receives the object."""
        return " ".join(
            "".join(self.giving(rng, rng.choice(TWO_NAMES))[:3]) for _ in range(rng.randint(1, 2))
        )

    def filler(self, rng: random.Random, usual: list[str]) -> str:
        """An object or a place; in the last stretch any word half of the time."""
        any_word = self.wider and not self.held_out and rng.random() < 0.5
        return rng.choice(self.others if any_word else usual)

    def giving(
        self,
        rng: random.Random,
        phrasing: str,
        places: list[str] = PLACES,
        objects: list[str] = OBJECTS,
    ) -> tuple[str, str, str, str]:
        """A two-names sentence: what precedes the receiver, the receiver, the rest; the giver."""
        first, second = rng.sample(NAMES, 2)
        while kept_back(first, second) != self.held_out:
            first, second = rng.sample(NAMES, 2)
        giver, receiver = rng.sample([first, second], 2)
        words = {
            "a": first, "b": second, "s": giver, "place": self.filler(rng, places),
            "object": self.filler(rng, objects),
        }  # fmt: skip
        before = phrasing.removesuffix(" {io}.").format(**words)
        after = rng.choice((".", ".", f". {receiver} said thank you to {giver}."))
        return before, f" {receiver}", after, f" {giver}"

    def sequence(self, rng: random.Random) -> str:
        """Days, months, letters or numbers in their order, or what comes after one of them."""
        lines = []
        for _ in range(rng.randint(1, 3)):
            name = rng.choice(list(SEQUENCES))
            items = SEQUENCES[name]
            if name in PERIODS and rng.random() < 0.3:
                where = rng.randrange(len(items) - 1)
                lines.append(
                    rng.choice(("The {w} after {x} is {y}.", "After {x} comes {y}.")).format(
                        w=PERIODS[name], x=items[where], y=items[where + 1]
                    )
                )
                continue
            start = rng.randrange(len(items) - 3)
            if name in ROUND_AND_ROUND:
                items, start = items * 3, rng.randrange(len(items))
            elif rng.random() < 0.15:
                items = items[::-1]
            count = rng.randint(4, 14)
            lines.append(rng.choice((" ", ", ", ", ")).join(items[start : start + count]))
        return "\n".join(lines)

    def story(self, rng: random.Random) -> str:
        """A short story, sentences on singular and plural, or a few everyday facts."""
        kind = rng.random()
        if kind < 0.3:
            return " ".join("".join(self.agreeing(rng)) for _ in range(rng.randint(2, 5)))
        if kind < 0.45:
            return " ".join(self.everyday(rng) for _ in range(rng.randint(2, 5)))
        people, middles = self.people(rng), rng.sample(MIDDLES, rng.randint(2, 4))
        people |= self.props(rng, people)
        if self.wider and not self.held_out:  # Held out are the lines that all stretches know.
            middles[1:1] = rng.sample(MIDDLES_LATER, 2)
            rng.shuffle(middles)
        if self.closer and not self.held_out:
            # In front of the others often: there nobody else has been named.
            middles.insert(rng.choice((0, len(middles))), rng.choice(MIDDLES_CLOSER))
        lines = (rng.choice(BEGINNINGS), *middles, rng.choice(ENDINGS))
        return " ".join(self.told(rng, line, people) for line in lines)

    def people(self, rng: random.Random) -> dict[str, str]:
        """A hero, a friend, and the hero's pronouns, as the lines of a story name them."""
        he = rng.random() < 0.5
        name, friend = rng.choice(MEN if he else WOMEN), rng.choice(NAMES)
        while friend == name:
            friend = rng.choice(NAMES)
        pronouns = ("He", "he", "him", "His", "his") if he else ("She", "she", "her", "Her", "her")
        spoken = dict(zip(("He", "he", "him", "His", "his"), pronouns, strict=True))
        return {"N": name, "M": friend, "person": "man" if he else "woman", **spoken}

    def props(self, rng: random.Random, people: dict[str, str]) -> dict[str, str]:
        """An object and a place; from the last stretch on one combination in ten is kept back."""
        thing, place = rng.choice(OBJECTS), rng.choice(PLACES)
        while self.wider and kept_back(people["N"], people["M"], thing, place) != self.held_out:
            thing, place = rng.choice(OBJECTS), rng.choice(PLACES)
        return {"object": thing, "place": place}

    def told(self, rng: random.Random, line: str, fixed: dict[str, str]) -> str:
        """A line of a story, what is not fixed drawn anew."""
        return line.format(
            **fixed, look=rng.choice(LOOKS), mood=rng.choice(MOODS), mood2=rng.choice(MOODS),
            noun=rng.choice(list(NOUNS)), plural=rng.choice(list(NOUNS.values())),
            kin=rng.choice(("mother", "father", "sister", "brother", "friend")),
            day=rng.choice(SEQUENCES["days"]),
            number=rng.choice(SEQUENCES["number words"][1:10]), city=self.country(rng).capital,
        )  # fmt: skip

    def agreeing(self, rng: random.Random) -> tuple[str, str, str]:
        """A sentence whose verb must agree with a noun behind another: before, the verb, after."""
        first, second = rng.sample(list(NOUNS), 2)
        while kept_back(first, second) != self.held_out:
            first, second = rng.sample(list(NOUNS), 2)
        plural = rng.random() < 0.5
        subject = NOUNS[first] if plural else first
        other = NOUNS[second] if rng.random() < 0.5 else second
        link = rng.choice(("near", "behind", "next to", "in front of"))
        verb = rng.choice((" is", " is", " was", " has been"))
        plurals = {" is": " are", " was": " were", " has been": " have been"}
        return (
            f"The {subject} {link} the {other}",
            plurals[verb] if plural else verb,
            f" {rng.choice(LOOKS)}.",
        )

    def everyday(self, rng: random.Random) -> str:
        """An opposite, a colour, a kind or a plural."""
        which = rng.randrange(4)
        if which == 0:
            start = rng.randrange(0, len(OPPOSITES), 2)
            pair = OPPOSITES[start : start + 2]
            return "The opposite of {} is {}.".format(*rng.sample(pair, 2))
        if which == 1:
            thing = rng.choice(list(COLOURS))
            return f"The colour of {thing} is {COLOURS[thing]}."
        if which == 2:
            kind = rng.choice(list(KINDS))
            thing = rng.choice(KINDS[kind].split())
            return f"{thing.capitalize()} is a kind of {kind}."
        noun = rng.choice(list(NOUNS))
        return f"One {noun}, two {NOUNS[noun]}."

    def repeat(self, rng: random.Random) -> str:
        """Random words, two to four times in the same order."""
        length = rng.randint(4, 14)
        words = rng.sample(NAMES if rng.random() < 0.2 else self.words, length)
        return " ".join(words * rng.randint(2, 4))

    def definition(self, rng: random.Random) -> str:
        """Two dictionary entries."""
        return "\n".join(rng.choice(self.entries) for _ in range(2))


def random_repeats(rng: random.Random, length: int, n_ids: int) -> list[int]:
    """A row that says one random sequence of token ids again and again."""
    block = [rng.randrange(n_ids) for _ in range(rng.randint(8, max(9, length // 2)))]
    return (block * (length // len(block) + 1))[:length]


def training_row(corpus: Corpus, tokenizer, rng: random.Random, length: int) -> list[int]:
    """Documents packed into one row of token ids.

    A row mostly begins where a document does, because users' prompts begin at position 0 and get no
    BOS; one in eight begins with END, for those who ask for a BOS; one in ten inside a document.
    """
    end = tokenizer.token_to_id(END)
    if rng.random() < corpus.repeated_rows:
        return random_repeats(rng, length, end)
    start = rng.random()
    row = [end] if start < 0.125 else []
    while len(row) < length:
        text, _ = corpus.document(rng)
        ids = tokenizer.encode(text).ids
        if not row and start > 0.9:
            ids = ids[rng.randrange(len(ids)) :]
        row += [*ids, end]
    return row[:length]
