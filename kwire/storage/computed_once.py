"""An attribute that is computed at its first use, without a lock."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Generic, TypeVar

T = TypeVar("T")


class once(Generic[T]):
    """An attribute computed at first use; threads that compute it at the same time all get the first result.

    functools.cached_property of Python 3.11 holds one lock for all objects meanwhile: in the child of a fork it would
    never be released.
    """

    def __init__(self, make: Callable[[Any], T]) -> None:
        self.make, self.__doc__ = make, make.__doc__

    def __get__(self, owner: object, kind: type) -> T:
        """Compute the attribute: called only while the object does not have it. Of the class it is this object."""
        if owner is None:  # help(LogSegment), inspect.getmembers
            return self  # type: ignore[return-value]
        made: T = vars(owner).setdefault(self.make.__name__, self.make(owner))
        return made

    if TYPE_CHECKING:  # at run time there is no __set__: the value is in the object's __dict__

        def __set__(self, owner: object, value: T) -> None: ...
