"""Text files with anything in them: the documents that a plain reading finds, or a refusal."""

import gzip
import json
import os
import re
import zlib
from contextlib import closing
from decimal import Decimal

import pytest
from hypothesis import strategies as st
from tokenizers.pre_tokenizers import ByteLevel

from resid.corpus import text as texts
from resid.corpus import windows
from resid.corpus.files import find_files, identify
from resid.corpus.text import SPLITS, Corpus
from tests.conftest import write_checkpoint
from tests.fuzz import mutations
from tests.fuzz.budget import fuzz
from tests.fuzz.endings import ends_well, refusal_of

_PIECES = (
    b"the", b" is", b"\n", b"\n\n", b"\r\n", b"\r", b"\xe2\x80\xa8", b"\xc2\x85", b"\x0b", b"\x1c",
    b"\xef\xbb\xbf", b"\xff", b"\xe9", b"\xf0\x9f", b"\xf0\x9f\xa4\x97", b"\0", b"\x1b[31m", b" ",
    b"  \t ", b"\xed\xa0\x80", b"\xc0\x80", b"x" * 300, "é".encode() * 40, b"\xe2\x80\xae",
)  # fmt: skip
_SOUND = tuple(piece for piece in _PIECES if piece.decode("utf-8", "ignore").encode() == piece)
_LINES = (
    b'{"text": "the is"}', b'{"text": ""}', b'{"text": "a\\nb"}', b'{"text": 5}', b'{"text": null}',
    b'{"text": "a", "text": "b"}', b'{"title": "x"}', b"[]", b"null", b'"text"', b"{", b"", b" \t",
    b'{"text": "\\ud83d"}', b'{"text": "\\ud83e\\udd17"}', b'{"text": "\xff"}', b"\xef\xbb\xbf{}",
    b'\xef\xbb\xbf{"text": "mark"}', b'{"text": "\\u0000"}', b'{"text": NaN}', b'{"text": "a"} x',
    b'{"text": "a"}\r', b'{"text": "a"}\r{"text": "b"}', b"[" * 100_000,
    b'{"text": "x", "n": 1e999}',
    b'{"text": "x", "n": ' + b"9" * 6000 + b"}", b'{"text": "' + b"long " * 3000 + b'"}',
    b'{"text": {"text": "x"}}', b'{"x": "y", "text": "z"}', b'{"text": "a\tb"}', b"\0",
    b'{"te\\u0078t": "x"}',
)  # fmt: skip

_TEXT = st.lists(st.sampled_from(_PIECES) | st.binary(max_size=4), max_size=12).map(b"".join)
_SOUND_TEXT = st.lists(st.sampled_from(_SOUND), max_size=14).map(b"".join)
_JSONL = st.lists(st.sampled_from(_LINES) | _TEXT, max_size=8).map(b"\n".join)


def read_plainly(content, split, jsonl, field="text"):
    """(first line, text) of every document, and the lines that are bad, all at once."""
    documents, bad = [], []
    lines = content.split(b"\n")
    lines = [line + b"\n" for line in lines[:-1]] + ([lines[-1]] if lines[-1] else [])
    if jsonl:
        for number, line in enumerate(lines, start=1):
            if line.strip():
                text = _plain_json(line, field)
                bad += [number] if text is None else []
                documents += [] if text is None else [(number, text)]
        return documents, bad
    good = []
    for number, line in enumerate(lines, start=1):
        if number == 1 and line.startswith(b"\xef\xbb\xbf"):
            line = line[3:]
        try:
            good.append((number, line.decode("utf-8")))
        except UnicodeDecodeError:
            bad.append(number)
    if split == "file":
        return [(1, "".join(text for _, text in good))], bad
    if split == "lines":
        return [(n, text.rstrip("\r\n")) for n, text in good if text.strip()], bad
    part = []
    for number, text in [*good, (0, "")]:
        if text.strip():
            part.append((number, text))
        elif part:
            documents.append((part[0][0], "".join(text for _, text in part).rstrip("\r\n")))
            part = []
    return documents, bad


def _plain_json(line, field):
    try:
        record = json.loads(line.decode("utf-8-sig"), parse_int=Decimal)
        found = record[field] if isinstance(record, dict) else None
        if isinstance(found, str):
            found.encode()
            return found
    except (ValueError, KeyError, RecursionError):
        pass
    return None


def documents_of(path, **options):
    """(line, text) of every document, and the numbers of the bad lines."""
    bad = []
    corpus = Corpus([str(path)], on_bad=bad.append, **options)
    with closing(corpus.documents()) as documents:
        found = [(document.line, "".join(document.pieces)) for document in documents]
    return found, [line.line for line in bad]


