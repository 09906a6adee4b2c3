from typing import TypeVar, overload

from typing_extensions import Buffer

from kwire_c.message_class import Message

_Made = TypeVar("_Made", bound=Message)

@overload
def decode(
    message: type[_Made], version: int, data: Buffer, *, lenient: bool = False, views: bool = False
) -> _Made: ...
@overload
def decode(
    message: str | type[Message], version: int, data: Buffer, *, lenient: bool = False, views: bool = False
) -> Message: ...
@overload
def decode_from(
    message: type[_Made], version: int, data: Buffer, position: int = 0, *, lenient: bool = False, views: bool = False
) -> tuple[_Made, int]: ...
@overload
def decode_from(
    message: str | type[Message],
    version: int,
    data: Buffer,
    position: int = 0,
    *,
    lenient: bool = False,
    views: bool = False,
) -> tuple[Message, int]: ...
