import io
from dataclasses import replace

import numpy as np
import pytest
from rich.cells import cell_len
from rich.text import Text

from resid.errors import ResidError
from resid.render.terminal import make_console, render

from .samples import HOSTILE, make_lens, with_nan
from .test_terminal import Terminal


def lines(lens, **options):
    file = io.StringIO()
    render(lens, make_console(file), **options)
    return file.getvalue().splitlines()


def bold(lens, **options):
    file = Terminal()
    render(lens, make_console(file), **options)
    text = Text.from_ansi(file.getvalue())
    return [text.plain[s.start : s.end].strip() for s in text.spans if s.style.bold]


def body(lines, rule="─"):
    first = next(i for i, line in enumerate(lines) if line.startswith(rule))
    return lines[first + 1 : lines.index("", first)]


def test_lens_at_80_columns():
    names = np.array([" x", " yy", ","], object)
    ids = np.array([[2, 1, 0], [0, 1, 2], [1, 0, 2], [1, 2, 0]])[:, None]
    probs = np.array([[0.4, 0.3, 0.2], [0.104, 0.05, 9e-5], [0.3, 0.25, 0.01], [1, 0, 0]])
    lens = replace(
        make_lens(n_layers=3, tokens=("A",), k=3),
        top_ids=ids,
        top_tokens=names[ids],
        top_probs=probs[:, None],
        entropy=np.array([[10.5], [3], [2.349], [1e-9]]),
        kl_to_final=np.array([[7], [2.5], [0.071], [-1e-8]]),
        settled_at=("1.post",),
        flips=np.array([2]),
        margin=np.array([[0.288], [0.732], [0.182], [12.3]]),
    )
    assert lines(lens) == [
        'logit lens of gpt2  "A"',
        'next token after position 0, "A"',
        "",
        "                                                    KL to",
        "point   top tokens                         entropy  final  margin",
        "─────────────────────────────────────────────────────────────────",
        'embed   ","   .400  " yy" .300  " x" .200    10.50   7.00    0.29',
        '0.post  " x"  .104  " yy" .050  ","  9e-5     3.00   2.50    0.73',
        '1.post  " yy" .300  " x"  .250  ","  .010     2.35   0.07    0.18',
        '2.post  " yy" 1.00  ","      0  " x"    0     0.00   0.00   12.30',
        "",
        '" yy" settled at 1.post, after 2 flips; leads by 12.30 nats',
        "entropy, KL(final || point) and margin (first token over second) in nats",
        "last row = logits, error 2e-6 (tolerance 1e-5)",
    ]


def test_points_run_from_embed_to_the_last_block():
    labels = [line.split()[0] for line in body(lines(make_lens(n_layers=48)))]
    assert labels == ["embed", *(f"{i}.post" for i in range(48))]


def test_only_the_last_position_unless_asked():
    text = "\n".join(lines(make_lens()))
    assert 'next token after position 4, " is"' in text
    assert "position 3" not in text
    asked = "\n".join(lines(make_lens(), positions=[0, 2]))
    assert 'next token after position 0, "The"' in asked
    assert 'next token after position 2, " of"' in asked
    assert asked.count("embed") == 2
    assert asked.count("last row = logits") == 1


def test_positions_are_the_prompts_not_the_arrays():
    lens = make_lens()
    lens = replace(lens, source=replace(lens.source, ids=(1,) * 9, tokens=tuple("abcdefghi")))
    lens = replace(lens, positions=(2, 3, 5, 7, 8))
    assert 'next token after position 5, "f"' in lines(lens, positions=[5])
    with pytest.raises(ResidError, match="position 4 was not decoded; these were: 2, 3, 5, 7, 8"):
        lines(lens, positions=[4])


def test_target_and_foil_show_rank_and_probability():
    lens = make_lens(target=" Paris", foil=" Rome")
    table = lines(lens)
    assert table[3].split() == ["KL", "to", '"', 'Paris"', '"', 'Rome"']
    assert table[4].endswith("rank  prob   rank  prob")
    assert body(table)[-1].split()[-4:] == ["1", ".497", "2", ".248"]
    assert body(table)[0].split()[-4:] == ["20000", "2e-5", "40000", "1e-5"]


@pytest.mark.parametrize(
    ("width", "missing"),
    [
        (20, "top tokens 2 to 5, margin, entropy, foil, KL to final, target"),
        (40, "top tokens 2 to 5, margin, entropy, foil, KL to final"),
        (80, "top tokens 2 to 5, margin"),
    ],
)
def test_what_does_not_fit_is_named(monkeypatch, width, missing):
    monkeypatch.setenv("COLUMNS", str(width))
    text = " ".join(line.strip() for line in lines(make_lens(target=" Paris", foil=" Rome")))
    assert f"not shown at this width: {missing} " in text


