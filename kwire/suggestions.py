"""What an error adds where a name is unknown: the nearest known one, and what there is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kwire_c.printable import printable

_MOST_COMPARED = 10_000  # names, and characters of one, in a search for the nearest
_MOST_LISTED = 10


def did_you_mean(name: object, known: Iterable[object]) -> str:
    """What follows an unknown name in an error: ' (did you mean "X"?)', or nothing where none is near."""
    near = nearest(name, known)
    return f' (did you mean "{printable(near)}"?)' if near else ""


def nearest(name: object, known: Iterable[object]) -> str:
    """The known name that is nearest to another one, "" where none is near.

    Where none is similar, the shortest that begins with the name is near.
    """
    from difflib import get_close_matches

    written: dict[str, str] = {}
    for one in known:
        if len(written) < _MOST_COMPARED:
            written.setdefault(str(one).lower(), str(one))
    text = str(name)
    near = get_close_matches(text.lower(), written, n=1) if len(text) < _MOST_COMPARED else []
    near = near or sorted((one for one in written if len(text) > 2 and one.startswith(text.lower())), key=len)[:1]
    return written[near[0]] if near else ""


def there(values: Sequence[object], what: str, plural: str = "") -> str:
    """What there is, for an error: "are 3 topics: a, b, c", "is 1 topic: a", "is no topic"; the first ten of them."""
    if not values:
        return f"is no {what}"
    count = f"is 1 {what}" if len(values) == 1 else f"are {len(values):,} {plural or f'{what}s'}"
    names = ", ".join(printable(str(value)) for value in values[:_MOST_LISTED])
    return f"{count}: {names}{', ...' if len(values) > _MOST_LISTED else ''}"
