"""Parameter counts as tables and figures."""

import io
from dataclasses import replace
from itertools import pairwise

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from rich.cells import cell_len

from resid.layout import Sizes, known
from resid.readings import parameters
from resid.readings.param_count import count, param_count
from resid.render import parts
from resid.render.figure import figure, save
from resid.render.figure.params import COLOURS, draw_params, draw_shares
from resid.render.figure.style import styled
from resid.render.terminal import make_console, render
from resid.results import Check, ParamComparison

HOSTILE = "$x$ \x1b[31m <b> 日本"
FIVE = ("distilgpt2", "gpt2", "gpt2-medium", "gpt2-large", "gpt2-xl")


def odd(name="odd", **changes):
    """A count with every part, and one block that differs from the others."""
    sizes = Sizes(5, 4, 64, 100, 500, 77, cross_attention=True, tied=False)
    found = count(parameters.published(name, replace(sizes, **changes)))
    blocks = list(found.blocks)
    blocks[2] = replace(blocks[2], mlp_weights=1)
    return replace(found, blocks=tuple(blocks), other_parts={"lora_A": 51200, "v_head": 65})


def together(*names):
    return ParamComparison.of([param_count(name) for name in names])


def table(result, monkeypatch, width=80):
    monkeypatch.setenv("COLUMNS", str(width))
    file = io.StringIO()
    render(result, make_console(file))
    return file.getvalue()


GPT2 = """\
parameters of gpt2  12 blocks, d_model 768, d_vocab 50,257, n_ctx 1,024
counted from the published configuration, by arithmetic

part                 parameters    share
────────────────────────────────────────────────────────────────────────────────
token embedding      38,597,376   31.02%  █████████████████
position embedding      786,432    0.63%
12 blocks            85,054,464   68.35%  ██████████████████████████████████████
  attention          28,348,416   22.78%  █████████████
  MLP                56,669,184   45.54%  █████████████████████████
  norms                  36,864    0.03%
ln_final                  1,536   <0.01%
unembedding                tied
total               124,439,808  100.00%

block               attention               MLP        norms  block total
─────────────────────────────────────────────────────────────────────────
0-11 (each)  2,362,368 33.33%  4,722,432 66.63%  3,072 0.04%    7,087,872

MLP to attention  2 in weights, 1.999025 with biases
memory            497.8 MB in float32, 248.9 MB in 16 bits; stored in float32
FLOPs per token   284,812,800 in a forward pass of 1,024 tokens
                  59.6% blocks, 13.3% between positions, 27.1% unembedding

parts = distinct parameters, exactly
"""


def test_the_table_of_gpt2(monkeypatch):
    assert table(param_count("gpt2"), monkeypatch) == GPT2


def test_blocks_that_differ_have_rows_of_their_own(monkeypatch):
    found = odd()
    assert [label for label, _ in parts.runs(found.blocks)] == ["0-1 (each)", "2", "3-4 (each)"]
    text = table(found, monkeypatch, 120)
    for label in ("0-1 (each)", "2 ", "3-4 (each)", "cross-attention", "other: lora_A", "51,200"):
        assert f"\n{label}" in text.replace("\n  ", "\n") or label in text
    assert [label for label, _ in parts.runs(found.blocks[:1])] == ["0"]


def test_unembedding_is_a_number_tied_or_none(monkeypatch):
    for changes, word in (({}, "32,000"), ({"tied": True}, "tied"), ({"has_head": False}, "none")):
        lines = table(odd(**changes), monkeypatch).splitlines()
        (line,) = (line for line in lines if line.startswith("unembedding"))
        assert line.split()[1] == word


def test_three_models_side_by_side_in_80_columns(monkeypatch):
    text = table(together("gpt2", "gpt2-medium", "gpt2-xl"), monkeypatch)
    heads, total, ratio = (
        next(line.split() for line in text.splitlines() if word in line)
        for word in ("gpt2-xl", "total", "with biases")
    )
    assert heads == ["gpt2", "gpt2-medium", "gpt2-xl"]
    assert total == ["total", "124,439,808", "354,823,168", "1,557,611,200"]
    assert ratio == ["with", "biases", "1.999025", "1.999268", "1.999532"]
    assert text.count("parts = distinct parameters") == 1


