from typing import Any

class Node:
    name: str
    format: bytes
    length: int
    offset: int
    null_count: int
    children: list[Node]
    dictionary: Node | None

def export_schema(node: Node) -> Any: ...
def export_array(node: Node) -> tuple[Any, Any]: ...
def export_stream(schema: Node, nodes: list[Node]) -> Any: ...
