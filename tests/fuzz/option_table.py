"""Every option and argument of every command with every value of a long list, each once.

What is drawn at random draws some values often and others never; a table leaves none out. A line
has one value that is looked at, and else only what is needed for it to have a meaning.
"""

from dataclasses import dataclass

import click

from tests.fuzz.command_lines import (
    COMMANDS,
    LIGHT,
    NO_OUTPUTS,
    ODD,
    OUTPUTS,
    edges_of,
    is_misuse,
    is_slow,
    meant_for,
)

# What options mean nothing without, where a command has it.
WITH = dict.fromkeys(("foil", "show", "order"), "target")
# What takes the place of the arguments.
INSTEAD = ("ids", "prompt_file")


@dataclass(frozen=True)
class Case:
    """One value of one option or argument, in a line that is otherwise sound."""

    path: tuple[str, ...]
    param: click.Parameter
    word: str
    """The value; of a flag, its name."""
    meant: bool
    """Whether the option is there for it, or it is at the edge; else it is any word."""

    @property
    def misused(self) -> bool:
        return not self._is_flag and is_misuse(self.param, self.word)

    @property
    def _is_flag(self) -> bool:
        return isinstance(self.param, click.Option) and self.param.is_flag

    @property
    def words(self) -> list[str]:
        """The command line."""
        line = [*self.path, *LIGHT.get(self.path, ())]
        arguments = []
        for other in COMMANDS[self.path].params:
            meant = meant_for(other)
            if other is self.param:
                continue
            if isinstance(other, click.Option):
                needed = other.required or other.name == WITH.get(self.param.name)
                line += [other.opts[0], meant[0]] if needed else []
            elif self.param.name not in INSTEAD and "MODEL" not in other.metavar:
                arguments.append(meant[0])
        if self._is_flag:
            return [*line, self.word, *arguments]
        if isinstance(self.param, click.Option):
            return [*line, f"{max(self.param.opts, key=len)}={self.word}", *arguments]
        return [*line, "--", self.word]


def cases() -> list[Case]:
    """All of them, those that are meant in front."""
    found = []
    for i, (path, command) in enumerate(sorted(COMMANDS.items())):
        for param in command.params:
            if isinstance(param, click.Option) and param.is_flag:
                names = [*param.opts, *param.secondary_opts]
                found += [Case(path, param, name, True) for name in names]
                continue
            meant = dict.fromkeys((*meant_for(param), *edges_of(param)))
            if {*meant} == {*OUTPUTS}:  # Two for each command; `test_any_target` has them all.
                meant = dict.fromkeys((OUTPUTS[i % 3], OUTPUTS[3 + i % 4]))
            any_other = (*ODD, *OUTPUTS, *NO_OUTPUTS)
            for word in dict.fromkeys((*meant, *any_other)):
                if not is_slow(param, word):
                    found.append(Case(path, param, word, word in meant))
    return sorted(found, key=lambda case: not case.meant)
