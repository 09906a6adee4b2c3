"""The command line: `kwire` and `python -m kwire`; one file a command group."""

from __future__ import annotations

TYPE_CHECKING = False  # typing.TYPE_CHECKING without importing typing
if TYPE_CHECKING:
    from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code, one of docs/exit-codes.md.

    A failure is one line on stderr, whatever raised it. If click or rich is missing, the line names the extra to
    install.
    """
    try:
        from kwire.cli.run import run

        return run(arguments)
    except KeyboardInterrupt:  # as the modules were imported
        import sys

        print("kwire: interrupted", file=sys.stderr)
        return 130


def process() -> int:
    """main of a process that does nothing else: Ctrl-C once it has its code is ignored; Python shows it as it ends."""
    try:
        return main()
    except KeyboardInterrupt:  # once more, as main said that it was interrupted
        return 130
    finally:
        import signal

        signal.signal(signal.SIGINT, signal.SIG_IGN)
