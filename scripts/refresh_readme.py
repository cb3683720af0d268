#!/usr/bin/env python3
"""Run every command that README.md shows and put its real output below it.

A block that begins with ```console holds lines `$ resid ...`, each followed by what it prints.
`scripts/refresh_readme.py` rewrites them in place; tests/test_readme.py runs the same code and
compares, so that the README cannot drift from the program.
"""

import os
import re
import shlex
import tempfile
from pathlib import Path

README = Path(__file__).resolve().parent.parent / "README.md"
_BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)
_COLUMNS = "92"


def refreshed(text: str) -> str:
    """The README with the output of every command as it is now."""
    import click
    from click.testing import CliRunner

    from resid.commands import cli

    def rerun(block: re.Match[str]) -> str:
        commands = [line for line in block[1].splitlines() if line.startswith("$ ")]
        return "```console\n" + "".join(f"{line}\n{_run(line[2:])}" for line in commands) + "```"

    def _run(command: str) -> str:
        program, *arguments = shlex.split(command)
        if program != "resid":
            raise SystemExit(f"README shows a command that is not resid's: {command}")
        # Without a cached gpt2 the default is mini; said so once in the text, not in every line.
        environment = {"RESID_MODEL": "mini", "COLUMNS": _COLUMNS, "NO_COLOR": "1"}
        names = 2 if isinstance(cli.commands[arguments[0]], click.Group) else 1
        quietly = [*arguments[:names], "-q", *arguments[names:]]
        ran = CliRunner(env=environment).invoke(cli, quietly)
        if ran.exit_code != 0:
            raise SystemExit(f"{command} exits with {ran.exit_code}:\n{ran.output}")
        return "\n".join(line.rstrip() for line in ran.stdout.splitlines()) + "\n" * bool(
            ran.stdout
        )

    with tempfile.TemporaryDirectory() as folder:
        before = Path.cwd()
        os.chdir(folder)  # Files that the commands write are not for keeping.
        Path("examples").symlink_to(README.parent / "examples")
        try:
            return _BLOCK.sub(rerun, text)
        finally:
            os.chdir(before)


if __name__ == "__main__":
    README.write_text(refreshed(README.read_text(encoding="utf-8")), encoding="utf-8")
