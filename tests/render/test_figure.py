import io
import os
import struct
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import matplotlib
import pytest
from matplotlib.figure import Figure

from resid.errors import ResidError
from resid.render.figure import figure, plot, save
from resid.results import Result

from .samples import HOSTILE, make_lens

ROOT = Path(__file__).parents[2]
BEGINNINGS = {"png": b"\x89PNG", "svg": b"<?xml", "pdf": b"%PDF"}
WORDS = ("The", " capital", " of", " France", " is", " Paris", ",", " and", " of", " Italy") * 2


def saved(lens, format="png", **options):
    file = io.BytesIO()
    save(lens, file, format, **options)
    return file.getvalue()


def pixels(png):
    return struct.unpack(">II", png[16:24])


def run(code, **environment):
    """Run code in a fresh interpreter, where nothing is imported yet."""
    tests = str(Path(__file__).parents[1])
    path = os.pathsep.join((str(ROOT), tests))
    inherited = {name: value for name, value in os.environ.items() if name != "DISPLAY"}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env=inherited | {"PYTHONPATH": path} | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("format", BEGINNINGS)
def test_suffix_decides_the_format(tmp_path, format):
    path = tmp_path / f"lens.{format.upper()}"
    save(make_lens(n_layers=2), path)
    assert path.read_bytes().startswith(BEGINNINGS[format])


@pytest.mark.parametrize("format", BEGINNINGS)
def test_same_result_same_bytes(format):
    lens = make_lens(HOSTILE[:5], HOSTILE, n_layers=2)
    assert saved(lens, format) == saved(lens, format)


def test_files_hold_no_date():
    assert b"CreationDate" not in saved(make_lens(n_layers=1), "pdf")
    assert b"date" not in saved(make_lens(n_layers=1), "svg")


@pytest.mark.parametrize("name", ["lens.jpg", "lens", "lens.html"])
def test_other_formats_are_refused(tmp_path, name):
    with pytest.raises(ResidError, match="written as png, svg, pdf, not"):
        save(make_lens(), tmp_path / name)
    assert not (tmp_path / name).exists()


@pytest.mark.parametrize("n_tokens", [5, 15])
def test_png_is_crisp_and_small(n_tokens):
    png = saved(make_lens(WORDS[:n_tokens]))
    width, height = pixels(png)
    assert 600 < width < 2000
    assert 600 < height < 1000
    assert len(png) < 250_000


def test_1024_tokens_stay_a_picture_of_bounded_size():
    width, height = pixels(saved(make_lens(("a", " b") * 512, n_layers=48, k=1)))
    assert max(width, height) < 5000


def test_svg_needs_no_font_and_keeps_no_script():
    svg = saved(make_lens(HOSTILE, HOSTILE, n_layers=1), "svg").decode()
    assert "<text" not in svg
    assert "</script>" not in svg.replace("<!-- </script>", "")


def test_result_without_a_figure_is_refused():
    @dataclass(frozen=True)
    class Other(Result):
        pass

    other = Other(make_lens().source, ())
    with pytest.raises(TypeError, match="Other has no figure"):
        figure(other)
    with pytest.raises(TypeError, match="Other has no figure"):
        plot(other, Figure().subplots())


def test_global_settings_stay_as_they_are():
    before = dict(matplotlib.rcParams)
    saved(make_lens(n_layers=1))
    plot(make_lens(n_layers=1), Figure().subplots())
    assert dict(matplotlib.rcParams) == before


def test_settings_of_the_user_do_not_reach_our_figures():
    lens = make_lens(n_layers=1)
    plain = saved(lens)
    theirs = {"text.usetex": True, "font.size": 30, "savefig.bbox": "tight", "axes.grid": True}
    with matplotlib.rc_context(theirs):
        assert saved(lens) == plain


def test_rendering_imports_neither_torch_nor_pyplot():
    code = """
import io, sys
import resid.render.data, resid.render.terminal, resid.render.figure
from render.samples import make_lens
lens = make_lens(n_layers=1, target=" Paris")
lens.to_json(), lens.to_csv(), lens.plot()
resid.render.terminal.render(lens, resid.render.terminal.make_console(io.StringIO()))
resid.render.figure.save(lens, io.BytesIO(), "png")
print(sorted({"torch", "transformers", "matplotlib.pyplot", "matplotlib"} & set(sys.modules)))
"""
    assert run(code) == "['matplotlib']\n"


def test_text_renderings_do_not_import_matplotlib():
    code = "import resid.render.data, resid.render.terminal, sys; print(*sys.modules)"
    modules = run(code).split()
    assert "resid.render.terminal" in modules
    assert "matplotlib" not in modules


@pytest.mark.parametrize(
    ("backend", "kept"),
    [
        ("TkAgg", "TkAgg"),
        ("module://matplotlib_inline.backend_inline", None),
        ("no such backend", None),
    ],
)
def test_saving_needs_no_backend(backend, kept):
    code = """
import io, os, resid.render.figure, matplotlib
from render.samples import make_lens
resid.render.figure.save(make_lens(n_layers=1), io.BytesIO(), "png")
print(os.environ["MPLBACKEND"])
print(dict.get(matplotlib.rcParams, "backend"))  # asking rcParams itself would resolve it
"""
    environment, global_backend = run(code, MPLBACKEND=backend).splitlines()
    assert environment == backend
    assert kept is None or global_backend == kept


def test_model_name_and_prompt_may_be_long():
    lens = make_lens(("word",) * 3)
    source = replace(lens.source, model="/a/very/long/folder" * 20, prompt="word " * 500)
    drawn = figure(replace(lens, source=source))
    assert len(drawn.texts) >= 4
    for text in drawn.texts:
        box = text.get_window_extent()
        assert 0 <= box.x0 < box.x1 <= drawn.bbox.width
        assert 0 <= box.y0 < box.y1 <= drawn.bbox.height
