import json
import re

import numpy as np
import pytest

from resid.corpus import windows
from resid.corpus.batches import Batch, Cutting, PacketEnd, Work
from resid.corpus.text import Corpus
from tests.corpus.conftest import make_texts

SEAM = re.compile(" ")


def encode(text):
    return [ord(sign) % 97 for sign in text]


@pytest.fixture
def work(tmp_path):
    def make(texts, mine=lambda packet: True, **cutting):
        file = tmp_path / "text.jsonl"
        file.write_text("\n".join(json.dumps({"text": text}) for text in texts), "utf-8")
        corpus = Corpus([str(file)], on_bad=pytest.fail)
        asked = {"context": 16, "stride": 16, "batch_tokens": 40} | cutting
        return Work(corpus, encode, Cutting(**asked), mine, SEAM)

    return make


def rows_of(batches):
    columns = [
        np.concatenate([getattr(b, n) for b in batches]) for n in ("document", "pos", "next")
    ]
    return sorted(zip(*(column.tolist() for column in columns), strict=True))


@pytest.mark.parametrize("cutting", [{}, {"stride": 5}, {"bos": 96, "context": 15, "stride": 15}])
def test_every_token_is_one_row_with_the_token_after_it(work, cutting):
    texts = make_texts()
    batches = [b for b in work(texts, **cutting).run() if isinstance(b, Batch)]
    expected = []
    for document, text in enumerate(texts):
        ids = encode(text)
        expected += list(zip([document] * len(ids), range(len(ids)), [*ids[1:], -1], strict=True))
    assert rows_of(batches) == expected
    for batch in batches:
        read = batch.ids
        assert len(read) * max(map(len, read)) <= 40 + 16
        for row in range(len(batch.pos)):
            ids = encode(texts[batch.document[row]])
            assert read[batch.window[row]][batch.place[row]] == ids[batch.pos[row]]
        if cutting.get("bos"):
            assert all(ids[0] == 96 for ids in read)
            assert (batch.place > 0).all()


def test_packets_are_the_same_whoever_reads_them(work):
    texts = make_texts(60)
    everything = list(work(texts).run())
    ends = [what.packet for what in everything if isinstance(what, PacketEnd)]
    assert ends == list(range(len(ends))) and len(ends) > 4
    apart = []
    for part in range(3):
        apart.append(list(work(texts, lambda packet, part=part: packet % 3 == part).run()))
    found = {}
    for part in apart:
        batches = []
        for what in part:
            if isinstance(what, PacketEnd):
                found[what.packet] = (batches, what)
                batches = []
            else:
                batches.append(what.ids)
    batches = []
    for what in everything:
        if isinstance(what, PacketEnd):
            assert found[what.packet] == (batches, what)
            batches = []
        else:
            batches.append(what.ids)


def test_a_long_document_is_never_held_whole(tmp_path):
    """What waits is bounded, and so is what is given to the tokenizer at a time."""
    file = tmp_path / "long.txt"
    file.write_text("some words of text " * 60_000, "utf-8")  # 1.1 million characters
    lengths = []

    def measured(text):
        lengths.append(len(text))
        return encode(text)

    cutting = Cutting(context=256, stride=256, batch_tokens=1024)
    work = Work(
        Corpus([str(file)], on_bad=pytest.fail), measured, cutting, lambda packet: True, SEAM
    )
    rows = waiting = 0
    for what in work.run():
        if isinstance(what, Batch):
            rows += what.tokens
            waiting = max(waiting, len(work._waiting))
    assert rows == file.stat().st_size == sum(lengths)
    assert waiting <= 16
    assert max(lengths) < 200_000
    assert len(lengths) > 10


def test_a_document_that_cannot_be_cut_is_told_and_the_others_are_read(tmp_path, monkeypatch):
    monkeypatch.setattr(windows, "PIECE", 64)
    monkeypatch.setattr(windows, "_LONGEST", 200)
    texts = ["the first", "x" * 201, "a b c " * 100 + "y" * 201, "the last"]
    file = tmp_path / "text.jsonl"
    file.write_text("\n".join(json.dumps({"text": text}) for text in texts), "utf-8")
    told = []
    corpus = Corpus([str(file)], on_bad=told.append)
    cutting = Cutting(context=16, stride=16, batch_tokens=40)
    work = Work(corpus, encode, cutting, lambda packet: True, SEAM)
    whole = list(work.run())
    ends = [what for what in whole if isinstance(what, PacketEnd)]
    assert sum(end.documents for end in ends) == 3
    assert sum(end.empty for end in ends) == 0
    rows = [row[0] for row in rows_of([what for what in whole if isinstance(what, Batch)])]
    assert (rows.count(0), rows.count(1), rows.count(3)) == (9, 0, 8)
    reason = "200 characters without a place to cut them at"
    assert [bad.line for bad in told] == [2, 3]
    assert told[0].reason == reason
    assert told[1].reason == f"{reason}; its first {rows.count(2):,} tokens were read"
    assert rows.count(2) > 300
