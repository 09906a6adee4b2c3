from collections.abc import Callable
from typing import Any

def set_decompressor(function: Callable[..., Any]) -> None: ...
