"""What harnesses of rounds share: the options of their commands, and a watch over one round."""

from __future__ import annotations

import argparse
import faulthandler
from collections.abc import Iterator
from contextlib import contextmanager


def seeded(about: str | None) -> argparse.ArgumentParser:
    """A parser with --seconds and --seed; about: the docstring of the harness."""
    made = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--seconds", type=float, default=10)
    made.add_argument("--seed", type=int, default=1)
    return made


@contextmanager
def watched(seconds: float, how: str) -> Iterator[None]:
    """A round: after so many seconds the process ends with the stacks of its threads. how: the note of an error."""
    faulthandler.dump_traceback_later(seconds, exit=True)
    try:
        yield
    except BaseException as error:
        error.add_note(how)
        raise
    finally:
        faulthandler.cancel_dump_traceback_later()
