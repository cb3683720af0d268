"""Any prompt, any option, any terminal: a result that holds, or an error in a few lines."""

import os
from pathlib import Path

import pytest
from hypothesis import strategies as st

from tests.fuzz.budget import LONG, TRIED, fuzz
from tests.fuzz.command_lines import (
    COMMANDS,
    HELP,
    LIGHT,
    Line,
    any_bytes,
    lines,
    misused_options,
    words,
)
from tests.fuzz.in_process import (
    check,
    check_file,
    check_json,
    contents,
    run,
    widest,
)
from tests.fuzz.option_table import cases

pytestmark = pytest.mark.usefixtures("loaded_once")

ENCODINGS = ("utf-8", "ascii", "latin-1", "cp1252", "cp437", "utf-16")
READ_A_PROMPT = {
    "lens": ["--top", "3", "--target", "id:7", "--follow", "--baseline"],
    "norms": [],
    "memory": ["--target", "id:7"],
    "attribute": ["--target", "id:7", "--heads", "--neurons", "1"],
    "record": ["-o", "out.safetensors"],
    "report": ["-o", "out.html", "--neurons", "1"],
    "lab block": [],
    "lab activations": [],
    "verify": ["--no-float64"],
}
FORMATS = ("table", "json", "csv")


# --- prompts --------------------------------------------------------------------------------------

prompts = st.one_of(
    words,
    st.text(max_size=12),
    st.text(st.characters(categories=["Mn", "Cf", "Cc", "Co", "Zs", "Zl", "Zp"]), max_size=6),
    st.binary(max_size=12),
    st.text("the is\x00\n\r", max_size=40),
    st.sampled_from(["a" * 32, "a" * 33, "x" * 100_000, "\n" * 20, "\ufeffthe", "the\r\n\n"]),
)


def spelled(name, prompt, how):
    """Words and standard input that give a prompt to a command, in the way that is asked for."""
    path = name.split()
    if how == "file" and name not in ("lab block", "lab activations", "verify"):
        return [*path, "--prompt-file", "given", *READ_A_PROMPT[name]], b""
    if how == "stdin" and name not in ("lab block", "lab activations", "verify"):
        return [*path, "-", *READ_A_PROMPT[name]], raw(prompt)
    word = os.fsdecode(raw(prompt).replace(b"\0", b""))
    if len(path) == 2 or name == "verify":
        return [*path, f"--prompt={word}", *READ_A_PROMPT[name]], b""
    if how == "against" and name == "report":
        return [*path, "the", f"--against={word}", *READ_A_PROMPT[name]], b""
    return [*path, *READ_A_PROMPT[name], "--", word], b"the is"


def raw(prompt):
    return prompt if isinstance(prompt, bytes) else prompt.encode("utf-8", "surrogateescape")


@fuzz(
    few=60,
    many=1500,
    name=st.sampled_from(sorted(READ_A_PROMPT)),
    prompt=prompts,
    how=st.sampled_from(["word", "word", "file", "stdin", "against"]),
    format=st.sampled_from(FORMATS),
    encoding=st.sampled_from(ENCODINGS),
)
def test_any_prompt(furnished, name, prompt, how, format, encoding):
    with furnished() as folder:
        (folder / "given").write_bytes(raw(prompt))
        line, stdin = spelled(name, prompt, how)
        printed = name not in ("record", "report")
        line[len(name.split()) : len(name.split())] = ["--format", format] * printed
        before = contents(folder)
        ended = run(line, folder=folder, stdin=stdin, encoding=encoding)
        check(ended)
        # Whatever a prompt is, it is no misuse of an option; but a word may not be UTF-8.
        assert ended.status in (0, 1, 2)
        assert ended.status != 2 or "not valid UTF-8" in ended.told
        if ended.status == 0 and printed and format == "json":
            check_json(ended.out, ended.status)
        made = contents(folder).items() - before.items()
        written = {"record": {"out.safetensors"}, "report": {"out.html"}}.get(name, set())
        assert {name for name, _ in made} == (set() if ended.status else written)


# --- options --------------------------------------------------------------------------------------


def ends_as_it_should(furnished, line, encoding):
    """Run a line, and hold how it ended and all that it wrote against what is known of it."""
    with furnished() as folder:
        before = contents(folder)
        ended = run(line.words, folder=folder, stdin=line.stdin, encoding=encoding)
        check(ended)
        if line.misused:
            assert ended.status == 2, ended
        after = contents(folder)
        touched = {name for name in after if before.get(name, "") != after[name]}
        assert set(before) <= set(after)
        if ended.status in (1, 2):
            # A run over text, and a race, are there to be gone on with.
            kept = ("safetensors", "race.json") if {"corpus", "race"} & {*line.path} else ()
            assert not [name for name in touched if Path(name).suffix and not name.endswith(kept)]
        elif not {*HELP} & {*line.words}:
            for name in touched:
                if "/" not in name and Path(name).suffix and after[name] is not None:
                    check_file(folder / name, ended.status)
            if line.given.get("format") == "json":
                check_json(ended.out, ended.status)
    return ended


