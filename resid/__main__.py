"""`python -m resid`, the `resid` command, and the entry for torchrun."""

import sys


def main() -> None:
    """Run the command line; ends the process with its exit status."""
    try:
        from resid.commands import cli
        from resid.commands.interrupts import (
            end_at_once_from_here,
            obey_termination,
            was_interrupted,
        )

        obey_termination()
        try:
            # click would expand *, ?, ~ and $VAR in a prompt on Windows.
            cli.main(prog_name="resid", windows_expand_args=False)
        except SystemExit:
            # In a moment when click itself is at work it has its own end, status 1, for Ctrl-C.
            if was_interrupted():
                sys.exit(130)
            raise
        finally:
            end_at_once_from_here()
    except KeyboardInterrupt:
        # Ctrl-C before or after click is in charge.
        sys.exit(130)


if __name__ == "__main__":
    main()
