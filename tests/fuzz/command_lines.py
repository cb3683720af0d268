"""Command lines that nobody would think of: every option of every command, with any value.

What commands and options there are is asked of click, so that a new one is tried without being
named here.
"""

import math
import os
from dataclasses import dataclass, field
from pathlib import Path

import click
from hypothesis import strategies as st

from resid.commands import cli

DIGITS = "9" * 5000
"""More than Python makes an integer of, or writes one with."""
ODD = (
    "", " ", "-", "--", "-1", "-0", "+1", "0", "1", "2", "3", "7", "31", "32", "33", "299", "300",
    "1_0", "٣", "²", "𝟛", "0x10", "1.0", "1e3", "nan", "inf", "-inf", "1e999", "1e-999", "true",
    "9" * 12, "9" * 30, "9" * 4200, DIGITS,
    "id:0", "id:299", "id:300", "id:-1", "id:٣", "id:²", "id:", f"id:{DIGITS}",
    "L0N0", "l2n23", "L3N0", "L0N24", "L0N-1", "L٣N1", "L999999N9", "L", "1,1",
    "embed", "2.post", "1.mid", "0.attn_out", "9.post", "-1.post", "٠.post", "999999.mid",
    "blocks.0.hook_resid_pre", "blocks.1.hook_mlp_out", "post,,all", "everything", "z", "mlp_post",
    "last", "all", "none", "0-2", "2-1", "0--1", "-3--1", "0,1,1", ",", "5,290,17", "5 ,\t7",
    " the", "the is", "ab", "<|endoftext|>", "a" * 32, "a" * 33, "b" * 300, "é" * 5000,
    ".", "./tiny", "tiny", "./none", "none/none", "a/b/c", "~", "~nobody", "~nobody/x", "C:\\x",
    "text.txt", "lines.jsonl", "bad.txt.gz", "prompt", "latin", "folder", "run", "loop", "dangling",
    "1/1", "2/2", "0/1", "2/1", "٣/٣", "999999/999999",
    "base", "base,relu", "base,base", "relu+swiglu", "+", "post-ln+no-norm", "8x-equal",
    "\x1b[31mred", "\x9b1m", "\u202eevil", "a\rb", "x\ny\nz\nw\nv", "\ue000", "\ufeff", "e\u0301",
    "\u0301", "日本", "🤗", "👩‍👩‍👧", "\U000e0041", "\ufdd0", "\x7f", "\udce9", "caf\udce9",
    "\udcff",
    "$\\foo$", "[bold]x[/]", "[/]", ":smile:", "{}", "{0}", "%s", "%(x)d", "$HOME", "*", "<b>&amp;",
    "-q", "--top", "--help", "-o",
)  # fmt: skip
# More of these makes an experiment long, not wrong.
SLOW = ("steps", "layers", "seeds")
_MOST = 3
# In front of what is drawn, so that what is not drawn keeps an experiment short.
LIGHT = {
    ("lab", "race"): ["--steps", "1", "--layers", "1", "--seeds", "1", "--variants", "base"],
    ("lab", "depth"): ["--layers", "2", "--seeds", "1", "--init", "0.02"],
    ("lab", "toy"): ["--seeds", "2"],
    ("verify",): ["--no-float64", "--ids", "5,290"],
}
# What is meant by a metavar, or by a name, so that some lines succeed.
MEANT = {
    "PROMPT...": ("the is", "ab", "-"),
    "PROMPT": ("the is", "ab"),
    "TEXT": ("the is", "ab"),
    "TOKEN": (" the", "id:7"),
    "TOK": (" the", "id:7", "id:257"),
    "L9N652": ("L1N3", "L2N23"),
    "464,3139,...": ("5,290,17", "264"),
    "last|all|LIST": ("last", "all", "0", "-1", "0-1"),
    "last|N": ("last", "0", "-1"),
    "LIST|none": ("none", "0", "0,1"),
    "post|all|LIST": ("post", "all", "embed,1.mid"),
    "everything|all|post|LIST": ("post", "0.mlp_pre"),
    "NAME|FOLDER|mini": ("./tiny",),
    "[MODEL...]": ("gpt2", "./tiny"),
    "[MODEL]": ("./tiny",),
    "FILE...": ("text.txt", "lines.jsonl", "-"),
    "DIR...": ("run",),
    "FILE.safetensors": ("out.safetensors", "old.safetensors"),
    "FILE.html": ("out.html", "old.html"),
    "a,b,...": ("base", "base,relu"),
    "K/N": ("1/2", "2/2"),
    "FILE": ("prompt", "-"),
    "FOLDER": ("./tiny",),
    "FILE|DIR": ("new",),
    "DIR": ("new", "run"),
    "NAME": ("text",),
    "SECONDS": ("0", "60"),
    "RATE": ("0.006", "1"),
    "SHARE": ("0.05", "1"),
    "device": ("auto", "cpu"),
    "text": ("long.txt",),
}
OUTPUTS = ("out.json", "out.csv", "old.json", "out.JSON", "out.html", "日本.csv", "x\ny.json")
NO_OUTPUTS = (
    "out", "out.xyz", ".json", "no/out.json", "folder.json", "text.txt/x.json", "loop.json",
    "loop/x.json", "dangling.json", "\x1b[31m.csv", "n" * 300 + ".json", "caf\udce9.json",
    "out.json/", "out.txt", "folder", "", ".", "~/x.json", "run", "new",
)  # fmt: skip


