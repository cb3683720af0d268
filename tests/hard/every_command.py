"""Every command that reads a model or a prompt, as one would type it, to be tried on hard input."""

from click.testing import CliRunner

from resid.commands import cli

READ_THE_PROMPT = ("lens", "norms", "memory", "attribute", "block", "activations")
NEED_A_HEAD = ("lens", "memory", "find", "neuron", "attribute", "report", "verify")


def arguments(prompt="the is", target="id:260"):
    """The words of each command by its name, without model and output."""
    return {
        "lens": ["lens", prompt, "--target", target, "--points", "all", "--follow", "--baseline"],
        "norms": ["norms", prompt, "--points", "all"],
        "memory": ["memory", prompt, "--target", target],
        "find": ["find", target, "--foil", "id:257"],
        "neuron": ["neuron", "L1N3"],
        "attribute": ["attribute", prompt, "--target", target, "--heads", "--neurons", "2"],
        "record": ["record", prompt, "--logits"],
        "report": ["report", prompt],
        "verify": ["verify", "--ids", "5,290,17", "--no-float64"],
        "params": ["params"],
        "block": ["lab", "block", "--prompt", prompt],
        "activations": ["lab", "activations", "--prompt", prompt],
    }


NAMES = tuple(arguments())
WITH_FORMATS = tuple(name for name in NAMES if name not in ("record", "report"))


def run(name, folder, *more, out=None, charset="utf-8", **words):
    """The command on a model, its exception raised unless it is an exit.

    Args:
        name: of the command.
        folder: of the model.
        more: further words.
        out: a folder for the one file that `record` and `report` insist on.
        charset: of its standard output.
        words: as for `arguments`.
    """
    line = [*arguments(**words)[name], "-m", str(folder), *map(str, more)]
    if name == "record":
        line += ["-o", str(out / "stream.safetensors")]
    if name == "report":
        line += ["-o", str(out / "page.html")]
    return CliRunner(charset=charset).invoke(cli, line, catch_exceptions=False)
