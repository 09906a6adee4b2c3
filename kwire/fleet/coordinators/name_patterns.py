"""Regular expressions of clients, for names of topics and transactional ids: RE2's, as Kafka has them (RE2/J).

RE2 takes a time that grows with the expression and the name, never more; Python's re tries combinations, and a client
could let it try for years. Without google-re2 only expressions of which re has few to try are taken.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Protocol

from kwire.fleet.errors import ApiError
from kwire.schema.error_codes import ErrorCode

_MOST_MEMORY = 1 << 20  # bytes of a compiled expression
_MOST_REPEATS = 2  # that re may combine: their number is the exponent of its time
# an escape, a class, a group's beginning, one sign
_SIGNS = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|\((?:\?:)?|.", re.S)
# what RE2 says -> what RE2/J says
_REASONS = {
    "missing )": "missing closing )", "missing ]": "missing closing ]",
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator", "invalid repetition size": "invalid repeat count",
    "invalid perl operator": "invalid or unsupported Perl syntax", "trailing \\": "trailing backslash at end of "
    "expression", "unexpected )": "regexp/syntax: internal error", "invalid named capture group": "invalid named "
    "capture",
}  # fmt: skip


class NamePattern(Protocol):
    """A compiled expression."""

    def fullmatch(self, text: str) -> object:
        """Something true if the whole text matches."""


@lru_cache(256)
def name_pattern(expression: str) -> NamePattern:
    """The compiled expression. Raises ApiError: INVALID_REGULAR_EXPRESSION, with the reason alone as its text."""
    try:
        import re2
        from re2 import Options  # other packages of this name have none
    except ImportError:
        return _few_to_try(expression)
    options = Options()
    options.log_errors, options.max_mem = False, _MOST_MEMORY
    try:
        compiled: NamePattern = re2.compile(expression, options)
        return compiled
    except re2.error as error:
        said = error.args[0].decode("utf-8", "replace") if isinstance(error.args[0], bytes) else str(error)
        kind = said.partition(": ")[0]
        raise _invalid(_REASONS.get(kind, kind)) from None


def _few_to_try(expression: str) -> NamePattern:
    """By Python's re, if it has at most two repeats, each of one sign or class, and nothing that RE2 does not know.

    A choice in a group counts as a repeat: (a|aa)(a|aa) may be tried in as many ways.
    """
    before, repeats, depth = "", 0, 0
    for sign in _SIGNS.findall(expression):
        depth += sign.startswith("(")
        depth -= sign == ")"
        repeats += sign == "|" and depth > 0
        if sign in ("*", "+", "{") or (sign == "?" and before not in ("*", "+", "?", "}")):
            repeats += 1
            if before == ")":
                raise _invalid("repeats of groups need the package google-re2 where the Fleet runs")
        if (before.startswith("(") and sign == "?") or re.fullmatch(r"\\[0-9AZ]", sign):
            raise _invalid("invalid or unsupported Perl syntax")
        before = sign
    if repeats > _MOST_REPEATS:
        raise _invalid(f"more than {_MOST_REPEATS} repeats need the package google-re2 where the Fleet runs")
    try:
        return re.compile(expression)
    except (re.error, RecursionError, OverflowError, MemoryError) as error:
        raise _invalid(str(error)) from None


def _invalid(reason: str) -> ApiError:
    return ApiError(ErrorCode.INVALID_REGULAR_EXPRESSION, reason)