def test_models_that_do_not_fit_follow_below(monkeypatch):
    five = together(*FIVE)
    assert table(five, monkeypatch, 80).count("token embedding") == 2
    wide = table(five, monkeypatch, 200)
    assert wide.count("token embedding") == 1
    assert max(map(len, wide.splitlines())) > 110


@pytest.mark.parametrize("width", [20, 40, 80, 200])
@pytest.mark.parametrize("result", [odd(HOSTILE), together(*FIVE), param_count("gpt2-xl")])
def test_nothing_is_wider_than_the_terminal(monkeypatch, width, result):
    text = table(result, monkeypatch, width)
    assert max(map(cell_len, text.splitlines())) <= width
    assert "\x1b" not in text
    assert "embedding" in text


@pytest.mark.parametrize("encoding", ["latin-1", "ascii"])
def test_every_encoding_can_be_written(encoding):
    file = io.TextIOWrapper(io.BytesIO(), encoding=encoding, newline="\n")
    for result in (odd(HOSTILE), ParamComparison.of([odd(HOSTILE), param_count("gpt2")])):
        render(result, make_console(file))
    file.flush()
    assert rb"\u65e5" in file.buffer.getvalue()


def test_failed_check_is_told(monkeypatch):
    check = Check("parts_add_up", 1.0, 0.0, False, "7 in parts, 8 distinct")
    broken = replace(param_count("gpt2"), checks=(check,))
    wanted = "FAILED: parts = distinct parameters, error 1 (tolerance 0): 7 in parts, 8 distinct"
    for result in (broken, ParamComparison.of([param_count("gpt2-xl"), broken])):
        assert wanted in table(result, monkeypatch, 200)


def drawn(result):
    made = figure(result)
    FigureCanvasAgg(made).draw()
    return made


def bars(ax):
    """[row][kind] how wide every piece is, from the bottom."""
    colours = {to_hex(colour): kind for kind, colour in COLOURS.items()}
    rows = {}
    for patch in ax.patches:
        row = round(patch.get_y() + patch.get_height() / 2)
        kind = colours[to_hex(patch.get_facecolor())]
        rows.setdefault(row, {})[kind] = (patch.get_x(), patch.get_width())
    return [rows[i] for i in sorted(rows)]


def end(row):
    return max(left + width for left, width in row.values())


def labels(ax):
    return [label.get_text() for label in ax.get_yticklabels()]


def overlapping(made):
    """Pairs of texts that touch each other, in the figure as it is saved."""
    made.set_dpi(120)
    with styled():
        FigureCanvasAgg(made).draw()
        return _overlapping(made)


def _overlapping(made):
    found = []
    for ax in made.axes:
        texts = [*ax.texts, *ax.get_xticklabels(), *ax.get_yticklabels(), ax.xaxis.label]
        texts += ax.get_legend().get_texts() if ax.get_legend() else []
        found += [text for text in texts if text.get_text()]
    found += made.texts
    boxes = [(text.get_text(), text.get_window_extent()) for text in found]
    edge = made.bbox
    assert all(edge.x0 <= box.x0 and box.x1 <= edge.x1 for _, box in boxes)
    assert all(edge.y0 <= box.y0 and box.y1 <= edge.y1 for _, box in boxes)
    pairs = [(a, b) for i, a in enumerate(boxes) for b in boxes[:i]]
    return [(a[0], b[0]) for a, b in pairs if a[1].shrunk(0.9, 0.8).overlaps(b[1].shrunk(0.9, 0.8))]


def test_the_places_of_a_model_with_the_embedding_at_the_bottom():
    numbers, shares = drawn(param_count("gpt2")).axes
    blocks = [f"block {layer}" for layer in range(12)]
    assert labels(numbers) == ["token embedding", "position embedding", *blocks, "ln_final"]
    assert labels(shares) == ["blocks", "whole model"]
    widths = [sum(width for _, width in row.values()) for row in bars(numbers)]
    assert widths[0] == pytest.approx(38.597376)
    assert widths[2:14] == pytest.approx([7.087872] * 12)
    assert numbers.get_xlabel() == "parameters, millions"
    texts = [text.get_text() for text in numbers.texts]
    assert texts == ["38,597,376", "786,432", "7,087,872 each", "1,536"]


