import gzip
import io
import json
import os

import pytest

from resid.corpus.files import find_files, identify
from resid.corpus.text import Corpus
from resid.errors import ResidError


@pytest.fixture
def read(tmp_path):
    def go(content, name="a.txt", **options):
        (tmp_path / name).write_bytes(content)
        bad = []
        corpus = Corpus([str(tmp_path / name)], on_bad=bad.append, **options)
        found = [(d.index, d.line, "".join(d.pieces)) for d in corpus.documents()]
        return found, [(line.line, line.reason) for line in bad]

    return go


def test_a_text_file_is_one_document_as_it_stands(read):
    text = "one\r\n\r\n  two \n"
    assert read(text.encode()) == ([(0, 1, text)], [])


def test_lines_and_paragraphs(read):
    content = b"one\ntwo\n\n \n\nthree\r\nfour"
    lines, _ = read(content, split="lines")
    assert lines == [(0, 1, "one"), (1, 2, "two"), (2, 6, "three"), (3, 7, "four")]
    paragraphs, _ = read(content, split="blank-lines")
    assert paragraphs == [(0, 1, "one\ntwo"), (1, 6, "three\r\nfour")]


@pytest.mark.parametrize("split", ["file", "lines", "blank-lines"])
def test_a_line_that_is_not_utf8_is_left_out_and_told(read, split):
    found, bad = read(b"good\nb\xe9d\nmore\n", split=split)
    assert "".join(text for _, _, text in found).replace("\n", "") == "goodmore"
    assert bad == [(2, "not UTF-8: byte 0xe9")]


def test_a_long_bad_line_is_left_out_to_its_end_and_told_once(read):
    found, bad = read(b"a\xff" + b"b" * 200_000 + b"\nnext")
    assert (found, bad) == ([(0, 1, "next")], [(1, "not UTF-8: byte 0xff")])


def test_a_cut_character_at_the_end_is_told(read):
    _, bad = read("ab\nc🤗".encode()[:-1])
    assert [line for line, _ in bad] == [2]


def test_a_long_line_is_read_in_pieces_and_no_character_is_cut(read, tmp_path):
    text = "é🤗a" * 40_000
    found, bad = read(text.encode())
    assert (found, bad) == ([(0, 1, text)], [])
    corpus = Corpus([str(tmp_path / "a.txt")], on_bad=pytest.fail)
    (pieces,) = (list(document.pieces) for document in corpus.documents())
    assert len(pieces) > 3


def test_every_bad_line_of_jsonl_is_told_with_its_reason(read):
    lines = [
        b'{"text": "one"}',
        b"{broken",
        b"",
        b'{"title": "x"}',
        b'{"text": 7}',
        b'"text"',
        b'{"text": "\xff"}',
        b'{"text": "\\ud83d"}',
        b'{"text": "two"}',
    ]
    found, bad = read(b"\n".join(lines), "a.jsonl")
    assert found == [(0, 1, "one"), (1, 9, "two")]
    assert bad == [
        (2, "not JSON"),
        (4, "no field 'text'"),
        (5, "the field 'text' is not text"),
        (6, "no field 'text'"),
        (7, "not UTF-8: byte 0xff"),
        (8, "not valid Unicode: half a surrogate pair"),
    ]
    assert read(b'{"body": "x"}\n', "b.jsonl", field="body")[0] == [(0, 1, "x")]


def test_gzip_is_unpacked_and_one_that_is_cut_is_refused(read):
    packed = gzip.compress(b"one\ntwo\n" * 50_000)
    assert len(read(packed, "a.txt.gz", split="lines")[0]) == 100_000
    with pytest.raises(ResidError, match=r"b\.txt\.gz' cannot be unpacked"):
        read(packed[: len(packed) // 2], "b.txt.gz")
    with pytest.raises(ResidError, match="cannot be unpacked"):
        read(b"plain", "c.txt.gz")


def test_a_document_that_is_not_read_is_skipped(tmp_path):
    (tmp_path / "a.txt").write_text("one\ntwo\n\nthree\nfour\n\nfive", "utf-8")
    corpus = Corpus([str(tmp_path / "a.txt")], split="blank-lines", on_bad=pytest.fail)
    found = ["".join(d.pieces) if d.index == 1 else d.line for d in corpus.documents()]
    assert found == [1, "three\nfour", 7]
    assert corpus.bytes_read == (tmp_path / "a.txt").stat().st_size


def test_standard_input_is_text_unless_a_field_is_named(monkeypatch):
    for field, expected in ((None, '{"text": "x"}\n'), ("text", "x")):
        raw = io.BytesIO(b'{"text": "x"}\n')
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(raw))
        corpus = Corpus(["-"], field=field, on_bad=pytest.fail)
        assert ["".join(d.pieces) for d in corpus.documents()] == [expected]
    assert identify("-").sha256 is None


def test_standard_input_may_be_packed(monkeypatch):
    raw = io.BufferedReader(io.BytesIO(gzip.compress("é\n".encode())))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(raw))
    assert ["".join(d.pieces) for d in Corpus(["-"], on_bad=pytest.fail).documents()] == ["é\n"]


