"""The command line: `kwire` and `python -m kwire`. One file a command group; parses, calls, prints."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

_TERMINATED = 128 + signal.SIGTERM


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code: 0 ok, 1 a problem in the data or the answer, 2 usage.

    A failure is one line on stderr. Without click and rich it names the extra to install.
    """
    try:
        import click
        import rich  # noqa: F401
    except ImportError as missing:
        print(f"kwire: the command line needs {missing.name}: pip install 'kwire[cli]'", file=sys.stderr)
        return 2
    from kwire.cli.root import root
    from kwire_c.errors import KwireError

    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # a character that the terminal's encoding lacks is escaped, too
            stream.reconfigure(errors="backslashreplace")
    try:
        with _terminated():
            code = root.main(arguments, prog_name="kwire", standalone_mode=False)
        sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except click.UsageError as error:
        where = error.ctx.command_path if error.ctx else "kwire"
        return _fail(f"{where}: {error.format_message()} (see {where} --help)", 2)
    except click.exceptions.Exit as done:
        return done.exit_code
    except SystemExit as ended:
        if ended.code != _TERMINATED:
            raise
        return _fail("kwire: terminated", _TERMINATED)
    except (click.Abort, KeyboardInterrupt):
        return _fail("kwire: interrupted", 130)
    except BrokenPipeError:  # the reader of our output has gone: nothing to say
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except (FileExistsError, FileNotFoundError) as error:
        return _fail(f"kwire: {_told(error)}", 2)
    except (click.ClickException, KwireError, OSError, ImportError) as error:
        return _fail(f"kwire: {_told(error)}", 1)


@contextmanager
def _terminated() -> Iterator[None]:
    """SIGTERM ends a command as SIGINT does: what it has half-written goes."""
    mine = threading.current_thread() is threading.main_thread() and signal.getsignal(signal.SIGTERM) == signal.SIG_DFL
    if not mine:
        yield
        return

    def end(*_: Any) -> None:
        raise SystemExit(_TERMINATED)

    signal.signal(signal.SIGTERM, end)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)


def _told(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    return str(error)


def _fail(line: str, code: int) -> int:
    from kwire_c.printable import printable

    print(printable(" ".join(line.split())), file=sys.stderr)
    return code
