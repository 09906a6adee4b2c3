from typing import Any, final

@final
class Block:
    def __init__(self, data: Any) -> None: ...