def test_pieces_of_a_bar_lie_end_to_end():
    for result in (odd(), together(*FIVE)):
        for ax in drawn(result).axes:
            rows = bars(ax)
            assert len(rows) >= 2
            for row in rows:
                pieces = sorted(row.values())
                assert pieces[0][0] == 0
                for (left, width), (following, _) in pairwise(pieces):
                    assert following == pytest.approx(left + width)


def test_shares_of_several_models_fill_their_bars():
    numbers, shares = drawn(together(*FIVE)).axes
    assert labels(shares) == labels(numbers) == list(reversed(FIVE))
    assert [end(row) for row in bars(shares)] == pytest.approx([100] * 5)
    assert end(bars(numbers)[0]) == pytest.approx(1557.6112)
    assert bars(shares)[0]["mlp"][1] == pytest.approx(63.137, abs=5e-4)
    assert {"63.1%", "31.6%", "47.1%"} <= {text.get_text() for text in shares.texts}


@pytest.mark.parametrize("name", ["gpt2", "gpt2-xl"])
def test_no_text_overlaps_another(name):
    made = drawn(param_count(name))
    assert len(labels(made.axes[0])) == known(name).n_layers + 3
    assert overlapping(made) == []


def test_no_text_overlaps_another_among_several():
    assert overlapping(drawn(together(*FIVE))) == []
    assert overlapping(drawn(ParamComparison.of([odd("a" * 300), odd(HOSTILE)]))) == []
    assert overlapping(drawn(odd())) == []


def test_an_overlap_would_be_seen():
    made = drawn(param_count("gpt2"))
    made.axes[0].text(38.6, 0.1, "38,597,376")
    assert overlapping(made)


def test_caption_names_source_and_check():
    lines = [text.get_text() for text in drawn(together("gpt2", "mini")).texts]
    assert lines[0] == "Parameters of 2 models"
    assert lines[1] == "resid 0.1.0, gpt2, mini"
    note = " ".join(lines[2:-1])
    assert "gpt2: counted from the published configuration, by arithmetic." in note
    assert "mini: counted from config.json and the header of model.safetensors." in note
    assert lines[-1] == "parts = distinct parameters, exactly"
    note = " ".join(text.get_text() for text in drawn(param_count("gpt2")).texts)
    assert "Counted from the published configuration, by arithmetic. 124,439,808" in note


def test_legend_names_what_is_there():
    def legend(result):
        return {text.get_text() for text in drawn(result).axes[1].get_legend().get_texts()}

    plain = {"token embedding", "position embedding", "attention", "MLP", "norms"}
    assert legend(param_count("gpt2")) == plain
    assert legend(odd()) == plain | {"cross-attention", "unembedding", "other"}


def test_hostile_names_are_drawn_as_they_are():
    made = drawn(ParamComparison.of([odd(HOSTILE), param_count("gpt2")]))
    (name,) = (label for label in labels(made.axes[0]) if label != "gpt2")
    assert name == r"$x$ \x1b[31m <b> \u65e5…"


def test_plot_draws_on_the_axes_that_are_given():
    made = Figure(figsize=(4, 3))
    left, right = made.subplots(1, 2)
    found = param_count("gpt2-xl")
    assert found.plot(left) is left
    assert draw_shares(found, right, legend=False) is right
    assert draw_params(together("gpt2", "mini"), right) is right
    FigureCanvasAgg(made).draw()
    assert 5 < len(labels(left)) < 30


@pytest.mark.parametrize("format", ["png", "svg", "pdf"])
def test_same_count_same_file(format):
    files = [io.BytesIO(), io.BytesIO()]
    for file in files:
        save(together("gpt2", "gpt2-xl"), file, format=format)
    assert files[0].getvalue() == files[1].getvalue()
    assert len(files[0].getvalue()) > 4000
