"""messages.pyi: fresh, and true to the classes. tests/types has what type checkers make of it."""

import ast

import pytest

from kwire import messages, schema
from tools.schema import stub


@pytest.mark.quick
def test_the_stub_is_fresh():
    assert stub.STUB.read_text() == stub.text(), "stale: run python -m tools.schema.stub"


def classes_of(node):
    return {item.name: item for item in node.body if isinstance(item, ast.ClassDef)}


def fields_of(node):
    return [item.target.id for item in node.body if isinstance(item, ast.AnnAssign) and item.target.id[0] != "_"]


@pytest.mark.quick
def test_every_class_is_as_the_stub_says():
    stubs = classes_of(ast.parse(stub.STUB.read_text()))
    assert set(stubs) == set(schema.message_names())
    for name, node in stubs.items():
        cls = getattr(messages, name)
        for made, wanted in [(cls, node), *((getattr(cls, nested), item) for nested, item in classes_of(node).items())]:
            fields = fields_of(wanted)
            value = made()
            assert list(made.__match_args__) == fields, made
            init = next(item for item in wanted.body if isinstance(item, ast.FunctionDef))
            for field, default in zip(init.args.kwonlyargs, init.args.kw_defaults, strict=True):
                if not isinstance(default, ast.Constant) or default.value is not ...:
                    assert getattr(value, field.arg) == ast.literal_eval(default), (made, field.arg)
