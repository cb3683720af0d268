"""What an installed resid says of itself, and that its public names are there."""

import ast
import importlib.metadata
import re
from pathlib import Path

import pytest

import resid

PYPROJECT = Path(__file__).parents[1] / "pyproject.toml"


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
