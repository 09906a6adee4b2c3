"""The API reference: each public name with its signature and docstring, as directives of Sphinx's Python domain.

Signatures are those of the code; of compiled code, those of the type stubs beside it (kwire_c/*.pyi).
"""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
from collections.abc import Callable, Iterable, Iterator
from functools import cache, cached_property
from importlib import import_module
from typing import Any, ForwardRef

from tools.places import ROOT

PACKAGES = ("kwire", "kwire.storage", "kwire.net", "kwire.capture", "kwire.fleet", "kwire.spark", "kwire.schema")

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_SHOWN_METHODS = ("__arrow_c_array__", "__arrow_c_schema__", "__arrow_c_stream__", "__getitem__", "__len__")
_NAMED_TUPLE_FIELD = "Alias for field number"


def modules_of(package: str) -> dict[str, tuple[str, ...]]:
    """Module -> the public names that it defines, as the package says."""
    found: dict[str, tuple[str, ...]] = import_module(package)._NAMES
    return found


def markdown(package: str) -> str:
    """The reference of a package as MyST Markdown: a section for each module, a directive for each name."""
    lines: list[str] = []
    for module, names in modules_of(package).items():
        about = (import_module(module).__doc__ or "").split("\n\n")[0].replace("\n", " ")
        start = ".. py:currentmodule::" if lines else ".. py:module::"
        lines += [f"## {title(about)}", "", "```{eval-rst}", f"{start} {package}", ""]
        for name in names:
            lines += [*_entry(package, name), ""]
        lines += ["```", ""]
    return "\n".join(lines)


def title(about: str) -> str:
    """A heading for the names of a module: the first sentence of its docstring, without the names in front."""
    sentence = re.split(r"[.;](?: |$)", about)[0]
    first, _, rest = sentence.partition(": ")
    text = rest if rest and re.fullmatch(r"(\w+(, | and )?)+", first) else first
    return text[0].upper() + text[1:]


def names(package: str) -> list[str]:
    """All names of a package that the reference has, with the package in front."""
    return [f"{package}.{name}" for public in modules_of(package).values() for name in public]


def _entry(package: str, name: str) -> list[str]:
    thing = getattr(import_module(package), name)
    if name != getattr(thing, "__name__", name):  # a second name of the same thing
        return [f".. py:data:: {name}", "", f"   The same as :py:obj:`{thing.__name__}`."]
    if inspect.isclass(thing):
        return _class(thing)
    if callable(thing):
        stubs = [stub for stub in _stubs().get(name, []) if isinstance(stub, _Function)]
        if inspect.isfunction(inspect.unwrap(thing)):
            return _described("function", [f"{name}{_signature(thing)}"], _documentation(thing), _parameters(thing))
        assert stubs, f"{package}.{name} is in no stub"
        return _described("function", [f"{name}{_stub_signature(stub)}" for stub in stubs], _documentation(thing),
                          [one.arg for one in _arguments(stubs[-1])])  # fmt: skip
    comment = _comment_above(package, name)
    return _described("data", [name], comment, [], f":type: {type(thing).__name__}")


def _class(kind: type) -> list[str]:
    compiled = _stubs().get(kind.__name__, []) if kind.__module__.startswith("kwire_c.") else []
    stub = next((one for one in compiled if isinstance(one, ast.ClassDef)), None)
    error = issubclass(kind, Exception)
    members = list(_stub_members(kind, stub) if stub else _members(kind))
    known = [name for name, _ in members]
    head = kind.__name__
    if not error:
        head += _stub_constructor(stub) if stub else _constructor(kind)
    document = _documentation(kind)
    if document.startswith(f"{kind.__name__}("):  # what a dataclass or a named tuple writes by itself
        document = ""
    bases = [base for base in kind.__bases__ if base.__module__.startswith("kwire")] if error else []
    if bases:
        document = f"A subclass of {', '.join(base.__name__ for base in bases)}. {document}"
    lines = _described("exception" if error else "class", [head], document, [*known, *_parameters(kind)])
    for _, described in members:
        lines += ["", *(f"   {line}" if line else "" for line in described)]
    return lines


