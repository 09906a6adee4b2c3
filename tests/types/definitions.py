"""The source of each public name: its definition in a .py or .pyi file, found as a type checker finds it."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

PACKAGES = (
    "kwire", "kwire.capture", "kwire.fleet", "kwire.net", "kwire.schema", "kwire.spark", "kwire.storage",
    "kwire.storage.metadata",
)

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Assign | ast.AnnAssign


@cache
def tree_of(module: str) -> ast.Module:
    """The parsed stub of a module, or its source where it has no stub."""
    spec = find_spec(module)
    assert spec is not None and spec.origin is not None
    path = Path(spec.origin)
    stub = path.with_name(path.name.partition(".")[0] + ".pyi")
    return ast.parse((stub if stub.exists() else path).read_text(encoding="utf-8"))


def definitions(module: str, name: str) -> list[Definition]:
    """The definitions of a name, all overloads of it; imports are followed."""
    found: list[Definition] = []
    for node in ast.walk(tree_of(module)):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            for alias in node.names:
                if (alias.asname or alias.name) == name and node.module.startswith("kwire"):
                    return definitions(node.module, alias.name)
    for node in tree_of(module).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            named = [node.name]
        elif isinstance(node, ast.AnnAssign | ast.Assign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            named = [ast.unparse(target) for target in targets]
        else:
            continue
        if name in named:
            found.append(node)
    return found


def public() -> Iterator[tuple[str, Definition]]:
    """(full name, definition) of every public function, class and constant."""
    for package in PACKAGES:
        for module, names in import_module(package)._NAMES.items():
            for name in names:
                rows = definitions(module, name)
                assert rows, f"{module}.{name} has no definition"
                for row in rows:
                    yield f"{package}.{name}", row


def returned(name: str, node: Definition) -> Iterator[tuple[str, ast.expr | None]]:
    """(full name, annotation) of what a function, the public methods of a class, and its attributes give."""
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        yield name, node.returns
    elif isinstance(node, ast.AnnAssign):
        yield name, node.annotation
    elif isinstance(node, ast.ClassDef):
        for item in node.body:
            if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef):
                if not item.name.startswith("_") or item.name in _OPERATORS:
                    yield f"{name}.{item.name}", item.returns
            elif isinstance(item, ast.AnnAssign) and not ast.unparse(item.target).startswith("_"):
                yield f"{name}.{ast.unparse(item.target)}", item.annotation


_OPERATORS = ("__getitem__", "__iter__", "__next__", "__call__", "__enter__", "__aenter__")
