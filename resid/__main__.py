"""`python -m resid`, the `resid` command, and the entry for torchrun."""

import sys


def main() -> None:
    """Run the command line; ends the process with its exit status."""
    try:
        from resid.commands import cli

        # click would expand *, ?, ~ and $VAR in a prompt on Windows.
        cli.main(prog_name="resid", windows_expand_args=False)
    except KeyboardInterrupt:
        # Ctrl-C before or after click is in charge.
        sys.exit(130)


if __name__ == "__main__":
    main()
