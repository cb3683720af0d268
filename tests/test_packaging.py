"""What an installed resid says of itself, and that its public names are there."""

import ast
import importlib.metadata
import os
import re
import sys
import zipfile
from pathlib import Path

import pytest

import resid

ROOT = Path(__file__).parents[1]
PYPROJECT = ROOT / "pyproject.toml"
SOURCES = Path(resid.__file__).parent
# What is imported without being declared, and the declared package that always brings it.
BROUGHT_ALONG = {
    "safetensors": "transformers",
    "huggingface_hub": "transformers",
    "markupsafe": "jinja2",
}


def test_version_is_one() -> None:
    declared = re.search(r'^version = "(.+)"$', PYPROJECT.read_text("utf-8"), re.MULTILINE)
    assert declared is not None
    assert resid.__version__ == declared[1]
    assert importlib.metadata.version("resid") == declared[1]


@pytest.mark.parametrize("name", resid.__all__)
def test_public_name_is_there(name: str) -> None:
    assert getattr(resid, name) is not None
    assert name in dir(resid)


@pytest.mark.parametrize("name", resid._PUBLIC)
def test_public_name_comes_from_where_it_is_defined(name: str) -> None:
    assert f"{getattr(resid, name).__module__}.".startswith(f"{resid._PUBLIC[name]}.")