def _members(kind: type) -> Iterator[tuple[str, list[str]]]:
    """The public attributes and methods of a Python class, in the order of its source."""
    annotations: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        if base.__module__.startswith("kwire"):
            annotations |= inspect.get_annotations(base)
    fields = dataclasses.is_dataclass(kind) or hasattr(kind, "_fields")
    seen: dict[str, Any] = {}
    for base in reversed(kind.__mro__):
        if base.__module__.startswith("kwire"):
            seen |= {name: value for name, value in vars(base).items() if _shown(name)}
    for name, annotation in annotations.items():
        if _shown(name) and name not in seen and not fields:
            yield name, _described("attribute", [name], "", [], f":type: {_text(annotation)}")
    for name, value in seen.items():
        if name in annotations and fields:
            continue  # it is in the signature
        if isinstance(value, property | cached_property) or type(value).__name__ == "once":
            function: Any = value.fget if isinstance(value, property) else None
            function = function or vars(value).get("func") or vars(value)["make"]
            result = _text(inspect.signature(function).return_annotation)
            yield name, _described("property", [name], _documentation(value), [], f":type: {result}")
        elif isinstance(value, classmethod | staticmethod):
            bound, made = isinstance(value, classmethod), value.__func__
            yield name, _described("method", [f"{name}{_signature(made, bound=bound)}"], _documentation(made),
                                   _parameters(made), ":classmethod:" if bound else ":staticmethod:")  # fmt: skip
        elif inspect.isfunction(value):
            option = ":async:" if inspect.iscoroutinefunction(value) else ""
            yield name, _described("method", [f"{name}{_signature(value, bound=True)}"], _documentation(value),
                                   _parameters(value), option)  # fmt: skip


def _stub_members(kind: type, stub: ast.ClassDef) -> Iterator[tuple[str, list[str]]]:
    """The same of a compiled class, as its stub has them."""
    methods: dict[str, list[_Function]] = {}
    for item in stub.body:
        if isinstance(item, _Function) and _shown(item.name):
            methods.setdefault(item.name, []).append(item)
        elif isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name) and _shown(item.target.id):
            document = _documentation(getattr(kind, item.target.id, None))
            yield item.target.id, _described("attribute", [item.target.id], document, [],
                                             f":type: {ast.unparse(item.annotation)}")  # fmt: skip
    for name, faces in methods.items():
        document = _documentation(getattr(kind, name))
        marks = {ast.unparse(mark) for mark in faces[0].decorator_list}
        if "property" in marks:
            result = ast.unparse(faces[0].returns) if faces[0].returns else "Any"
            yield name, _described("property", [name], document, [], f":type: {result}")
            continue
        option = next((f":{mark}:" for mark in ("classmethod", "staticmethod") if mark in marks), "")
        yield name, _described(
            "method", [f"{name}{_stub_signature(face, bound=not option or 'class' in option)}" for face in faces],
            document, [one.arg for one in _arguments(faces[-1])], option,
        )  # fmt: skip


def _shown(name: str) -> bool:
    return not name.startswith("_") or name in _SHOWN_METHODS


def _described(what: str, heads: list[str], document: str, known: Iterable[str], option: str = "") -> list[str]:
    start = f".. py:{what}:: "
    lines = [start + heads[0], *(" " * len(start) + head for head in heads[1:])]
    lines += [f"   {option}"] if option else []
    text = rst(document, known)
    return [*lines, "", *(f"   {line}" if line else "" for line in text.splitlines())] if text else lines


def rst(document: str, known: Iterable[str] = ()) -> str:
    """A docstring of ours as reStructuredText: code stays code, known names before a colon are shown as code."""
    parts = re.split(r"(`[^`\n]+`)", document)
    for number, part in enumerate(parts):
        if number % 2:
            parts[number] = f"``{part.strip('`')}``"
            continue
        part = re.sub(r"([*|\\])", r"\\\1", part)
        part = re.sub(r"(\w)_(?=\W|$)", r"\1\\_", part)
        names = "|".join(map(re.escape, sorted(known, key=len, reverse=True)))
        if names:
            part = re.sub(rf"(?<![\w.\"])((?:{names})(?:(?:, | and )(?:{names}))*)(?=: )",
                          lambda found: re.sub(r"\w+", lambda one: one[0] if one[0] == "and" else f"``{one[0]}``",
                                               found[1]), part)  # fmt: skip
        parts[number] = part
    return "".join(parts)


