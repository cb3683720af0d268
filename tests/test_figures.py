"""figures/ holds what scripts/make_figures.py draws, and README.md shows it."""

import importlib.util
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def figures():
    spec = importlib.util.spec_from_file_location("figures", ROOT / "scripts/make_figures.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def producers():
    return set(figures().PRODUCERS)


def test_every_picture_has_a_producer_and_every_producer_a_picture():
    pictures = {path.stem for path in (ROOT / "figures").glob("*.png")}
    assert pictures
    assert pictures == producers()


def test_the_readme_shows_every_picture():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [name for name in producers() if f"(figures/{name}.png)" not in readme] == []


def test_pictures_are_small():
    assert [p.name for p in (ROOT / "figures").iterdir() if p.stat().st_size > 300_000] == []


def test_the_picture_of_what_was_followed_is_not_the_grid(tmp_path, monkeypatch):
    module = figures()
    monkeypatch.setattr(module, "FIGURES", tmp_path)
    module.main(["followed"])
    lines = (tmp_path / "followed.png").read_bytes()
    monkeypatch.setattr(module, "OPTIONS", {})
    module.main(["followed"])
    assert (tmp_path / "followed.png").read_bytes() != lines