def test_type_checkers_see_the_public_names() -> None:
    tree = ast.parse(Path(resid.__file__).read_text("utf-8"))
    [block] = [node for node in tree.body if isinstance(node, ast.If)]
    seen = {
        alias.name: node.module
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert seen == resid._PUBLIC


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'resid' has no attribute 'logit_lense'"):
        _ = resid.logit_lense


# --- dependencies ---------------------------------------------------------------------------------


def declared() -> set[str]:
    text = PYPROJECT.read_text("utf-8")
    listed = re.search(r"^dependencies = \[(.*?)^\]", text, re.MULTILINE | re.DOTALL)
    assert listed is not None
    return set(re.findall(r'"([\w-]+)', listed[1]))


def imported(sources: dict[str, str]) -> dict[str, set[str]]:
    """The top-level names of all foreign imports, and the modules that import each."""
    found: dict[str, set[str]] = {}
    for by, source in sources.items():
        for node in ast.walk(ast.parse(source)):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level:
                names = [node.module or ""]
            for name in names:
                found.setdefault(name.split(".")[0], set()).add(by)
    return {name: by for name, by in found.items() if name not in sys.stdlib_module_names}


def ours() -> dict[str, str]:
    return {
        str(path.relative_to(SOURCES)): path.read_text("utf-8") for path in SOURCES.rglob("*.py")
    }


def test_all_that_is_imported_is_declared_and_all_that_is_declared_is_imported() -> None:
    foreign = set(imported(ours())) - {"resid"}
    assert foreign == declared() | set(BROUGHT_ALONG)


@pytest.mark.parametrize(("name", "bringer"), BROUGHT_ALONG.items())
def test_what_is_not_declared_is_brought_along(name: str, bringer: str) -> None:
    assert bringer in declared()
    required = importlib.metadata.requires(bringer) or []
    plain = {re.split(r"[^\w-]", line)[0].lower().replace("-", "_") for line in required
             if "extra ==" not in line}  # fmt: skip
    assert name in plain
    assert name in PYPROJECT.read_text("utf-8").partition("dependencies = [")[0]


def test_an_import_in_a_function_is_seen() -> None:
    assert imported({"a.py": "def f():\n    import torch.nn\n    from os import path"}) == {
        "torch": {"a.py"}
    }


def test_the_readme_has_the_licence_and_the_use_of_every_dependency() -> None:
    section = (ROOT / "README.md").read_text("utf-8").partition("## Dependencies")[2]
    rows = re.findall(r"^\| (.+?) \| (.+) \| (.+) \|$", section.partition("\n## ")[0], re.MULTILINE)
    table = {name: licence for names, _, licence in rows[1:] for name in names.split(", ")}
    assert set(table) == declared() | set(BROUGHT_ALONG)
    for name, licence in table.items():
        about = importlib.metadata.metadata(name)
        classifiers = [c for c in about.get_all("Classifier") or [] if c.startswith("License")]
        stated = " ".join(
            [about.get("License-Expression") or "", *classifiers, about.get("License") or ""]
        )
        family = licence.partition("-")[0]
        assert family in stated or {"PSF": "Python Software Foundation"}.get(family, "?") in stated


def test_only_the_hub_is_asked_anything() -> None:
    """No telemetry: what can open a connection is imported where models are looked for alone."""
    network = {"huggingface_hub", "requests", "httpx", "aiohttp"}
    foreign = imported(ours())
    by = set().union(*(foreign.get(name, set()) for name in network))
    for file, source in ours().items():
        if re.search(r"^\s*(import|from) (urllib|http|socket|ssl|ftplib|smtplib)\b", source, re.M):
            by.add(file)
    assert by == {"hub.py", str(Path("readings", "parameters.py"))}


# --- the wheel ------------------------------------------------------------------------------------

MOST_BYTES = 12_000_000
INSIDE = {
    "resid/py.typed",
    "resid/bundled/mini/MODEL_CARD.md",
    "resid/bundled/mini/config.json",
    "resid/bundled/mini/model.safetensors",
    "resid/bundled/mini/tokenizer.json",
    "resid/bundled/mini/tokenizer_config.json",
}
KINDS = {".py", ".typed", ".js", ".css", ".j2", ".json", ".md", ".safetensors"}


def expected() -> set[str]:
    """Everything of the package in this folder that is not made by running it."""
    files = (
        path for path in SOURCES.rglob("*") if path.is_file() and "__pycache__" not in path.parts
    )
    return {f"resid/{path.relative_to(SOURCES).as_posix()}" for path in files}


def faults_of_wheel(names: set[str], size: int) -> list[str]:
    """What is missing in a wheel with these files, and what should not be in it."""
    about = {name for name in names if ".dist-info/" in name}
    package = names - about
    found = [f"lacks {name}" for name in sorted((expected() | INSIDE) - package)]
    found += [f"has {name}" for name in sorted(package - expected())]
    found += [f"has {name}" for name in sorted(package) if Path(name).suffix not in KINDS]
    if not any(name.endswith("/LICENSE") for name in about):
        found.append("lacks LICENSE")
    if size > MOST_BYTES:
        found.append(f"has {size:,} bytes, more than {MOST_BYTES:,}")
    return found


def test_wheel_holds_the_package_and_nothing_else() -> None:
    if "RESID_WHEEL" not in os.environ:
        pytest.skip("scripts/test builds the wheel and sets RESID_WHEEL")
    wheel = Path(os.environ["RESID_WHEEL"])
    size = wheel.stat().st_size
    print(f"{wheel.name}: {size:,} bytes")
    assert faults_of_wheel(set(zipfile.ZipFile(wheel).namelist()), size) == []


def test_the_pages_parts_belong_into_the_wheel() -> None:
    assert {Path(name).suffix for name in expected()} == KINDS
    assert sum(name.endswith(".j2") for name in expected()) >= 5
    assert expected() >= INSIDE


@pytest.mark.parametrize(
    ("change", "size", "told"),
    [
        (lambda names: names | {"tests/test_x.py"}, 1, "has tests/test_x.py"),
        (lambda names: names | {"scripts/run"}, 1, "has scripts/run"),
        (lambda names: names | {"resid/__pycache__/a.pyc"}, 1, "has resid/__pycache__/a.pyc"),
        (lambda names: names - {"resid/bundled/mini/model.safetensors"}, 1, "lacks resid/bundled"),
        (lambda names: {n for n in names if not n.endswith(".j2")}, 1, "lacks resid/render/html"),
        (lambda names: {n for n in names if not n.endswith(".js")}, 1, "lacks resid/render/html"),
        (lambda names: {n for n in names if "LICENSE" not in n}, 1, "lacks LICENSE"),
        (lambda names: names, 12_000_001, "has 12,000,001 bytes"),
    ],
)
def test_a_fault_of_a_wheel_is_seen(change, size, told) -> None:
    whole = expected() | {"resid-1.dist-info/licenses/LICENSE", "resid-1.dist-info/RECORD"}
    assert faults_of_wheel(whole, 1) == []
    assert any(fault.startswith(told) for fault in faults_of_wheel(change(whole), size))


def test_every_test_that_the_security_page_names_exists() -> None:
    text = (ROOT / "SECURITY.md").read_text("utf-8")
    named = re.findall(r"`(tests/[\w/]+\.py)`", text)
    assert len(named) > 5
    assert [name for name in named if not (ROOT / name).is_file()] == []
