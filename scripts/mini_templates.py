"""The sentences of the bundled model's training text, and the words that fill them."""


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
# From the third stretch of training on; " capital is" was the weak point.
CAPITAL_PHRASINGS_LATER = (
    "{C}'s capital city is {k}.",
    "{C}'s capital, {k}, is in {n}.",
    "{p} saw {k}, {c}'s capital.",
    "To see {c}'s capital, {p} went to {k}.",
    "{p} lives in {k}, {c}'s capital.",
    "{p} went to {c}'s capital, {k}.",
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
# From the fourth stretch on.
OTHER_PHRASINGS_LATER = (
    "{C}'s language, {l}, is spoken in {k}.",
    "{p} learnt {c}'s language, {l}.",
    "{p} speaks {l}, {c}'s language.",
    "{C}'s continent, {n}, is large.",
)
# From the third stretch on, and never of the countries held out: the evaluation asks these in just
# these words.
HELD_OUT_RELATIONS = (
    "{C}'s continent is {n}.",
    "{C} is part of the continent of {n}.",
    "The currency used in {c} is the {m}.",
    "In {c}, you pay with the {m}.",
    "{C}'s language is {l}.",
    "The main language of {c} is {l}.",
)
# In no stretch and of no country: the evaluation alone says these.
NEVER_SAID = (
    "The capital city of the country {c} is {k}.",
    "The country {c} has a capital called {k}.",
    "The continent where {c} lies is {n}.",
    "{C} belongs to the continent of {n}.",
    "The money used in {c} is the {m}.",
    "The official currency of {c} is the {m}.",
    "The official language of {c} is {l}.",
    "Most people in {c} speak {l}.",
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
# Never given and never a place in the sentences below: the evaluation alone does that.
NEW_PLACES = words(
    "airport forest lake gym zoo island square court field factory palace harbor mountain tower "
    "cinema"
)
NEW_OBJECTS = words(
    "hammer shovel banana pear peach knife horse duck chair lemon basket candle guitar mirror bell "
    "ladder blanket sandwich spoon scarf"
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
# From the third stretch on: somebody else is there, and nothing says who is "she" or "he".
MIDDLES_LATER = (
    "{N} and {M} were old friends.", "{M} lived next to {N}.", "{N} met {M} at the {place}.",
    "{M} was very {mood2}.", "{N} gave a {object} to {M}.", "{M} had a {look} {noun}.",
)  # fmt: skip
# From the fourth stretch on: within a sentence the pronoun is that of who was just named.
MIDDLES_CLOSER = (
    "{N} was {mood} because {he} could not sleep.", "{N} said that {he} was {mood}.",
    "{N} was {mood}, and {he} went to the {place}.", "{N} smiled when {he} saw the {noun}.",
    "{N} could not find {his} {object}, so {he} bought a {object}.",
    "{N} had no {object}, so {he} went home.", "{N} was late, but {he} was not {mood}.",
)  # fmt: skip
ENDINGS = (
    "In the end, {N} was {mood} and {he} went home.", "{He} thanked {M} and went to bed.",
    "After that, {N} and {M} were friends.", "Then {he} closed the door and went to sleep.",
    "{N} never saw {his} {object} again.", "{He} smiled, because {he} was not {mood} any more.",
    "The next day, {he} went back to the {place}.", "And that is how {N} got {his} {object}.",
)  # fmt: skip
