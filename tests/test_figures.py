"""figures/ holds what scripts/make_figures.py draws, and README.md shows it."""

import importlib.util
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def producers():
    spec = importlib.util.spec_from_file_location("figures", ROOT / "scripts/make_figures.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return set(module.PRODUCERS)


def test_every_picture_has_a_producer_and_every_producer_a_picture():
    pictures = {path.stem for path in (ROOT / "figures").glob("*.png")}
    assert pictures
    assert pictures == producers()


def test_the_readme_shows_every_picture():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert [name for name in producers() if f"(figures/{name}.png)" not in readme] == []


def test_pictures_are_small():
    assert [p.name for p in (ROOT / "figures").iterdir() if p.stat().st_size > 300_000] == []