def test_folders_are_searched_in_order_and_other_files_named(tmp_path):
    root = tmp_path / "root"
    for name in ("b.txt", "a/c.jsonl.gz", "a/b.TXT", "x.png", "y.png", "a/z", "../outside/d.txt"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"")
    (root / "link").symlink_to(tmp_path / "outside")
    (root / "gone.txt").symlink_to("nowhere")
    told = []
    found = find_files([str(root)], told.append)
    assert [name[len(str(root)) + 1 :] for name in found] == [
        "a/b.TXT",
        "a/c.jsonl.gz",
        "b.txt",
    ]
    assert sorted(line.replace(str(root), "FOLDER") for line in told) == [
        "left out of 'FOLDER', as a link to a folder: 'link'",
        "left out of 'FOLDER', as neither .txt nor .jsonl: 'z', 'x.png' and 1 more",
        "left out of 'FOLDER', as no file that can be read: 'gone.txt'",
    ]


def test_a_folder_below_that_cannot_be_read_is_an_error(tmp_path, monkeypatch):
    (tmp_path / "closed").mkdir()
    (tmp_path / "a.txt").write_bytes(b"a")
    scan = os.scandir

    def refuse(path):  # Root may read all.
        if str(path).endswith("closed"):
            raise PermissionError(13, "Permission denied", str(path))
        return scan(path)

    monkeypatch.setattr("os.scandir", refuse)
    with pytest.raises(ResidError, match=r"cannot read '.*closed': Permission denied"):
        find_files([str(tmp_path)], print)


def test_what_is_no_text_is_refused(tmp_path):
    (tmp_path / "a.png").write_bytes(b"")
    (tmp_path / "a.txt").write_bytes(b"")
    (tmp_path / "empty").mkdir()
    for names, told in (
        (["a.png"], "not a text"),
        (["none.txt"], "there is no file"),
        (["empty"], "holds no"),
        (["a.txt", "a.txt"], "given twice"),
        (["a.txt", "empty/../a.txt"], "given twice, as '.*a.txt' too"),
    ):
        with pytest.raises(ResidError, match=told):
            find_files([str(tmp_path / name) for name in names], print)


def test_files_are_known_by_their_bytes(tmp_path):
    (tmp_path / "a.txt").write_text(json.dumps("x"), "utf-8")
    one = identify(str(tmp_path / "a.txt"))
    (tmp_path / "a.txt").write_text(json.dumps("y"), "utf-8")
    other = identify(str(tmp_path / "a.txt"))
    assert one.bytes == other.bytes == 3
    assert one.sha256 != other.sha256


@pytest.mark.parametrize("split", ["file", "lines", "blank-lines"])
def test_of_a_bad_last_line_nothing_is_read(read, split):
    found, bad = read(b"good\nthe\xc2", split=split)
    assert [text for _, _, text in found] == ["good\n" if split == "file" else "good"]
    assert [line for line, _ in bad] == [2]


def test_a_line_longer_than_what_is_held_that_begins_blank(read):
    text = " " * 100_000 + "the"
    assert read(text.encode(), split="blank-lines") == ([(0, 1, text)], [])
    blank = "a\n" + " " * 100_000 + "\nb"
    assert [d[2] for d in read(blank.encode(), split="blank-lines")[0]] == ["a", "b"]


def test_a_line_break_that_lies_in_two_pieces_stays_out_of_a_paragraph(read):
    text = "a" * ((1 << 16) - 1)
    assert read(f"{text}\r\n\r\nb".encode(), split="blank-lines")[0][0] == (0, 1, text)


def test_a_pipe_is_not_waited_for(tmp_path):
    import os

    os.mkfifo(tmp_path / "a.txt")
    with pytest.raises(ResidError, match="is a pipe or a device"):
        find_files([str(tmp_path / "a.txt")], print)
    with pytest.raises(ResidError, match="is a pipe or a device"):
        identify(str(tmp_path / "a.txt"))


@pytest.mark.parametrize("split", ["file", "blank-lines"])
def test_of_a_long_bad_line_it_is_told_how_much_was_read(read, split):
    found, bad = read(b"a" * 100_000 + b"\xff" + b"b" * 100_000 + b"\nnext", split=split)
    text = "".join(text for _, _, text in found)
    assert text == "a" * 65_536 + "next"
    assert bad == [(1, "not UTF-8: byte 0xff; its first 65,536 characters were read")]


@pytest.mark.parametrize(("name", "line"), [("a.txt", b"x"), ("a.jsonl", b'{"text": "x"}')])
def test_a_line_too_long_to_be_held_is_left_out_and_told_once(read, monkeypatch, name, line):
    monkeypatch.setattr("resid.corpus.text._LONGEST", len(line) + 1)
    long = b" " * 50 + line
    found, bad = read(b"\n".join([line, long, line, long]), name, split="lines")
    assert [(number, text) for _, number, text in found] == [(1, "x"), (3, "x")]
    assert bad == [(2, "longer than 33,554,431 bytes"), (4, "longer than 33,554,431 bytes")]


def test_a_split_that_there_is_not_is_refused():
    with pytest.raises(ResidError, match=r"the split is 'words'; choose one of file, .*lines"):
        Corpus(["a.txt"], split="words", on_bad=print)
