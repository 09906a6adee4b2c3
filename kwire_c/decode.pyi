from typing import Any

from typing_extensions import Buffer

def decode(message: str | type, version: int, data: Buffer, *, lenient: bool = False, views: bool = False) -> Any: ...
def decode_from(
    message: str | type, version: int, data: Buffer, position: int = 0, *, lenient: bool = False, views: bool = False
) -> tuple[Any, int]: ...
