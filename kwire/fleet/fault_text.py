"""A rule of faults as a line of text: "Produce error=NOT_LEADER_OR_FOLLOWER times=3"."""

from __future__ import annotations

import shlex
from typing import Any, NamedTuple

from kwire import schema
from kwire.fleet.faults import VERBS, error_code, kind_of

_BOOLEANS = {"true": True, "false": False}


class FaultText(NamedTuple):
    """A rule: the arguments of Fleet.fault and Proxy.fault. api: None for every API."""

    api: str | None
    what: dict[str, Any]


def read_fault(text: str) -> FaultText:
    """The rule that a line says: the name of an API, or none for all, then words as "times=3" or "close".

    Raises ValueError for a word that is none, or a value that is no number where one belongs; UnsupportedVersionError
    for an unknown API. What has no effect or is out of range is refused by fault().
    """
    try:
        words = shlex.split(text)
    except ValueError as error:  # a quotation mark without its end
        raise ValueError(f"cannot read the fault {text!r}: {str(error).lower()}") from None
    api = None
    if words and "=" not in words[0] and words[0] not in VERBS:
        api = schema.api(words.pop(0)).name
    what: dict[str, Any] = {}
    for word in words:
        verb, equals, value = word.partition("=")
        if verb in what:
            raise ValueError(f"{verb} is twice in the fault {text!r}")
        what[verb] = _value(verb, value if equals else None)
    return FaultText(api, what)


def _value(verb: str, text: str | None) -> Any:
    if verb == "error":
        number = (text or "").removeprefix("-")
        return error_code(int(text or "") if number.isdecimal() and len(number) < 7 else text or "")
    kind: Any = kind_of(verb)
    if kind is bool:
        if text is not None and text.lower() not in _BOOLEANS:
            raise ValueError(f"{verb} must be true or false, not {text!r}")
        return True if text is None else _BOOLEANS[text.lower()]
    if text is None:
        raise ValueError(f"{verb} has no value: expected {verb}=VALUE")
    if kind is str:
        return text
    try:
        return kind(text)
    except ValueError:
        raise ValueError(f"{verb} must be a number, not {text!r}") from None
