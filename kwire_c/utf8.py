"""Bad UTF-8 as Java reads it: which bytes become one U+FFFD."""

from __future__ import annotations


def java_text(data: bytes) -> str:
    """The string that Java's String(bytes, UTF_8) makes: U+FFFD for what is malformed, one for a surrogate."""
    out: list[str] = []
    at, end = 0, len(data)
    while at < end:
        size, good = _step(data, at, end)
        out.append(data[at : at + size].decode() if good else "\ufffd")
        at += size
    return "".join(out)


def _step(data: bytes, at: int, end: int) -> tuple[int, bool]:
    """(bytes of the next character or malformed sequence, whether it is good)."""
    lead = data[at]
    if lead < 0x80:
        return 1, True
    if 0xC2 <= lead < 0xE0:
        if at + 1 < end and _follows(data[at + 1]):
            return 2, True
        return 1, False
    if 0xE0 <= lead < 0xF0:
        return _three(data, at, end, lead)
    if 0xF0 <= lead < 0xF8:
        return _four(data, at, end, lead)
    return 1, False


def _follows(byte: int) -> bool:
    return byte & 0xC0 == 0x80


def _three(data: bytes, at: int, end: int, lead: int) -> tuple[int, bool]:
    if at + 1 >= end or (lead == 0xE0 and data[at + 1] & 0xE0 == 0x80) or not _follows(data[at + 1]):
        return 1, False
    if at + 2 >= end:
        return end - at, False
    if not _follows(data[at + 2]):
        return 2, False
    return 3, not (lead == 0xED and data[at + 1] >= 0xA0)


def _four(data: bytes, at: int, end: int, lead: int) -> tuple[int, bool]:
    if lead > 0xF4 or at + 1 >= end:
        return 1, False
    second = data[at + 1]
    low, high = {0xF0: (0x90, 0xBF), 0xF4: (0x80, 0x8F)}.get(lead, (0x80, 0xBF))
    if not low <= second <= high:
        return 1, False
    if at + 2 >= end:
        return end - at, False
    if not _follows(data[at + 2]):
        return 2, False
    if at + 3 >= end:
        return end - at, False
    return (4, True) if _follows(data[at + 3]) else (3, False)
