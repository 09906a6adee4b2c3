"""Running one command: its output, its exit code, and one line for whatever ends it."""

from __future__ import annotations

import errno
import io
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from kwire.lazy import explained

_OF_WRITE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EAGAIN, errno.EBADF)

# docs/exit-codes.md
OK, FINDING, USAGE, INTERRUPTED, CLOSED = 0, 1, 2, 130, 141
_ENDINGS = {128 + signal.SIGTERM: "terminated", 128 + signal.SIGHUP: "the terminal was closed"}
_ONE_SIGNAL = 1.0  # seconds in which signals count as one: shells and service managers send several
# what cannot be read, or not be written where it is asked to
_UNREADABLE = (FileExistsError, FileNotFoundError, IsADirectoryError, NotADirectoryError, PermissionError)
_UNREADABLE_NUMBERS = (errno.ELOOP, errno.ENAMETOOLONG, errno.ENODEV, errno.ENXIO)


def run(arguments: Sequence[str] | None) -> int:
    """main, once the modules it needs are imported."""
    # numpy's OpenBLAS starts a thread for each core, and where it cannot, raises SIGINT; no command needs them
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        try:
            return _run(arguments)
        finally:
            _end_streams()
    except KeyboardInterrupt:  # before the command began, or as its last output waited for the reader
        return _fail("kwire: interrupted", INTERRUPTED)
    except ImportError as error:  # of a module that every command needs
        return _fail(f"kwire: {explained(error)}", USAGE)
    except MemoryError:
        return _fail("kwire: out of memory", FINDING)


def _run(arguments: Sequence[str] | None) -> int:
    try:
        import click
        import rich  # noqa: F401
    except ModuleNotFoundError as missing:
        print(f"kwire: the command line needs {missing.name}: pip install 'kwire[cli]'", file=sys.stderr)
        return USAGE
    from kwire.cli.root import OutputClosed, root
    from kwire.errors import KwireError, WrongFileError

    sys.stdout = _prepared(sys.stdout, os.O_RDONLY)  # of a closed one: what is written is an error
    sys.stderr = _prepared(sys.stderr, os.O_WRONLY)
    alone = getattr(click.exceptions, "NoArgsIsHelpError", ())  # a group, without a command
    try:
        with _ended_by_signals():
            try:
                code = root.main(arguments, prog_name="kwire", standalone_mode=False)
            except alone as wants_help:
                print(wants_help.format_message())
                code = OK
        sys.stdout.flush()
        return code if isinstance(code, int) else OK
    except click.UsageError as error:
        from kwire.cli.hints import message

        where = error.ctx.command_path if error.ctx else "kwire"
        return _fail(f"{where}: {message(error)} (see {where} --help)", USAGE)
    except click.exceptions.Exit as done:
        return done.exit_code
    except SystemExit as ending:
        if not isinstance(ending.code, int) or ending.code not in _ENDINGS:
            raise
        return _fail(f"kwire: {_ENDINGS[ending.code]}", ending.code)
    except (click.Abort, KeyboardInterrupt):
        return _fail("kwire: interrupted", INTERRUPTED)
    except (BrokenPipeError, OutputClosed):  # the reader of the output has closed it
        return CLOSED
    except ImportError as error:
        return _fail(f"kwire: {explained(error)}", USAGE)
    except _UNREADABLE as error:
        return _fail(f"kwire: {_error_text(error)}", USAGE)
    except WrongFileError as error:
        return _fail(f"kwire: {error}", USAGE)
    except OSError as error:
        return _fail(f"kwire: {_error_text(error)}", USAGE if error.errno in _UNREADABLE_NUMBERS else FINDING)
    except (click.ClickException, KwireError) as error:
        return _fail(f"kwire: {_error_text(error)}", FINDING)
    except MemoryError:
        return _fail("kwire: out of memory", FINDING)
    except Exception as error:
        if os.environ.get("KWIRE_DEBUG"):
            raise
        text = f"kwire: unexpected {type(error).__name__}: {error} (KWIRE_DEBUG=1 shows where)"
        return _fail(text, FINDING)


def _prepared(stream: Any, flags: int) -> Any:
    """A standard stream to write to, whatever the caller left of it. flags: of the null device for a closed one."""
    if stream is None:  # closed by the caller (>&-)
        return open(
            os.open(os.devnull, flags), "w", encoding="utf-8")
    if isinstance(stream, io.TextIOWrapper):
        if isinstance(stream.buffer, io.RawIOBase):  # python -u: what one write does not take would be lost
            stream = open(  # noqa: SIM115 - until the process ends
                stream.fileno(), "w", 1, encoding=stream.encoding, closefd=False)
        stream.reconfigure(errors="backslashreplace")  # characters that the terminal's encoding lacks are escaped
    return stream


def _end_streams() -> None:
    """Flush the standard streams and drop one that takes no more: Python would fail at it again, with code 120."""
    for stream in filter(None, (sys.stdout, sys.stderr)):
        try:
            stream.flush()
        except (OSError, ValueError):
            _to_nowhere(stream)
        except KeyboardInterrupt:  # nobody reads it, and Python would wait for that again
            _to_nowhere(stream)
            raise


def _to_nowhere(stream: Any) -> None:
    """Let what a stream holds, and what comes, go nowhere."""
    with suppress(OSError, ValueError):
        number = stream.fileno()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        try:
            os.dup2(nowhere, number)
        finally:
            os.close(nowhere)


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Let SIGTERM and SIGHUP end a command as SIGINT does, so that partial output files are removed.

    Signals that the caller ignores (nohup) or handles stay with it. An import of a C extension that a signal ends may
    raise an error of its own: the signal is what ended the command then, too.
    """
    ours = [number for code in _ENDINGS if signal.getsignal(number := code - 128) == signal.SIG_DFL]
    if threading.current_thread() is not threading.main_thread():
        ours = []
    last, came = -_ONE_SIGNAL, 0

    def end(number: int, _: Any) -> None:
        nonlocal last, came
        if time.monotonic() - last >= _ONE_SIGNAL:
            last, came = time.monotonic(), number
            raise SystemExit(128 + number)

    for number in ours:
        signal.signal(number, end)
    try:
        yield
    except Exception:
        if came:
            raise SystemExit(128 + came) from None
        raise
    finally:
        for number in ours:
            signal.signal(number, signal.SIG_DFL)


def _error_text(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        from kwire.storage.places.filesystem import shown

        name = shown(str(error.filename)) if error.filename else ""
        if not name and error.errno in _OF_WRITE:  # kwire.output names all other files
            name = "standard output"
        return f"{name}: {error.strerror}" if name else error.strerror
    return str(error)


def _fail(line: str, code: int) -> int:
    from kwire_c.printable import printable

    text = " ".join(line.split())
    with suppress(ImportError):  # the extensions are not compiled: the line says so
        from kwire.storage.places.filesystem import shown_text

        text = shown_text(text)
    with suppress(OSError, ValueError):  # nobody reads it; the code tells
        print(printable(text), file=sys.stderr)
    return code
