"""The data source on executors of their own (local-cluster): one is killed in mid-job, tasks are speculated."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import kwire
from tests.spark.conftest import prepare_environment
from tools.places import ROOT

JOB = '''
import json, os, sys, threading, time
import psutil
from pyspark.sql import SparkSession

spark = (
    SparkSession.builder.master("local-cluster[2,1,1024]").config("spark.ui.enabled", "false")
    .config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
    .config("spark.speculation", "true").config("spark.speculation.interval", "50ms")
    .config("spark.speculation.multiplier", "1.1").config("spark.speculation.quantile", "0.1")
    .config("spark.speculation.minTaskRuntime", "50ms").config("spark.executor.memory", "512m")
    .config("spark.sql.shuffle.partitions", "2")
    .config("spark.ui.showConsoleProgress", "false").config("spark.log.level", "ERROR").getOrCreate()
)
import kwire.spark
kwire.spark.register(spark)
killed, done = [], []


def is_executor(process):
    try:
        return any("CoarseGrainedExecutorBackend" in word for word in process.cmdline())
    except psutil.Error:  # a worker that has just ended
        return False


def executors():
    return [one for one in psutil.Process().children(recursive=True) if is_executor(one)]


def kill():
    """Kill an executor once tasks run on it."""
    tracker = spark.sparkContext.statusTracker()
    while thread.is_alive() and not done:
        if any(stage and stage.numCompletedTasks >= 2 and stage.numActiveTasks
               for stage in map(tracker.getStageInfo, tracker.getActiveStageIds())):
            for one in executors()[:1]:
                one.kill()
                killed.append(one.pid)
                return
        time.sleep(0.01)


frame = spark.read.format("kwire").option("partitionBytes", "100k").option("openCostBytes", "1k").load(sys.argv[1])
spark.range(2).count()
thread = threading.Thread(target=kill, daemon=True)
thread.start()
row = frame.selectExpr("count(*)", "count(distinct partition, offset)", "sum(offset)", "sum(length(value))").first()
done.append(True)
thread.join()
print(json.dumps({"row": list(row), "tasks": frame.rdd.getNumPartitions(), "killed": len(killed)}))
spark.stop()
'''


@pytest.mark.soak
def test_an_executor_is_killed_and_tasks_are_speculated(tmp_path: Path) -> None:
    prepare_environment()
    logs = tmp_path / "logs"
    for partition in range(4):
        folder = logs / f"t-{partition}"
        folder.mkdir(parents=True)
        with open(folder / f"{0:020}.log", "wb") as file:
            for base in range(0, 20_000, 100):
                records = [(1000 + at, b"k", b"v" * 200) for at in range(100)]
                file.write(kwire.build_batch(records, base_offset=base))
    (tmp_path / "job.py").write_text(JOB)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path])}
    done = subprocess.run([sys.executable, tmp_path / "job.py", logs], cwd=tmp_path, capture_output=True, text=True,
                          timeout=600, env=environment)
    assert done.returncode == 0, done.stderr[-4000:]
    said = json.loads(done.stdout.splitlines()[-1])
    rows = 4 * 20_000
    assert said["row"] == [rows, rows, 4 * sum(range(20_000)), 200 * rows]
    assert said["tasks"] > 10 and said["killed"] == 1
