"""A Spark Connect session of its own: the format without register(), and errors whose first line says what is wrong."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from typing import Any

import pytest

from tests.spark.conftest import ROOT, prepare_environment
from tests.spark.logs import batch, damaged, segment

SIZE = len(batch(0))

# What the user runs. It prints one line "name JSON" for each value that the test checks.
JOB = '''
import json, sys
from pyspark.sql import SparkSession

logs, bad = sys.argv[1:]
builder = SparkSession.builder.remote("local[2]")
for setting in (
    "spark.ui.enabled=false", "spark.driver.memory=600m", "spark.driver.host=127.0.0.1",
    "spark.driver.bindAddress=127.0.0.1", "spark.connect.grpc.binding.address=127.0.0.1",
):
    builder = builder.config(*setting.split("=", 1))
spark = builder.getOrCreate()

def say(name, value):
    print(name, json.dumps(value), flush=True)

def read(**options):
    return spark.read.format("kwire").options(**options)

def fails(name, read_it):
    try:
        say(name, ["no error", str(read_it())])
    except Exception as error:
        say(name, [line for line in str(error).splitlines() if line.strip()])

say("loaded", "kwire" in sys.modules)
say("count", read().load(logs).count())
say("columns", [list(row) for row in read(columns="offset,topic").load(logs).orderBy("offset").limit(2).collect()])
fails("damage", lambda: read().load(bad).collect())
fails("permissive", lambda: read(mode="PERMISSIVE").load(bad).count())
fails("option", lambda: read(startingOffset="5").load(logs))
fails("kafka", lambda: read(subscribe="t").load(logs))
fails("topic", lambda: read(topic="u").load(logs).count())
fails("path", lambda: read().load(logs + "/nothing").count())
import kwire.spark
kwire.spark.register(spark)
kwire.spark.register(spark)
say("registered", read().load(logs).count())
stream = spark.readStream.format("kwire").option("endingOffsets", "latest").load(logs)
writer = stream.writeStream.format("noop").trigger(availableNow=True).option("checkpointLocation", bad + ".state")
query = writer.start()
fails("stream", query.awaitTermination)
spark.stop()
'''


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What the job said; logs and bad are the folders that it was given."""
    if importlib.util.find_spec("grpc") is None:
        pytest.fail("Spark Connect needs grpcio: pip install 'pyspark[connect]' (make build does)", pytrace=False)
    prepare_environment()
    folder = tmp_path_factory.mktemp("connect")
    for partition in (0, 1):
        segment(folder / "logs" / f"t-{partition}", 0, batch(0, 5), batch(5, 5))
    bad = segment(folder / "bad" / "t-0", 0, batch(0), damaged(batch(3), 75), batch(6))
    (folder / "job.py").write_text(JOB)
    # SPARK_TESTING: the server takes a free port
    environment = {**os.environ, "SPARK_TESTING": "1", "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    done = subprocess.run([sys.executable, folder / "job.py", folder / "logs", bad.parents[1]], cwd=folder,
                          capture_output=True, text=True, timeout=280, env=environment)
    assert done.returncode == 0, done.stderr[-4000:]
    lines = [line.partition(" ") for line in done.stdout.splitlines()]
    return {"logs": str(folder / "logs"), "bad": str(bad)} | {name: json.loads(rest) for name, _, rest in lines}


def test_the_format_is_there_without_register_and_with_it(said: dict[str, Any]) -> None:
    assert said["loaded"] is False, "the job has not imported kwire itself"
    assert said["count"] == said["registered"] == 20
    assert said["columns"] == [[0, "t"], [0, "t"]]


def test_damage_is_told_before_any_stack(said: dict[str, Any]) -> None:
    reason = f"kwire.CorruptBatchError: checksum does not match at {said['bad']}, offset 3, byte {SIZE}"
    # Spark's own sentence, once more with its error class; no traceback of Python, no stack of the JVM
    first, second, *rest = said["damage"]
    assert first.strip().startswith("An exception was thrown from the Python worker")
    assert second.endswith(reason), said["damage"]
    assert [line.strip() for line in rest] in ([], ["SQLSTATE: 38000"])
    assert said["permissive"] == ["no error", "7"]


@pytest.mark.parametrize(("name", "text"), [
    ("option", 'ValueError: unknown option "startingoffset"; did you mean "startingOffsets"?'),
    ("kafka", "ValueError: option subscribe: use topic, a comma list of names"),
    ("topic", 'ValueError: option topic: no topic "u" in {logs}; there is 1 topic: t'),
    ("path", "FileNotFoundError: {logs}/nothing: no such file or folder; in {logs} there are 2 entries: t-0, t-1"),
    ("stream", "ValueError: option endingOffsets applies to batch reads only, not to streams"),
])  # fmt: skip
def test_the_first_line_says_what_is_wrong(said: dict[str, Any], name: str, text: str) -> None:
    first = said[name][0]
    assert text.format(logs=said["logs"]) in first and "Traceback" not in "".join(said[name]), said[name]
