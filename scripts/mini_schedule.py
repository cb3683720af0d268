"""How the bundled model is trained: stretches, each with its learning rate and its diet of text."""

import math
from typing import NamedTuple


class Stretch(NamedTuple):
    """A part of the training: from batch `first` on, until the next one's."""

    first: int
    rate: float
    begins: float  # share of the rate that the warm-up begins with
    warm_up: int
    hold: int  # batches until the rate falls
    falls_until: int  # where the cosine would end; the next stretch may begin before
    shares: dict[str, float]  # of the documents, by source
    repeated_rows: float  # share of the rows that are one random sequence, again and again
    wider: bool = False  # more phrasings, any word as an object or a place
    closer: bool = False  # who was just named, in one sentence; more on "X's language"


# Facts come first, by themselves. Copying from the row does not come at their rate and share, so it
# gets a diet of its own, and the rate rises again. Then what was measured to be weak: "X's capital
# is", and objects and places never met. Last what that had unlearnt: the pronoun of a sole name.
STRETCHES = (
    Stretch(
        0, 1.5e-3, 1 / 150, 149, 150, 2600,
        {"countries": 0.28, "two names": 0.11, "sequences": 0.07, "stories": 0.20,
         "repeats": 0.07, "wordnet": 0.27}, 0.05,
    ),
    Stretch(
        1719, 1.2e-3, 0.4, 50, 500, 1200,
        {"countries": 0.17, "two names": 0.30, "sequences": 0.05, "stories": 0.18,
         "repeats": 0.15, "wordnet": 0.15}, 0.08,
    ),
    Stretch(
        2919, 8e-4, 0.2, 20, 350, 800,
        {"countries": 0.34, "two names": 0.17, "sequences": 0.04, "stories": 0.24,
         "repeats": 0.12, "wordnet": 0.09}, 0.10, wider=True,
    ),
    Stretch(
        3719, 5e-4, 0.2, 20, 120, 320,
        {"countries": 0.34, "two names": 0.13, "sequences": 0.04, "stories": 0.30,
         "repeats": 0.10, "wordnet": 0.09}, 0.10, wider=True, closer=True,
    ),
)  # fmt: skip
BATCHES = STRETCHES[-1].first + STRETCHES[-1].falls_until


def stretch_at(place: float) -> Stretch:
    """The stretch that this place on the schedule, counted in batches, belongs to."""
    return [stretch for stretch in STRETCHES if stretch.first <= place][-1]


def learning_rate(place: float) -> float:
    """A linear warm-up, a plateau, and a cosine down to a fiftieth; in each stretch anew."""
    stretch = stretch_at(place)
    later = place - stretch.first
    if later < stretch.hold:
        warm = stretch.begins + (1 - stretch.begins) * later / stretch.warm_up
        return stretch.rate * min(1.0, warm)
    progress = min(1.0, (later - stretch.hold) / (stretch.falls_until - stretch.hold))
    return stretch.rate * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * progress)))
