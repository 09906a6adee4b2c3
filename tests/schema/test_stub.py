"""messages.pyi: fresh, true to the classes, and understood by type checkers."""

import ast
import json
import subprocess
import sys

import pytest

from kwire import messages, schema
from tools.schema import stub

SAMPLE = '''
from typing import assert_type
from uuid import UUID
from kwire.messages import FetchRequest, MetadataResponse, OffsetCommitKey, ProduceRequest

partition = FetchRequest.FetchPartition(partition=1)
request = FetchRequest(topics=[FetchRequest.FetchTopic(topic="a", partitions=[partition])], forgotten_topics_data=())
assert_type(request.topics[0].partitions[0].fetch_offset, int)
assert_type(request.cluster_id, str | None)
assert_type(request.replica_state, FetchRequest.ReplicaState)
assert_type(request.topics[0].topic_id, UUID)
assert_type(MetadataResponse().topics[0].partitions[0].isr_nodes, tuple[int, ...])
assert_type(ProduceRequest().topic_data[0].partition_data[0].records, bytes | None)
assert_type(OffsetCommitKey(group="g").unknown_tags, dict[int, bytes])
'''
WRONG = '''
from kwire.messages import FetchRequest
FetchRequest(max_wait_ms="soon")
FetchRequest().topics[0].no_such_field
FetchRequest(no_such_field=1)
'''


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


@pytest.mark.parametrize(("sample", "errors"), [(SAMPLE, 0), (WRONG, 3)])
def test_mypy_resolves_nested_fields(tmp_path, sample, errors):
    path = tmp_path / "sample.py"
    path.write_text(sample)
    run = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", str(path)],
        capture_output=True, text=True, cwd=stub.STUB.parents[1],
    )
    assert run.stdout.count("error:") == errors, run.stdout + run.stderr


@pytest.mark.parametrize(("sample", "errors"), [(SAMPLE, 0), (WRONG, 3)])
def test_pyright_resolves_nested_fields(tmp_path, sample, errors):
    path = tmp_path / "sample.py"
    path.write_text(sample)
    (tmp_path / "pyrightconfig.json").write_text(
        json.dumps({"typeCheckingMode": "standard", "pythonVersion": "3.11", "extraPaths": [str(stub.STUB.parents[1])]})
    )
    run = subprocess.run(
        [sys.executable, "-m", "basedpyright", "--outputjson", "-p", str(tmp_path), str(path)],
        capture_output=True, text=True, cwd=tmp_path,
    )
    diagnostics = json.loads(run.stdout)["generalDiagnostics"]
    assert len([item for item in diagnostics if item["severity"] == "error"]) == errors, diagnostics
