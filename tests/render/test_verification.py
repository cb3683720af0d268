import io
from dataclasses import replace

import pytest

from resid.render.figure import figure, plot, save
from resid.render.terminal import make_console, render
from resid.render.words import describe_recheck
from resid.results import Check, Verification
from resid.results.verification import strain

from .samples import make_lens

SOUND = (
    Check("stream_adds_up", 2e-7, 1e-4, True),
    Check("stream_adds_up", 5e-6, 1e-4, True),
    Check("logits_unchanged", 0.0, 0.0, True),
    Check("stream_adds_up", 1e-16, 1e-10, True),
)
PLACE = "2.post at position 1, prompt 1, float32"


def certificate(*checks):
    return Verification(
        source=replace(make_lens().source, prompt=None, ids=(), tokens=()),
        checks=checks or SOUND,
        groups=("identities", "identities", "recording", "identities"),
        dtypes=("float32", "float32", "float32", "float64"),
        runs=(0, 1, None, 0),
        prompts=("[bold] \x1b the", None),
        prompt_ids=((5, 6), (7,)),
    )


BROKEN = certificate(SOUND[0], Check("stream_adds_up", 3.0, 1e-4, False, PLACE), *SOUND[2:])


def printed(found):
    file = io.StringIO()
    render(found, make_console(file))
    return file.getvalue()


def test_a_line_is_the_run_that_came_closest():
    lines = certificate().lines()
    assert [(line.dtype, line.check.name, line.prompt, line.runs) for line in lines] == [
        ("float32", "stream_adds_up", 1, 2),
        ("float32", "logits_unchanged", None, 1),
        ("float64", "stream_adds_up", 0, 1),
    ]


def test_a_failure_is_closer_than_anything():
    nan = Check("a", float("nan"), 1.0, False)
    assert max([Check("a", 0.9, 1.0, True), nan], key=strain) is nan


def test_the_table_shows_every_line_and_hides_no_sign():
    text = printed(certificate())
    assert 'prompt 0: "[bold] \\x1b the", 2 tokens' in text
    assert "prompt 1: ids 7, 1 token" in text
    assert "float32  stream_adds_up     5e-6       1e-4  ok  prompt 1" in text
    assert "float32  logits_unchanged      0      exact  ok  the model" in text
    assert text.splitlines()[-1] == "all 4 checks of 2 kinds passed"


def test_the_table_is_loud_about_a_failure():
    text = printed(BROKEN)
    assert f"FAILED  {PLACE}" in text
    assert text.splitlines()[-1] == "1 of 4 checks FAILED"


def test_the_figure_has_a_row_for_every_line():
    ax = plot(certificate())
    assert [label.get_text() for label in ax.get_yticklabels()] == [
        "stream_adds_up, float32", "logits_unchanged, float32", "stream_adds_up, float64",
    ]  # fmt: skip
    assert ax.get_xscale() == "log"
    dots = ax.collections[-1].get_offsets()
    assert dots[:, 0].tolist() == pytest.approx([0.05, 1e-8, 1e-6])


def test_the_figure_names_a_failure():
    texts = [text.get_text() for text in figure(BROKEN).texts]
    assert texts[0] == "gpt2 FAILS verification"
    assert any(PLACE in text for text in texts)


def test_the_figure_is_written_the_same_twice():
    def written():
        file = io.BytesIO()
        save(BROKEN, file, format="png")
        return file.getvalue()

    assert written() == written()


def test_axes_of_another_length_are_refused():
    with pytest.raises(ValueError, match="along 'check'"):
        replace(certificate(), runs=(0,))


@pytest.mark.parametrize(
    ("check", "words"),
    [
        (
            Check("a", 3e-14, 1e-10, True),
            "in float64 the error is 3e-14 (tolerance 1e-10): rounding, not a fault",
        ),
        (
            Check("a", 0.5, 1e-10, False, "x"),
            "in float64 the error is 0.5 (tolerance 1e-10): it still fails, a fault",
        ),
        (Check("finite", 0.0, 0.0, True), "in float64 it holds: rounding, not a fault"),
        (Check("finite", 2.0, 0.0, False), "in float64 it fails: it still fails, a fault"),
    ],
)
def test_what_the_second_check_means(check, words):
    assert describe_recheck(check) == words
