"""README.md is run: its commands, its Python, its links."""

import importlib.util
import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def refresher():
    spec = importlib.util.spec_from_file_location("refresh", ROOT / "scripts/refresh_readme.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def without_numbers(text):
    """Numbers move in their last digit between machines, and runs of spaces and rules with them."""
    text = re.sub(r"[-+]?\d*\.?\d+(e-?\d+)?", "#", text)
    return re.sub(r"[ ─]+", " ", text)


def test_the_outputs_shown_are_those_of_the_program():
    assert "$ resid lens" in README
    assert without_numbers(refresher().refreshed(README)) == without_numbers(README)


def test_the_comparison_would_notice_another_output():
    other = README.replace('" Paris"', '" Lyon"')
    assert other != README
    assert without_numbers(other) != without_numbers(README)


def test_the_python_shown_runs(tmp_path, monkeypatch):
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert blocks
    monkeypatch.chdir(tmp_path)
    for block in blocks:
        exec(compile(block, "README.md", "exec"), {})


def test_every_picture_and_file_that_is_linked_exists():
    links = [link for link in re.findall(r"\]\(([^)#]+)\)", README) if "://" not in link]
    assert any(link.startswith("figures/") for link in links)
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_every_command_is_shown():
    from resid.commands import cli

    missing = [name for name in cli.commands if f"resid {name}" not in README]
    assert missing == []


def test_the_file_tree_names_every_module():
    tree = re.search(r"```text\nresid/\n(.*?)```", README, re.DOTALL)[1]
    modules = {path.stem for path in (ROOT / "resid").glob("*.py")} - {"__init__", "__main__"}
    folders = {path.name for path in (ROOT / "resid").iterdir() if (path / "__init__.py").exists()}
    assert {name for name in modules | folders if name not in tree} == set()


def test_the_supported_versions_are_those_of_the_package():
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert re.search(r"transformers>=(\d+\.\d+)", project)[1] in README
    assert re.search(r'requires-python = ">=(\d+\.\d+)"', project)[1] in README
