"""The house's rules on imports and names, and the proof that each rule can be broken."""

import ast
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import resid

# From the bottom up: a part may import its own layer and those below.
LAYERS = (
    {"errors", "axes", "tokens", "seals", "results"},
    {"hub", "headers", "layout", "configuration", "torch_file", "checkpoint"},
    {"model", "forward_pass", "loading"},
    {"points", "recording", "recording_file"},
    {"rounding", "reductions", "unembed", "prediction", "projection"},
    {"readings"},
    {"corpus"},
)
BELOW = [set().union(*LAYERS[: i + 1]) for i in range(len(LAYERS))]
MAY_IMPORT = {part: below for layer, below in zip(LAYERS, BELOW, strict=True) for part in layer} | {
    "render": {*LAYERS[0], "render"},
    "lab": {*BELOW[3], "lab"},
}
JUNK_DRAWERS = {"base", "common", "helper", "helpers", "misc", "util", "utils"}
HEAVY = {"torch", "transformers", "matplotlib", "numpy"}
# Read by commands before they know what to do; resid.tokens needs no more than they may import.
CHEAP = {"click", "resid.errors", "resid.tokens", *sys.stdlib_module_names}
HF_NAME = re.compile("transformer|wte|wpe|ln_[12f]|lm_head|c_attn|c_fc|c_proj")


@dataclass(frozen=True)
class Import:
    """One imported name: who imports it, where, and from which module."""

    by: str
    line: int
    name: str
    """In full, for example "resid.model.load" or "numpy"."""
    module: str
    """The module of resid that defines it; the name's first part where it isn't of resid."""
    place: str
    """One of "module", "function" and "typing", a block that only a type checker reads."""

    def __str__(self) -> str:
        return f"{self.by}:{self.line} imports {self.name}"


