"""What harnesses of rounds share: the options of their commands, the rounds, a watch over one, what is told."""

from __future__ import annotations

import argparse
import faulthandler
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager


def seeded(about: str | None) -> argparse.ArgumentParser:
    """A parser with --seconds and --seed; about: the docstring of the harness."""
    made = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    made.add_argument("--seconds", type=float, default=10)
    made.add_argument("--seed", type=int, default=1)
    return made


def numbers(seconds: float, least: int) -> Iterator[int]:
    """The numbers of rounds, from 0: until the time is over, at least so many."""
    number, end = 0, time.monotonic() + seconds
    while number < least or time.monotonic() < end:
        yield number
        number += 1


def run(
    parser: argparse.ArgumentParser, arguments: list[str] | None,
    rounds: Callable[[argparse.Namespace], Counter[str]], told: str,
) -> int:
    """The command of a harness: its options and --least, its rounds, and what came of them. Returns the exit code."""
    parser.add_argument("--least", type=int, default=1, help="rounds, also if the time is over")
    faulthandler.enable()
    counts = rounds(parser.parse_args(arguments))
    print(", ".join(f"{count} {how}" for how, count in counts.most_common()))
    print(f"{counts.total()} {told}")
    return 0


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
