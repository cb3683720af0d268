import io
from dataclasses import replace

import numpy as np
import pytest
from rich.cells import cell_len

from resid.render.norm_summary import name_positions, percent, share
from resid.render.terminal import make_console, render

from .norm_samples import MASSIVE, make_norms, with_hole
from .samples import HOSTILE
from .test_terminal import Terminal


def lines(norms):
    file = io.StringIO()
    render(norms, make_console(file))
    return file.getvalue().splitlines()


def body(lines):
    first = next(i for i, line in enumerate(lines) if line.startswith("─"))
    return lines[first + 1 : lines.index("", first)]


def test_norms_at_80_columns():
    assert lines(make_norms(n_layers=3)) == [
        'stream norms of gpt2  "The capital of France is"',
        "L2 norm over positions 1 to 4; position 0 apart",
        "",
        "        L2 norm                           wrote                cosine to",
        "point   median range       growth  pos 0  attention  MLP       embed  final",
        "───────────────────────────────────────────────────────────────────────────",
        "embed     12.5 11.0..14.0           10.0                        1.00    .10",
        "0.post    15.0 13.2..16.8   ×1.20   12.0  2.50 20%   7.50 60%    .70    .40",
        "1.post    18.0 15.8..20.2   ×1.20   14.4  3.00 20%   9.00 60%    .40    .70",
        "2.post    21.6 19.0..24.2   ×1.20   17.3  3.60 20%   10.8 60%    .10   1.00",
        "",
        "grows ×1.200 per layer from 0.post to 2.post (R² .98, position 0 left out)",
        "the norm grows on 100% of the steps from embed to 2.post",
        "no dimension holds 5% of the squared norm and 10 times the median magnitude",
        "attention, MLP: median norm of what the block wrote, and its median size beside ",
        "the stream that it was added to",
        "not shown at this width: centred norm, times embed, cosines of the writes, ",
        "cosine to previous, bar",
        "embed + all writes = last point, error 2e-7 (tolerance 1e-4)",
    ]


@pytest.mark.parametrize("mids", [False, True])
@pytest.mark.parametrize("n_layers", [1, 3, 48])
@pytest.mark.parametrize("width", [40, 80, 120, 200])
def test_rows_are_aligned_and_fit(monkeypatch, width, n_layers, mids):
    monkeypatch.setenv("COLUMNS", str(width))
    norms = make_norms(n_layers=n_layers, mids=mids)
    table = lines(norms)
    assert [line.split()[0] for line in body(table)] == list(norms.points)
    rule = next(line for line in table if line.startswith("─"))
    assert cell_len(rule) <= width
    assert all(cell_len(row) <= cell_len(rule) for row in body(table))
    if width >= 80:  # The last column is set to the right: all rows end where the rule does.
        assert {cell_len(row) for row in body(table)} == {cell_len(rule)}


def test_wide_terminal_shows_everything(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    table = lines(make_norms())
    assert not any("not shown" in line for line in table)
    assert body(table)[-1].split()[:7] == [
        "11.post", "111", "98.1..125", "█" * 24, "×1.20", "89.2", "100",
    ]  # fmt: skip
    assert body(table)[-1].split()[-6:] == ["-.10", ".40", ".95", ".10", "1.00", "2.00"]


def test_bars_begin_at_zero(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    norms = make_norms(n_layers=1)
    norms = replace(norms, l2=np.array([[1.0], [2.0]]) * np.ones(5))
    assert [row.count("█") for row in body(lines(norms))] == [12, 24]


def test_latin_1_has_bars_and_factors_too():
    file = io.TextIOWrapper(io.BytesIO(), encoding="ascii", newline="\n")
    render(make_norms(), make_console(file))
    file.flush()
    text = file.buffer.getvalue().decode("ascii", "strict")
    assert "x1.20" in text
    assert "×" not in text


def test_mids_answer_for_attention_and_posts_for_the_mlp():
    rows = [line.split() for line in body(lines(make_norms(n_layers=2, mids=True)))]
    assert ["20%" in row for row in rows] == [False, True, False, True, False]
    assert ["60%" in row for row in rows] == [False, False, True, False, True]


def test_all_positions_together_where_none_is_left_out():
    table = lines(make_norms(excluded=()))
    assert table[1] == "L2 norm over positions 0 to 4"
    assert not any("pos 0" in line for line in table)
    assert any("(R² .98, all positions)" in line for line in table)


def test_several_positions_apart():
    table = lines(make_norms(excluded=(0, 3)))
    assert table[1] == "L2 norm over positions 1, 2, 4; positions 0, 3 apart"
    assert "left out" in table[4]
    assert any("positions 0, 3 left out)" in line for line in table)


def test_one_token():
    table = lines(make_norms(tokens=("The",)))
    assert table[1] == "L2 norm over position 0"
    assert "no growth per layer: no position is left (position 0 left out)" in table
    assert not any("range" in line or "steps" in line for line in table)
    assert len(body(table)) == 13


def test_massive_activations_are_named_by_dimension(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    table = lines(make_norms(outliers=MASSIVE))
    assert (
        "massive activation in dimension 447: 3051 at 8.post, position 0 (94% of the squared "
        "norm); at position 0, in 2 points" in table
    )
    assert (
        "outlier in dimension 64: -25.0 at 3.post, position 1 (6% of the squared norm); "
        "at positions 1, 3, in 2 points" in table
    )


def test_many_outlier_dimensions_are_counted():
    outliers = tuple(replace(MASSIVE[2], dim=dim) for dim in range(9))
    assert "and 6 more outlier dimensions" in lines(make_norms(outliers=outliers))


def test_not_finite_is_loud():
    norms = with_hole(make_norms())
    table = lines(norms)
    assert ["n/a" in row for row in body(table)] == [False] * 2 + [True] * 11
    assert "no growth per layer: not every norm is finite (position 0 left out)" in table
    assert "FAILED: every vector is finite, error" in "\n".join(table)
    assert "1.mlp_out at position 0" in " ".join(table[-2:])
    file = Terminal()
    render(norms, make_console(file))
    assert "\x1b[1;31mFAILED" in file.getvalue()


def test_cosine_without_a_meaning_is_left_empty():
    norms = make_norms(n_layers=2)
    norms = replace(norms, cosine_to_embed=norms.cosine_to_embed * np.nan)
    assert not any("n/a" in line for line in lines(norms))


def test_hostile_tokens():
    norms = make_norms(tokens=HOSTILE)
    assert len(body(lines(norms))) == 13


def test_positions_in_words():
    assert name_positions([0]) == "position 0"
    assert name_positions([0, 1, 3, 4, 5, 9]) == "positions 0, 1, 3 to 5, 9"
    assert name_positions(range(0, 40, 2)) == "positions 0, 2, 4, 6, 8, ..., 38"


def test_numbers_in_words():
    spelled = [percent(value) for value in (0, 0.004, 0.31, 8.22, 12.4, float("nan"))]
    assert spelled == ["0%", "0.4%", "31%", "822%", "12x", "n/a"]
    spelled = [share(value) for value in (1, -1, 0.999, 0.5, -0.034, -0.001)]
    assert spelled == ["1.00", "-1.00", "1.00", ".50", "-.03", ".00"]
