from typing import Any

KINDS: dict[str, int]

class Message:
    name: str
    schema: Any
    root: Any
    first: int
    last: int
    def flexible(self, version: int) -> bool: ...
    def least(self, version: int) -> list[tuple[int, int, str]]: ...

def message_of(message: Any) -> Message: ...