def _documentation(thing: Any) -> str:
    """The docstring without the signature that Cython puts in front of it."""
    document = getattr(thing, "__doc__", None) or ""
    if document.startswith(_NAMED_TUPLE_FIELD) or isinstance(thing, int | str | tuple):
        return ""
    name = getattr(thing, "__name__", "")
    first, _, rest = document.partition("\n")
    if name and re.match(rf"{re.escape(name)}\(.*\)( -> .*)?$", first):
        document = rest
    return inspect.cleandoc(document)


def _comment_above(module: str, name: str) -> str:
    """The comment above a constant in the module that defines it."""
    home = next(home for home, public in modules_of(module).items() if name in public)
    source = inspect.getsource(import_module(home))
    found = re.search(rf"((?:^# .*\n)+){name}\b", source, re.M)
    return " ".join(re.findall(r"^# (.*)", found[1], re.M)) if found else ""


def _signature(function: Callable[..., Any], *, bound: bool = False) -> str:
    signature = inspect.signature(inspect.unwrap(function))
    parameters = list(signature.parameters.values())[int(bound):]
    text = str(signature.replace(parameters=[
        one.replace(annotation=_Text(_text(one.annotation)) if one.annotation is not one.empty else one.empty,
                    default=_Text(_default(one.default)) if one.default is not one.empty else one.empty)
        for one in parameters if not one.name.startswith("_")
    ], return_annotation=inspect.Signature.empty))  # fmt: skip
    result = signature.return_annotation
    return text if result is inspect.Signature.empty else f"{text} -> {_text(result)}"


class _Text:
    """Text that a signature shows as it is."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def _default(value: Any) -> str:
    text = repr(value)
    return "..." if " at 0x" in text or "<class" in text or len(text) > 60 else text


def _text(annotation: Any) -> str:
    if annotation is None:
        return "None"
    if isinstance(annotation, ForwardRef):  # of a field of a named tuple
        annotation = annotation.__forward_arg__
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
    return text.replace("typing.", "").replace("collections.abc.", "")


def _constructor(kind: type) -> str:
    if not (dataclasses.is_dataclass(kind) or hasattr(kind, "_fields") or inspect.isfunction(kind.__init__)):  # type: ignore[misc]
        return ""
    try:
        return re.sub(r" -> .*$", "", _signature(kind))
    except ValueError:
        return ""


def _stub_constructor(stub: ast.ClassDef) -> str:
    makers = [one for one in stub.body if isinstance(one, _Function) and one.name in ("__init__", "__new__")]
    return re.sub(r" -> .*$", "", _stub_signature(makers[-1], bound=True)) if makers else ""


def _parameters(thing: Any) -> list[str]:
    try:
        return list(inspect.signature(thing).parameters)
    except (TypeError, ValueError):
        return []


@cache
def _stubs() -> dict[str, list[ast.stmt]]:
    """Name -> the definitions of it in the stubs of kwire_c: more than one are overloads."""
    found: dict[str, list[ast.stmt]] = {}
    for file in sorted((ROOT / "kwire_c").glob("*.pyi")):
        own: dict[str, list[ast.stmt]] = {}
        for item in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(item, _Function | ast.ClassDef):
                own.setdefault(item.name, []).append(item)
        found |= {name: items for name, items in own.items() if name not in found}
    return found


def _arguments(stub: _Function) -> list[ast.arg]:
    return [*stub.args.posonlyargs, *stub.args.args, *stub.args.kwonlyargs]


def _stub_signature(stub: _Function, *, bound: bool = False) -> str:
    arguments = ast.unparse(stub.args)
    if bound:
        arguments = re.sub(r"^(self|cls)(, /)?(, )?", "", arguments)
    return f"({arguments})" + (f" -> {ast.unparse(stub.returns)}" if stub.returns else "")
