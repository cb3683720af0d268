import hashlib
import itertools
import math

import numpy as np
import pytest

from resid.errors import ResidError
from resid.lab.race_text import SAMPLE, read_text, write_sample


def test_the_sample_is_the_same_everywhere():
    text = write_sample(5000)
    digest = "7a57ddb6a93c4916"
    assert hashlib.sha256(text.encode()).hexdigest().startswith(digest)
    assert len(text) == 5000
    assert write_sample(9000).startswith(text)


def test_the_sample_can_be_foretold_by_who_looks_back():
    lines = write_sample(60_000).splitlines()[:-1]
    asked = [line for line in lines if "Where is" in line]
    assert len(asked) > 50
    for line in asked:
        who, where = line.split()[0], line.split()[4].strip(",")
        assert line.endswith(f"Where is {who}? In the {where}.")


def test_the_sums_are_right():
    spelt = "zero one two three four five six seven eight nine ten eleven twelve"
    numbers = spelt.split()
    lines = [line for line in write_sample(60_000).splitlines()[:-1] if "together" in line]
    assert len(lines) > 50
    for line in lines:
        words = line.replace(",", "").replace(":", "").split()
        assert numbers.index(words[2]) + numbers.index(words[5]) == numbers.index(words[6])


def test_the_end_is_held_out():
    text = read_text(None, 32)
    content = write_sample(400_000).encode()
    assert text.name == SAMPLE
    assert len(text.held_out) == 40_000
    joined = np.concatenate([text.train, text.held_out])
    assert bytes(text.alphabet[i] for i in joined) == content
    assert text.sha256 == hashlib.sha256(content).hexdigest()


def test_a_file_is_read_as_bytes(tmp_path):
    file = tmp_path / "any.bin"
    content = bytes(range(256)) * 20
    file.write_bytes(content)
    text = read_text(file, 16)
    assert (text.name, text.d_vocab) == ("any.bin", 256)
    assert text.alphabet == bytes(range(256))


def test_counting_losses_are_those_of_counting(tmp_path):
    file = tmp_path / "text"
    file.write_bytes(b"abab" * 500 + b"aabb" * 50)
    text = read_text(file, 8)
    train, held = text.train.tolist(), text.held_out.tolist()
    expected = 0.0
    pairs = list(itertools.pairwise(train))
    for before, byte in itertools.pairwise(held):
        of = sum(first == before for first, _ in pairs)
        expected -= math.log((pairs.count((before, byte)) + 1) / (of + 2)) / (len(held) - 1)
    unigram, bigram = text.count_losses()
    assert bigram == pytest.approx(expected)
    assert unigram == pytest.approx(math.log(2), rel=1e-2)


def test_what_is_no_text_is_refused(tmp_path):
    with pytest.raises(ResidError, match=r"cannot read .*absent.*No such file"):
        read_text(tmp_path / "absent", 64)
    short = tmp_path / "short"
    short.write_bytes(b"too short")
    with pytest.raises(ResidError, match="has 9 bytes; a race needs at least 2,560"):
        read_text(short, 64)