class Package:
    """The sources of a package named resid, parsed."""

    def __init__(self, root: Path) -> None:
        paths = {_dotted(path.relative_to(root.parent)): path for path in root.rglob("*.py")}
        self.trees = {name: ast.parse(path.read_text("utf-8")) for name, path in paths.items()}
        self.packages = {name for name, path in paths.items() if path.name == "__init__.py"}
        self.public = _public_table(self.trees["resid"])
        self.imports = [found for name in sorted(self.trees) for found in self._imports(name)]

    def _imports(self, by: str) -> Iterator[Import]:
        for node, place in _walk(self.trees[by]):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                source = self._source(by, node)
                names = [f"{source}.{alias.name}" for alias in node.names]
            else:
                continue
            for name in names:
                yield Import(by, node.lineno, name, self._module(name), place)

    def _source(self, by: str, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        up = node.level - (by in self.packages)
        parent = by.split(".")[: len(by.split(".")) - up]
        return ".".join([*parent, *filter(None, [node.module])])

    def _module(self, name: str) -> str:
        if name.split(".")[0] != "resid":
            return name.split(".")[0]
        if name.removeprefix("resid.") in self.public:
            return self.public[name.removeprefix("resid.")]
        while name not in self.trees and "." in name:
            name = name.rpartition(".")[0]
        return name


def _dotted(path: Path) -> str:
    parts = path.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _public_table(tree: ast.Module) -> dict[str, str]:
    for node in tree.body:
        target = node.targets[0] if isinstance(node, ast.Assign) else getattr(node, "target", None)
        if isinstance(target, ast.Name) and target.id == "_PUBLIC":
            return ast.literal_eval(node.value)
    return {}


def _walk(node: ast.AST, place: str = "module") -> Iterator[tuple[ast.AST, str]]:
    """Every node below this one, with the place that an import there would have."""
    yield node, place
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        place = "function"
    for child in ast.iter_child_nodes(node):
        typing = (
            isinstance(node, ast.If)
            and child in node.body
            and "TYPE_CHECKING" in ast.dump(node.test)
        )
        yield from _walk(child, "typing" if typing else place)


def _part(module: str) -> str:
    return module.split(".")[1] if "." in module else "resid"


def imports_run_one_way(package: Package) -> list[str]:
    """Upwards only from commands, from the public names, and from results' conveniences."""
    broken = []
    for found in package.imports:
        part, wanted = _part(found.by), _part(found.module)
        if found.module.split(".")[0] != "resid" or part in {"commands", "__main__"}:
            continue
        if part == "resid":
            allowed = found.place == "typing"
        elif part not in MAY_IMPORT:
            allowed = False
        else:
            # The version reaches no module; a plain `import resid` reaches them all.
            version = found.name == "resid.__version__"
            allowed = wanted in MAY_IMPORT[part] or version or _excepted(found)
        if not allowed:
            broken.append(str(found))
    return broken


def _excepted(found: Import) -> bool:
    """The one way upwards: to_json, to_csv and plot, for the person who holds a result."""
    parts = (_part(found.by), _part(found.module))
    return parts == ("results", "render") and found.place == "function"


def every_part_has_a_layer(package: Package) -> list[str]:
    """A new module is given its place in the table above before it is imported."""
    known = {*MAY_IMPORT, "commands", "__main__", "resid"}
    return sorted(name for name in package.trees if _part(name) not in known)


def commands_import_late(package: Package) -> list[str]:
    """So that `resid --help` starts at once; what a command needs it imports when it runs."""
    return [
        str(found)
        for found in package.imports
        if _part(found.by) in {"commands", "__main__"}
        and found.place == "module"
        and found.module not in CHEAP
        and found.name != "resid.__version__"
        and _part(found.module) != "commands"
    ]


def no_import_is_hidden(package: Package) -> list[str]:
    """Only the lazy name tables import by a computed name; elsewhere the rules could not see it."""
    return [
        f"{name}:{node.lineno} calls {ast.unparse(node.func)}"
        for name, tree in package.trees.items()
        if name != "resid" and _part(name) != "commands"
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and ast.unparse(node.func).split(".")[-1] in {"import_module", "__import__"}
    ]


def imports_have_no_cycle(package: Package) -> list[str]:
    """The public names aside, which only a type checker follows."""
    graph: dict[str, set[str]] = {name: set() for name in package.trees}
    for found in package.imports:
        followed = "resid" not in (found.by, found.module) and not _excepted(found)
        if followed and found.module in graph:
            graph[found.by].add(found.module)
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return [" <- ".join(error.args[1])]
    return []


def no_module_is_a_junk_drawer(package: Package) -> list[str]:
    """A module is named after what it knows."""
    return [name for name in package.trees if name.rpartition(".")[2].strip("_") in JUNK_DRAWERS]


def no_module_hides_behind_an_export(package: Package) -> list[str]:
    """`package.name` can't be both a module and a function; which it is would depend on luck."""
    broken = []
    for name in package.packages:
        exports = {
            found.name.rpartition(".")[2]: found.name
            for found in package.imports
            if found.by == name and found.place != "function"
        }
        definitions = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
        exports |= {
            node.name: "" for node in package.trees[name].body if isinstance(node, definitions)
        }
        if name == "resid":
            exports |= dict.fromkeys(package.public, "")
        # Importing the module itself is not an export of something else under its name.
        broken += [
            f"{name}.{export}"
            for export, source in exports.items()
            if f"{name}.{export}" in package.trees and source != f"{name}.{export}"
        ]
    return broken


def only_model_and_checkpoint_know_hf(package: Package) -> list[str]:
    """Hugging Face's names for GPT-2's parts, as attributes or as whole paths in strings."""
    return [
        f"{name}:{node.lineno} has {ast.unparse(node)}"
        for name, tree in package.trees.items()
        if name not in {"resid.model", "resid.checkpoint", "resid.layout"}
        for node in ast.walk(tree)
        if any(map(HF_NAME.fullmatch, _path_parts(node)))
    ]


def _path_parts(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Attribute):
        return [node.attr]
    # A path has no spaces, so docstrings and messages may say ln_f; "transformer" is also a word.
    text = getattr(node, "value", None) if isinstance(node, ast.Constant) else None
    if isinstance(text, str) and re.fullmatch(r"\w+(\.\w+)*", text) and text != "transformer":
        return text.split(".")
    return []


def results_and_render_know_no_torch(package: Package) -> list[str]:
    """torch ends at the result; what is below it needs none either."""
    return [
        str(found)
        for found in package.imports
        if _part(found.by) in {"render", *LAYERS[0]} and found.module in {"torch", "transformers"}
    ]


def nothing_imports_pyplot(package: Package) -> list[str]:
    """It keeps figures alive and picks a backend for the whole process."""
    return [
        str(found)
        for found in package.imports
        if found.name.split(".")[0] == "pylab" or "matplotlib.pyplot" in found.name
    ]


Rule = Callable[[Package], list[str]]
RULES: list[Rule] = [
    imports_run_one_way,
    every_part_has_a_layer,
    commands_import_late,
    no_import_is_hidden,
    imports_have_no_cycle,
    no_module_is_a_junk_drawer,
    no_module_hides_behind_an_export,
    only_model_and_checkpoint_know_hf,
    results_and_render_know_no_torch,
    nothing_imports_pyplot,
]
by_name = pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)


@pytest.fixture(scope="module")
def ours() -> Package:
    return Package(Path(resid.__file__).parent)


@by_name
def test_resid_keeps(rule: Rule, ours: Package) -> None:
    assert "\n".join(rule(ours)) == ""


def test_resid_is_seen_whole(ours: Package) -> None:
    assert {"resid", "resid.model", "resid.results", "resid.commands"} <= set(ours.trees)
    assert any(_excepted(found) for found in ours.imports)
    assert ours.public == resid._PUBLIC