@fuzz(200, 8000, content=_TEXT, split=st.sampled_from(SPLITS))
def test_any_bytes_in_a_text_file(tmp_path, content, split):
    (tmp_path / "a.txt").write_bytes(content)
    found = documents_of(tmp_path / "a.txt", split=split)
    assert found == read_plainly(content, split, jsonl=False)


@fuzz(150, 6000, content=_SOUND_TEXT, split=st.sampled_from(SPLITS), piece=st.integers(1, 9))
def test_lines_longer_than_what_is_held_at_a_time(tmp_path, monkeypatch, content, split, piece):
    monkeypatch.setattr(texts, "_PIECE", piece)
    (tmp_path / "a.txt").write_bytes(content)
    found = documents_of(tmp_path / "a.txt", split=split)
    assert found == read_plainly(content, split, jsonl=False)


@fuzz(80, 3000, content=_TEXT | _JSONL, jsonl=st.booleans(), longest=st.integers(1, 40))
def test_lines_too_long_to_be_held(tmp_path, monkeypatch, content, jsonl, longest):
    """They are told of as bad lines, and those around them are read as ever."""
    monkeypatch.setattr(texts, "_LONGEST", longest)
    path = tmp_path / ("a.jsonl" if jsonl else "a.txt")
    path.write_bytes(content)
    lines = content.split(b"\n")
    ends = [b"\n"] * (len(lines) - 1) + [b""]
    long = [number for number, line in enumerate(lines, 1) if len(line) >= longest]
    shortened = [b"" if i in long else line for i, line in enumerate(lines, 1)]
    short = b"".join(line + end for line, end in zip(shortened, ends, strict=True))
    found, bad = documents_of(path, split="lines")
    expected, others = read_plainly(short, "lines", jsonl)
    assert (found, bad) == (expected, sorted([*others, *long]))


@fuzz(150, 6000, content=_JSONL)
def test_any_lines_in_a_jsonl_file(tmp_path, content):
    (tmp_path / "a.jsonl").write_bytes(content)
    assert documents_of(tmp_path / "a.jsonl") == read_plainly(content, "", jsonl=True)


@st.composite
def _packed(draw):
    """A gzip file, maybe damaged, and what it holds; None where it holds nothing whole."""
    members = [draw(_TEXT) for _ in range(draw(st.integers(1, 3)))]
    packed = b"".join(gzip.compress(member, draw(st.sampled_from((0, 6)))) for member in members)
    kind = draw(st.sampled_from(("whole", "damaged", "rubbish", "zeros", "plain", "empty", "raw")))
    if kind == "damaged":
        packed = draw(mutations.damaged(packed))
    elif kind == "rubbish":
        packed += b"rubbish"
    elif kind == "zeros":
        packed += b"\0" * 100
    elif kind == "plain":
        packed = members[0]
    elif kind == "raw":
        packed = zlib.compress(members[0])
    elif kind == "empty":
        packed = b""
    try:
        return packed, gzip.decompress(packed)
    except (OSError, EOFError, zlib.error):
        return packed, None


@fuzz(100, 4000, drawn=_packed(), split=st.sampled_from(SPLITS))
def test_a_packed_file(tmp_path, drawn, split):
    packed, content = drawn
    path = tmp_path / "a.txt.gz"
    path.write_bytes(packed)
    found, refusal = refusal_of(documents_of, path, split=split)
    if content is None:
        assert refusal is not None
        assert str(path) in str(refusal)
    else:
        assert refusal is None
        assert found == read_plainly(content, split, jsonl=False)


# --- through the command line ---------------------------------------------------------------------


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    return write_checkpoint(tmp_path_factory.mktemp("model"))


@fuzz(
    30,
    800,
    content=_TEXT | _JSONL,
    name=st.sampled_from(("a.txt", "a.jsonl", "a.txt.gz", "a.jsonl.gz")),
    split=st.sampled_from(SPLITS),
    kind=st.sampled_from(("lens", "norms", "memory")),
    strict=st.booleans(),
    table=st.booleans(),
)
def test_any_text_under_every_analysis(
    tmp_path, model, content, name, split, kind, strict, table
):  # fmt: skip
    path = tmp_path / name
    path.write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    words = ["corpus", kind, path, "-m", model, "--split", split, "--batch-tokens", "64"]
    words += ["--strict"] * strict + ([] if table else ["--format", "json"])
    ran = ends_well(*words, names=[path])
    documents, bad = read_plainly(content, split, jsonl=".jsonl" in name)
    held = sum(bool(text) for _, text in documents)
    assert ran.exit_code == (1 if (bad and strict) or not held else 0), ran.stderr
    if ran.exit_code == 0 and not table:
        source = json.loads(ran.stdout)["source"]
        assert source["documents"] == held
        assert source["bad_lines"] == len(bad)
        assert [line["line"] for line in source["bad_lines_first"]] == bad[:100]