def leaves(group=cli, path=()):
    """Every command that does something, by the words that name it."""
    for name, command in sorted(group.commands.items()):
        if isinstance(command, click.Group):
            yield from leaves(command, (*path, name))
        else:
            yield (*path, name), command


COMMANDS = dict(leaves())


@dataclass
class Line:
    """A command line, and what is known of how it has to end."""

    path: tuple[str, ...]
    words: list[str]
    misused: bool = False
    """Whether a value is of another kind than its option says: status 2."""
    stdin: bytes = b""
    given: dict = field(default_factory=dict)
    """By an option's name, the value that counts."""


# No absolute paths: a folder to read all of, or to write to, is to be the test's own.
any_text = st.text(max_size=40).map(lambda text: text.replace("\0", "").lstrip("/"))
any_bytes = st.binary(max_size=20).map(
    lambda raw: os.fsdecode(raw.replace(b"\0", b"").lstrip(b"/"))
)
words = st.one_of(st.sampled_from(ODD), any_text, any_bytes)
"""What a shell can pass as one word."""


def is_misuse(param, word):
    """Whether the type that an option declares has no such value."""
    try:
        value = param.type.convert(word, param, None)
    except click.UsageError:
        return True
    return isinstance(value, float) and not math.isfinite(value)


def is_slow(param, word):
    """Whether a value makes an experiment long."""
    return param.name in SLOW and not is_misuse(param, word) and int(word) > _MOST


def meant_for(param):
    """Values that an option or argument is there for, if any is known."""
    if param.name == "outputs" or (param.name, param.metavar) == ("files", "FILE"):
        return OUTPUTS
    if param.name in MEANT:
        return MEANT[param.name]
    if isinstance(param.type, click.Choice):
        return tuple(param.type.choices)
    if isinstance(param.type, click.IntRange):
        return tuple(str(param.type.min + more) for more in range(3))
    return MEANT.get(param.metavar, ())


def edges_of(param):
    """Values at both sides of where the range of an option ends."""
    ends = [getattr(param.type, name, None) for name in ("min", "max")]
    edges = [str(end + more) for end in ends if end is not None for more in (-1, 0, 1)]
    return edges + ["nan", "inf", "-nan"] * isinstance(param.type, click.types.FloatParamType)


def odd_for(param):
    """Values at the edge, and absurd ones."""
    if param.name in ("file", "files", "outputs"):
        return st.one_of(st.sampled_from([*OUTPUTS, *NO_OUTPUTS, *ODD]), any_text, any_bytes)
    edges = edges_of(param)
    at_the_edge = st.sampled_from(edges) if edges else words
    return st.one_of(at_the_edge, words, words).filter(lambda word: not is_slow(param, word))


class _Values:
    """Values for one line, all but a few of them such as are meant."""

    def __init__(self, draw):
        self.draw, self.odd = draw, draw(st.sampled_from([0, 0, 1, 1, 1, 2, 9]))

    def of(self, param):
        meant = meant_for(param)
        if not meant or (self.odd and self.draw(st.integers(0, 2)) == 2):
            self.odd -= 1
            return self.draw(odd_for(param))
        return self.draw(st.sampled_from(meant))


@st.composite
def misused_options(draw):
    """A line with one value of another kind than its option says, each option as likely."""
    kinds = (click.Choice, click.types.IntParamType, click.types.FloatParamType)
    typed = [
        (path, param)
        for path, command in COMMANDS.items()
        for param in _options(command)
        if isinstance(param.type, kinds) and not param.is_flag
    ]
    path, param = draw(st.sampled_from(typed))
    word = draw(odd_for(param).filter(lambda word: is_misuse(param, word)))
    line = Line(path, [*path, *LIGHT.get(path, ()), f"{max(param.opts, key=len)}={word}"], True)
    # Nothing else is wrong with it.
    for other in COMMANDS[path].params:
        if isinstance(other, click.Argument) and "MODEL" not in other.metavar:
            line.words.append(meant_for(other)[0])
        elif isinstance(other, click.Option) and other.required:
            line.words += [other.opts[0], meant_for(other)[0]]
    return line