def test_wide_terminal_shows_everything(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    table = lines(make_lens(target=" Paris", foil=" Rome"))
    assert not any("not shown" in line for line in table)
    assert all(line.count('"') == 10 for line in body(table))


@pytest.mark.parametrize("position", range(len(HOSTILE)))
def test_columns_stay_aligned_whatever_the_tokens(position):
    table = lines(make_lens(HOSTILE, HOSTILE, n_layers=30), positions=[position])
    rule = next(line for line in table if line.startswith("─"))
    rows = body(table)
    assert len(rows) == 31
    # The last column is set to the right, so that all rows end where the rule does.
    assert {cell_len(row) for row in rows} == {cell_len(rule)}


def test_long_token_is_cut_with_an_ellipsis():
    table = lines(make_lens(HOSTILE, ("y" * 60,), k=1))
    assert '"' + "y" * 22 + "… " in body(table)[0]
    table = lines(make_lens(HOSTILE, ("本" * 60,), k=1))
    assert '"' + "本" * 11 + "… " in body(table)[0]


def test_markup_in_tokens_is_text():
    text = "\n".join(lines(make_lens(("[bold]", "[/]"), ("[bold]", "[red]x[/red]", "[/]"))))
    assert '"[bold]"' in text
    assert '"[red]x[/red]"' in text
    assert '"[/]"' in text


def test_top_token_is_bold():
    lens = make_lens()
    assert bold(lens)[2:] == [token.strip() for token in lens.top_tokens[:, 4, 0]]


def test_last_point_that_is_left_out_is_not_called_the_last_row():
    lens = make_lens()
    names = [*lens.points[:-1], "10.mid"]
    text = lines(replace(lens, points=tuple(names), settled_at=("embed",) * 5))
    assert text[-1] == "last point = logits, error 2e-6 (tolerance 1e-5)"


def test_not_finite_is_loud():
    lens = with_nan(make_lens(target=" Paris"), slice(3, 6), 4)
    table = lines(lens)
    assert [row.split().count("n/a") for row in body(table)] == [0] * 3 + [6] * 3 + [0] * 7
    assert "not settled: not every point is finite" in table
    assert table[-1] == (
        "FAILED: last row = logits, error n/a (tolerance 1e-5): 2.post at position 4"
    )
    file = Terminal()
    render(lens, make_console(file))
    assert "\x1b[1;31mFAILED" in file.getvalue()


def test_one_position_one_point_one_token():
    lens = make_lens(tokens=("The",), n_layers=0, k=1)
    assert len(body(lines(lens))) == 1
    assert len(body(lines(lens, grid=True))) == 2
    assert "settled at embed, without a flip" in "\n".join(lines(lens))


def test_grid_has_the_last_block_on_top():
    grid = lines(make_lens(), grid=True)
    labels = [line.split()[0] for line in body(grid)]
    assert labels == [*(f"{i}.post" for i in reversed(range(12))), "embed", "settled"]
    assert grid[-1] == "top row = logits, error 2e-6 (tolerance 1e-5)"


def test_grid_repeats_points_beside_every_group(monkeypatch):
    grid = lines(make_lens(), grid=True)
    heads = [line.split() for line in grid if line.strip()[:1].isdigit() and "post" not in line]
    assert heads == [["0", "1", "2", "3"], ["4"]]
    monkeypatch.setenv("COLUMNS", "200")
    wide = lines(make_lens(), grid=True)
    assert wide[3].split() == ["0", "1", "2", "3", "4"]
    assert wide[4].split('"')[1::2] == ["The", " capital", " of", " France", " is"]


def test_grid_keeps_wide_tokens_aligned():
    groups = "\n".join(lines(make_lens(HOSTILE, HOSTILE), grid=True)).split("\n\n")[1:-1]
    assert groups
    for group in groups:
        numbers, tokens, _rule, *rows, _settled = group.splitlines()
        assert len(rows) == 13
        starts = [i for i in range(len(numbers)) if numbers[i] != " " and numbers[i - 1] == " "]
        for line in (tokens, *rows):
            cells = "".join(sign + "\0" * (cell_len(sign) - 1) for sign in line)
            assert all(cells[start] == '"' and cells[start - 1] == " " for start in starts)


@pytest.mark.parametrize(
    ("show", "title", "number"),
    [("prob", "its probability", ".95"), ("entropy", "entropy, nats", "0.55"),
     ("kl", "KL(final || point), nats", "0.00"), ("rank", 'rank of " Paris"', "1")],
)  # fmt: skip
def test_grid_shows_the_chosen_quantity(show, title, number):
    grid = lines(make_lens(target=" Paris"), grid=True, show=show)
    assert grid[1] == f"top token at every point and position, with {title}"
    assert body(grid)[0].split()[-1] == number


def test_rank_needs_a_target():
    with pytest.raises(ResidError, match="rank of which token"):
        lines(make_lens(), grid=True, show="rank")
    with pytest.raises(ResidError, match="choose one of prob, entropy, kl, rank"):
        lines(make_lens(), grid=True, show="nonsense")


def test_grid_names_where_every_position_settled():
    lens = make_lens()
    grid = lines(lens, grid=True)
    settled = [line.removeprefix("settled") for line in grid if line.startswith("settled")]
    assert " ".join(settled).split() == list(lens.settled_at)


def test_grid_sets_the_token_that_really_follows_in_bold():
    lens = make_lens()
    ids = (0, *lens.top_ids[-1, :-1, 0].tolist())
    lens = replace(lens, source=replace(lens.source, ids=ids))
    tokens = bold(lens, grid=True)[2:]
    assert sorted(set(tokens)) == sorted({t.strip() for t in lens.top_tokens[-1, :4, 0]})


def test_grid_of_1024_tokens():
    grid = lines(make_lens(tokens=("a", " b") * 512, n_layers=2), grid=True)
    assert sum(line.startswith("embed") for line in grid) > 100
    assert any(line.split()[-1:] == ["1023"] for line in grid)


def test_grid_leaves_the_number_of_a_cell_that_is_not_finite_out():
    grid = lines(with_nan(make_lens(), slice(3, 6), 0), grid=True)
    assert [line.split()[1] for line in body(grid)[7:10]] == ["n/a"] * 3