@pytest.mark.parametrize("path", sorted(COMMANDS), ids=" ".join)
def test_every_option_with_every_value(furnished, path):
    """Usually those values that an option is there for, and at its edge, and some of all others."""
    table = [case for case in cases() if case.path == path]
    rare = [case for case in table if not case.meant]
    chosen = table if LONG else [case for case in table if case.meant] + rare[:: len(rare) // 20]
    reached = set()
    for i, case in enumerate(chosen):
        TRIED["test_every_option_with_every_value"] += 1
        words, encoding = case.words, ENCODINGS[i % len(ENCODINGS)]
        try:
            line = Line(path, words, case.misused, stdin=b"the is")
            ended = ends_as_it_should(furnished, line, encoding)
        except BaseException as error:
            error.args = (f"in {encoding}: {words!r}: {error}",)
            raise
        if ended.status == 0:
            reached.add(case.param.name)
    # Or the table would try what is refused, and nothing else.
    assert reached >= {case.param.name for case in table if case.meant}


@pytest.mark.parametrize("path", sorted(COMMANDS), ids=" ".join)
@fuzz(few=3, many=100, data=st.data(), encoding=st.sampled_from(ENCODINGS))
def test_any_options(furnished, path, data, encoding):
    ends_as_it_should(furnished, data.draw(lines(path)), encoding)


@fuzz(few=200, many=2500, line=misused_options(), encoding=st.sampled_from(ENCODINGS))
def test_any_value_of_another_kind(furnished, misused_folder, line, encoding):
    before = contents(misused_folder)
    ended = run(line.words, folder=misused_folder, encoding=encoding)
    check(ended)
    assert ended.status == 2, ended
    assert contents(misused_folder) == before


@pytest.fixture(scope="module")
def misused_folder(furnished):
    """One folder for all that is refused before it could change anything."""
    with furnished() as folder:
        yield folder


any_word = st.one_of(words, any_bytes, st.sampled_from(["lens", "lab", "corpus", "toy", "-V"]))


@fuzz(few=40, many=1000, line=st.lists(any_word, max_size=4), encoding=st.sampled_from(ENCODINGS))
def test_any_words(furnished, line, encoding):
    """No command at all, or one that does not exist."""
    named = line[:1] + line[1:2] * (line[:1] in (["lab"], ["corpus"]))
    if tuple(named) in COMMANDS:
        line = ["no", *line]
    with furnished() as folder:
        before = contents(folder)
        ended = run(line, folder=folder, encoding=encoding)
        check(ended)
        assert ended.status in (0, 2)
        assert contents(folder) == before


# --- terminals ------------------------------------------------------------------------------------

TABLES = {name: [*name.split(), *rest] for name, rest in READ_A_PROMPT.items()} | {
    "lens grid": ["lens", "--positions", "all", "--target", "id:7", "--follow", "--baseline"],
    "find": ["find", "id:7", "--foil", "id:257"],
    "neuron": ["neuron", "L1N3", "--triggers", "run"],
    "params": ["params", "./tiny"],
    "params of two": ["params", "./tiny", "gpt2-xl"],
    "corpus lens": ["corpus", "lens", "text.txt", "lines.jsonl"],
    "corpus norms": ["corpus", "norms", "text.txt"],
    "corpus memory": ["corpus", "memory", "text.txt"],
    "corpus merge": ["corpus", "merge", "run"],
    "lab toy": ["lab", "toy", "--seeds", "2"],
    "lab depth": ["lab", "depth", *LIGHT["lab", "depth"]],
    "lab race": ["lab", "race", *LIGHT["lab", "race"]],
}
del TABLES["record"], TABLES["report"]
WITH_A_PROMPT = ("lens", "lens grid", "norms", "memory", "attribute")
NARROWEST = dict.fromkeys(TABLES, 70) | {"norms": 40}
NARROWEST |= dict.fromkeys(("lens", "lens grid", "params", "params of two"), 20)
"""Down to which width a table keeps to the terminal."""
RUBBISH = ("", "0", "-5", "x", "²", "٣", "9" * 5000, " 80 ", "80.0", "1e2", "1")

environments = st.fixed_dictionaries(
    {},
    optional={
        "NO_COLOR": st.sampled_from(["", "1"]),
        "FORCE_COLOR": st.sampled_from(["", "1"]),
        "TERM": st.sampled_from(["dumb", "unknown", "xterm-256color", "", "vt100"]),
        "COLORTERM": st.sampled_from(["truecolor", ""]),
        "LINES": st.sampled_from(RUBBISH),
        "TTY_COMPATIBLE": st.sampled_from(["0", "1", "x"]),
        "TTY_INTERACTIVE": st.sampled_from(["0", "1", "x"]),
    },
)


@fuzz(
    few=60,
    many=1500,
    name=st.sampled_from(sorted(TABLES)),
    prompt=st.text(min_size=1, max_size=10),
    columns=st.one_of(st.integers(1, 400), st.sampled_from(RUBBISH)),
    encoding=st.sampled_from(ENCODINGS),
    environment=environments,
)
def test_any_terminal(furnished, name, prompt, columns, encoding, environment):
    line = [*TABLES[name], "-q"]
    if name in WITH_A_PROMPT:
        line += ["--prompt-file", "given"]
    with furnished() as folder:
        (folder / "given").write_text(prompt, encoding="utf-8", newline="")
        ended = run(
            line,
            folder=folder,
            encoding=encoding,
            terminal=True,
            environment=environment | {"COLUMNS": str(columns)},
        )
        check(ended, terminal=True)
    if ended.status == 0 and isinstance(columns, int):
        assert widest(ended.out) <= max(columns, NARROWEST[name])
    coloured = "\x1b" in ended.out
    if environment.get("NO_COLOR") or environment.get("TERM") in ("dumb", "unknown"):
        assert not coloured