@st.composite
def lines(draw, path):
    """A line for one command: options in any number and order, then arguments."""
    command = COMMANDS[path]
    line = Line(path, [*path, *LIGHT.get(path, ())], stdin=draw(st.sampled_from(STDIN)))
    values = _Values(draw)
    for param in draw(st.lists(st.sampled_from(_options(command)), min_size=1, max_size=7)):
        if values.odd or param.is_flag or meant_for(param):
            _put(draw, line, param, values)
    for param in _options(command):
        if param.required and draw(st.integers(0, 9)):
            _put(draw, line, param, values)
    given = [
        values.of(param)
        for param in command.params
        if isinstance(param, click.Argument)
        for _ in range(_how_many(draw, param, line))
    ]
    if any(word.startswith("-") and word != "-" for word in given):
        line.words.append("--")
    line.words += given
    by_name = {param.name: param for param in command.params}
    misused = [is_misuse(by_name[name], word) for name, word in line.given.items()]
    line.misused = line.misused or any(misused)
    # Before all others, where it is an option whatever they are.
    rare = draw(st.integers(0, 39))
    if rare == 37:
        line.words.insert(len(path), draw(st.sampled_from(UNKNOWN)))
        line.misused = True
    elif rare == 38:
        line.words.insert(len(path), draw(st.sampled_from(HELP)))
        line.misused = False
    return line


def _options(command):
    return [param for param in command.params if isinstance(param, click.Option)]


def _how_many(draw, param, line):
    """Almost always as many as are wanted."""
    if param.required:
        return draw(st.sampled_from([1] * 8 + [0, 2]))
    instead = {"ids", "prompt_file", "model"} & {*line.given}
    return draw(st.sampled_from([0] * 8 + [1] if instead else [1] * 6 + [0, 2, 2]))


def _put(draw, line, param, values):
    """One option with a value, spelled in one of the ways that there are."""
    if param.is_flag:
        line.words.append(draw(st.sampled_from([*param.opts, *param.secondary_opts])))
        return
    name, word = draw(st.sampled_from(param.opts)), values.of(param)
    if name.startswith("--") and draw(st.booleans()):
        line.words.append(f"{name}={word}")
    else:
        line.words += [name, word]
    if not param.multiple:
        line.given[param.name] = word
    elif is_misuse(param, word):
        line.misused = True


HELP = ("-h", "--help")
UNKNOWN = ("--nope", "--nope=1", "-Z", "--Top", "--\x1b[31m", "--日本", "---")
STDIN = (
    b"the is", b"", b"\n", b"the is\r\n", b"\0", b"caf\xe9", "日本 🤗".encode(), b"\xff", b"a" * 40,
    b"\xef\xbb\xbfab", b"\x1b[31m", b'{"text": "the is"}\n{"text": 3}\n',
)  # fmt: skip


def furnish(folder: Path, tiny: Path, run: Path) -> None:
    """Everything that the words above may name, in a folder of its own.

    Args:
        folder: new.
        tiny: the checkpoint.
        run: the folder of a finished run over text.
    """
    folder.mkdir(parents=True)
    for name, target in (("tiny", tiny), ("loop", "loop"), ("loop.json", "loop.json"),
                         ("dangling", "nothing"), ("dangling.json", "nowhere/x.json"),
                         ("run", run)):  # fmt: skip
        (folder / name).symlink_to(target)
    for name in ("folder", "folder.json"):
        (folder / name).mkdir()
    for name in ("old.json", "old.safetensors", "old.html"):
        (folder / name).write_text("old")
    (folder / "text.txt").write_text("the is the cat\n\nis the ? the\n" * 3, encoding="utf-8")
    (folder / "lines.jsonl").write_bytes(b'{"text": "the is"}\nno\n{"text": "the \\u001b[31m"}\n')
    (folder / "bad.txt.gz").write_bytes(b"\x1f\x8b\x08nothing")
    (folder / "long.txt").write_bytes(b"the is " * 400)
    (folder / "prompt").write_text("the is\n", encoding="utf-8")
    (folder / "latin").write_bytes(b"caf\xe9\0")