@fuzz(20, 300, content=_TEXT | _JSONL, field=st.none() | st.sampled_from(("text", "\x1b[31m")))
def test_any_bytes_on_standard_input(model, content, field):
    from click.testing import CliRunner

    from resid.commands import cli

    more = [] if field is None else ["--field", field]
    line = ["corpus", "norms", "-", "-m", str(model), "--format", "json", *more]
    ran = CliRunner().invoke(cli, line, input=content)
    documents, bad = read_plainly(content, "file", jsonl=field is not None, field=field)
    held = sum(bool(text) for _, text in documents)
    if not held:
        assert (ran.exit_code, ran.stdout) == (1, "")
        assert "there is nothing to read in '-'" in ran.stderr
        return
    assert ran.exit_code == 0, ran.output
    source = json.loads(ran.stdout)["source"]
    assert source["documents"] == held
    assert source["bad_lines"] == len(bad)


_NAMES = st.sampled_from(
    ("a.txt", "b.jsonl", "c.gz", "d.txt.gz", "e", ".txt", "f.TXT", "g\n.txt", "h\x1b[31m.txt",
     "sub/i.txt", "sub/deep/j.jsonl", "k\u202e.txt")
)  # fmt: skip


@fuzz(
    40,
    800,
    names=st.lists(_NAMES, unique=True, max_size=5),
    odd=st.sampled_from(("", "loop", "self", "gone", "pipe", "outside", "device")),
)
def test_folders_with_loops_links_and_pipes(tmp_path_factory, model, names, odd):
    root = tmp_path_factory.mktemp("folder")
    for name in names:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(gzip.compress(b"the") if name.endswith(".gz") else b"the\n")
    if odd == "loop":
        (root / "loop").symlink_to(root)
    elif odd == "self":
        (root / "self.txt").symlink_to("self.txt")
    elif odd == "gone":
        (root / "gone.txt").symlink_to("nowhere")
    elif odd == "pipe":
        os.mkfifo(root / "pipe.txt")
    elif odd == "device":
        (root / "zero.txt").symlink_to("/dev/zero")
    found, refusal = refusal_of(find_files, [str(root)], lambda told: None)
    wanted = sorted(root / name for name in names if name not in ("c.gz", "e", ".txt"))
    if wanted:
        assert refusal is None
        assert found == [str(path) for path in wanted]
    else:
        assert refusal is not None
    ran = ends_well("corpus", "norms", root, "-m", model, names=[root])
    assert ran.exit_code == (0 if wanted else 1), ran.stderr


@pytest.mark.parametrize("name", ["a.txt", "a.jsonl.gz"])
def test_a_pipe_is_refused_and_not_waited_for(tmp_path, model, name):
    os.mkfifo(tmp_path / name)
    ran = ends_well("corpus", "lens", tmp_path / name, "-m", model, names=[tmp_path / name])
    assert ran.exit_code == 1


SEAM = re.compile("|".join(windows._SEAMS))
SIGNS = st.characters(exclude_categories=["Cs"])
# With such as are one token together, and tokens of several signs.
_WORDS = st.sampled_from(
    ("a", " ", "é", ".", "\n", "中", "1", "_", "'", "the", " the", " is", " ?")
)


@fuzz(
    60,
    5000,
    text=st.lists(_WORDS, max_size=40).map("".join),
    piece=st.integers(1, 12),
)
def test_a_text_in_pieces_has_the_ids_of_the_whole(tiny, monkeypatch, text, piece):
    monkeypatch.setattr(windows, "PIECE", piece)
    encode = tiny.vocabulary.encode
    parts = [text[i : i + 3] for i in range(0, len(text), 3)]
    found = [i for ids in windows.tokenized(iter(parts), encode, SEAM) for i in ids]
    assert found == (encode(text) if text else [])


@fuzz(
    300, 50_000, text=st.text(st.one_of(st.sampled_from(" \n\t\r,;、。'st1_é中\u3000\x85"), SIGNS))
)
def test_the_tokenizer_of_gpt2_always_cuts_where_a_text_may_be_cut(text):
    """Before it looks at any merge, and so whatever its merges are."""
    cut = ByteLevel(add_prefix_space=False).pre_tokenize_str(text)
    begins = {begin for _, (begin, _) in cut}
    assert {found.start() for found in SEAM.finditer(text)} <= begins


def test_the_hash_of_a_file_is_of_its_bytes(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"x" * 3_000_000)
    assert identify(str(tmp_path / "a.txt")).bytes == 3_000_000
