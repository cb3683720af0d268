import io
from dataclasses import dataclass

import pytest
from rich.cells import cell_len

from resid.render.terminal import make_console, render
from resid.results import Result

from .samples import HOSTILE, make_lens

HOSTILE_LENS = make_lens(HOSTILE, HOSTILE, target=" 日本", foil="[bold]")


class Terminal(io.StringIO):
    def isatty(self):
        return True


def encoded(lens, encoding, **options):
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding, newline="\n")
    render(lens, make_console(file), **options)
    file.flush()
    return file.buffer.getvalue().decode(encoding)


def written(file, lens, **options):
    render(lens, make_console(file), **options)
    return file.getvalue()


def test_terminal_gets_colour():
    assert "\x1b[" in written(Terminal(), make_lens())


@pytest.mark.parametrize("grid", [False, True])
def test_colour_adds_nothing_to_the_text_but_its_legend(grid):
    from rich.text import Text

    coloured = Text.from_ansi(written(Terminal(), make_lens(), grid=grid)).plain
    plain = written(io.StringIO(), make_lens(), grid=grid)
    lines = [line for line in coloured.splitlines() if not line.startswith("bold:")]
    assert "\n".join(lines) == plain.rstrip("\n")


def test_pipe_gets_plain_text():
    assert "\x1b" not in written(io.StringIO(), make_lens())


def test_no_color_means_plain_text(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b" not in written(Terminal(), make_lens())


def test_empty_no_color_counts_as_unset(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "")
    assert "\x1b[" in written(Terminal(), make_lens())


@pytest.mark.parametrize("columns", [None, "", "0", "x"])
def test_pipe_without_columns_cuts_nothing(monkeypatch, columns):
    monkeypatch.delenv("COLUMNS") if columns is None else monkeypatch.setenv("COLUMNS", columns)
    text = written(io.StringIO(), HOSTILE_LENS)
    assert "…" not in text
    assert "not shown" not in text
    assert "x" * 60 in text
    grid = written(io.StringIO(), HOSTILE_LENS, grid=True)
    assert "…" not in grid
    assert grid.count("embed") == 1
    assert max(map(len, text.splitlines())) < 500


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "ascii", "utf-8"])
@pytest.mark.parametrize("grid", [False, True])
def test_every_encoding_can_be_written(encoding, grid):
    text = encoded(HOSTILE_LENS, encoding, grid=grid, positions=range(15))
    assert ("日本" in text) == (encoding == "utf-8")
    assert (r"\u65e5\u672c" in text) == (encoding != "utf-8")
    assert ("é" in text) == (encoding != "ascii")
    assert ("─" in text) == (encoding == "utf-8")
    assert ("…" in text) == (encoding in ("cp1252", "utf-8"))


@pytest.mark.parametrize("grid", [False, True])
def test_no_control_character_gets_out(grid):
    raw = ("\x1b[31m", "\r", "\x00", "\x9b", "\u202e", "\t")
    lens = make_lens(raw, raw, target="\x1b]0;title\x07")
    text = written(io.StringIO(), lens, grid=grid, positions=range(6))
    assert set(text) - {"\n"} == {sign for sign in text if sign.isprintable()}
    assert r"\x1b[31m" in text


@pytest.mark.parametrize("width", [20, 40, 80, 200])
@pytest.mark.parametrize("grid", [False, True])
def test_nothing_is_wider_than_the_terminal(monkeypatch, width, grid):
    monkeypatch.setenv("COLUMNS", str(width))
    text = written(io.StringIO(), HOSTILE_LENS, grid=grid, positions=range(15))
    assert max(map(cell_len, text.splitlines())) <= width
    assert "embed" in text


def test_prompt_that_fits_no_line_is_cut(monkeypatch):
    lens = make_lens(tokens=("word ",) * 100)
    first = written(io.StringIO(), lens).splitlines()[0]
    assert first.startswith('logit lens of gpt2  "word word')
    assert first.endswith("…")
    assert len(first) == 80


def test_result_without_a_renderer_is_refused():
    @dataclass(frozen=True)
    class Other(Result):
        pass

    with pytest.raises(TypeError, match="Other has no table"):
        render(Other(make_lens().source, ()), make_console(io.StringIO()))


@pytest.mark.parametrize("columns", ["²", "9" * 5000, "-5", "x", "0", ""])
@pytest.mark.parametrize("terminal", [True, False])
def test_width_that_is_none(monkeypatch, columns, terminal):
    monkeypatch.setenv("COLUMNS", columns)
    monkeypatch.setenv("LINES", columns)
    file = Terminal() if terminal else io.StringIO()
    console = make_console(file)
    render(make_lens(), console)
    assert (console.width < 10_000) == terminal