# A small house in order; each line of BREAKS puts one file into it that breaks one rule.
PUBLIC = '_PUBLIC = {"load": "resid.model", "lens": "resid.readings.lens"}\n'
IN_ORDER = {
    "__init__.py": PUBLIC + "if TYPE_CHECKING:\n    from resid.model import load as load",
    "__main__.py": "def main():\n    from resid.commands import cli",
    "errors.py": "class ResidError(Exception): pass",
    "results.py": "import numpy\ndef plot():\n    from resid.render.figure import draw",
    "model.py": "import torch\nfrom resid import __version__, errors\nwte = model.transformer.wte",
    "recording.py": "from resid.model import Model",
    "readings/__init__.py": "from . import lens",
    "readings/lens.py": '"""Through ln_f."""\nfrom ..recording import record\nimport torch',
    "render/__init__.py": "",
    "render/figure.py": "from matplotlib.figure import Figure\nfrom resid.results import Result",
    "lab/__init__.py": "from resid import load",
    "commands/__init__.py": """
        import sys, click
        from resid import __version__
        from resid.errors import ResidError
        if TYPE_CHECKING:
            from resid.results import Result
        def cli():
            from resid import load, render
        """,
}
BREAKS = [
    (imports_run_one_way, "model.py", "from resid.recording import record"),
    (imports_run_one_way, "model.py", "def load():\n    from .readings import lens"),
    (imports_run_one_way, "model.py", "from resid import lens"),
    (imports_run_one_way, "model.py", "import resid"),
    (imports_run_one_way, "model.py", "if TYPE_CHECKING:\n    import resid.recording"),
    (imports_run_one_way, "recording.py", "def record():\n    from resid.commands import cli"),
    (imports_run_one_way, "results.py", "from resid.render.figure import draw"),
    (imports_run_one_way, "errors.py", "def f():\n    from resid.render import figure"),
    (imports_run_one_way, "render/figure.py", "from resid.model import Model"),
    (imports_run_one_way, "readings/lens.py", "from resid.lab import block"),
    (imports_run_one_way, "lab/__init__.py", "from resid.readings.lens import lens"),
    (imports_run_one_way, "axes.py", "from .hub import find"),
    (imports_run_one_way, "lab/__init__.py", "from resid import corpus"),
    (imports_run_one_way, "__init__.py", PUBLIC + "from resid.model import load"),
    (every_part_has_a_layer, "extras.py", ""),
    (commands_import_late, "commands/lens.py", "from resid.model import load"),
    (commands_import_late, "commands/lens.py", "from resid import load"),
    (commands_import_late, "commands/lens.py", "import numpy"),
    (commands_import_late, "__main__.py", "import resid.render"),
    (no_import_is_hidden, "model.py", "importlib.import_module('resid.readings')"),
    (imports_have_no_cycle, "recording.py", "def f():\n    from resid.readings.lens import g"),
    (imports_have_no_cycle, "render/figure.py", "from .figure import draw"),
    (no_module_is_a_junk_drawer, "readings/_utils.py", ""),
    (no_module_hides_behind_an_export, "readings/__init__.py", "from .lens import lens"),
    (no_module_hides_behind_an_export, "readings/__init__.py", "def lens(): pass"),
    (no_module_hides_behind_an_export, "load.py", ""),
    (only_model_and_checkpoint_know_hf, "recording.py", "model.transformer.h"),
    (only_model_and_checkpoint_know_hf, "recording.py", "x = hf.ln_f(y)"),
    (only_model_and_checkpoint_know_hf, "recording.py", "getattr(model, 'ln_f')"),
    (only_model_and_checkpoint_know_hf, "recording.py", "w['transformer.h.0.attn']"),
    (results_and_render_know_no_torch, "render/figure.py", "def f():\n    import torch.nn"),
    (results_and_render_know_no_torch, "results.py", "from transformers import GPT2Config"),
    (nothing_imports_pyplot, "render/figure.py", "import matplotlib.pyplot as plt"),
    (nothing_imports_pyplot, "lab/race.py", "def f():\n    from matplotlib import pyplot"),
]


def _build(root: Path, files: dict[str, str]) -> Package:
    for name, source in files.items():
        path = root / "resid" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(re.sub(r"^ {8}", "", source, flags=re.MULTILINE), "utf-8")
    return Package(root / "resid")


@by_name
def test_a_house_in_order_passes(rule: Rule, tmp_path: Path) -> None:
    assert rule(_build(tmp_path, IN_ORDER)) == []


@pytest.mark.parametrize(
    ("rule", "name", "source"),
    BREAKS,
    ids=[f"{rule.__name__}-{name}" for rule, name, _ in BREAKS],
)
def test_a_break_is_found(rule: Rule, name: str, source: str, tmp_path: Path) -> None:
    assert len(rule(_build(tmp_path, IN_ORDER | {name: source}))) == 1


def test_every_rule_is_broken_once() -> None:
    assert {rule for rule, _, _ in BREAKS} == set(RULES)


def _imported_by(*command: str) -> set[str]:
    """The top-level names of all that a fresh Python imports."""
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *command], capture_output=True, text=True, check=True
    )
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    return {line.rpartition("|")[2].strip().split(".")[0] for line in lines}


@pytest.mark.parametrize("command", [("-c", "import resid"), ("-m", "resid", "--help")])
def test_it_starts_without_heavy_imports(command: tuple[str, ...]) -> None:
    imported = _imported_by(*command)
    assert "resid" in imported
    assert not imported & HEAVY


def test_a_heavy_import_is_seen() -> None:
    assert _imported_by("-c", "import resid, numpy.linalg") & HEAVY == {"numpy"}
