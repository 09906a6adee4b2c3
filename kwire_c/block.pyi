from typing import Any, final

COMPILER: str

@final
class Block:
    def __new__(cls, data: Any) -> Block: ...
