"""A standalone cluster on loopback: kwire reaches the executors as an archived environment, as in the README."""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

from tests.conftest import JVM
from tests.spark.conftest import ROOT, prepare_environment
from tests.spark.logs import batch, damaged, segment

HOME = Path(pyspark.__file__).parent

# The job that the user submits. It prints one line "name value" for each value that the test checks.
JOB = '''
import sys
from pyspark.sql import SparkSession
import kwire.spark

spark = SparkSession.builder.appName("kwire cluster test").getOrCreate()
kwire.spark.register(spark)
frame = spark.read.format("kwire").option("partitionBytes", "2000").load(sys.argv[1])
print("rows", frame.count(), flush=True)
print("sum", frame.selectExpr("sum(offset) as s").first().s, flush=True)

def where(_):
    import os, kwire, kwire_c
    yield os.path.abspath(kwire.__file__), os.path.abspath(kwire_c.__file__), os.environ["SPARK_EXECUTOR_DIRS"]

for place in spark.sparkContext.parallelize(range(8), 8).mapPartitions(where).distinct().collect():
    print("place", *place, flush=True)
payloads = spark.read.format("binaryFile").load(sys.argv[1] + "/t-*/*.log")
print("records", kwire.spark.records(payloads, "content", keep=["path"]).count(), flush=True)
try:
    spark.read.format("kwire").load(sys.argv[2]).collect()
except Exception as error:
    print("error", str(error).strip().splitlines()[-1], flush=True)
spark.stop()
'''


def archived_environment(folder: Path) -> Path:
    """The result of `pip install --target kwire-env kwire` and `tar czf kwire-env.tar.gz -C kwire-env .`."""
    kept = shutil.ignore_patterns("__pycache__", "*.pyx", "*.pxd", "*.c", "*.h")
    for package in ("kwire", "kwire_c"):
        shutil.copytree(ROOT / package, folder / "kwire-env" / package, ignore=kept)
    path = folder / "kwire-env.tar.gz"
    with tarfile.open(path, "w:gz", compresslevel=1) as archive:
        archive.add(folder / "kwire-env", arcname=".")
    return path


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def wait_for(text: str, log: Path, process: subprocess.Popen[bytes]) -> None:
    for _ in range(600):
        if text in log.read_text():
            return
        assert process.poll() is None, log.read_text()[-3000:]
        time.sleep(0.1)
    raise AssertionError(f"{text!r} did not appear in 60 s:\n{log.read_text()[-3000:]}")


@pytest.fixture(scope="module")
def master(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A master and two workers of one core and 600 MB each; their own folders, nothing of this tree on their path."""
    prepare_environment()
    folder = tmp_path_factory.mktemp("cluster")
    port = free_port()
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "PYSPARK_PYTHON")}
    environment |= {"SPARK_LOCAL_IP": "127.0.0.1", "SPARK_DAEMON_MEMORY": "128m", "SPARK_LOG_DIR": str(folder),
                    "SPARK_DAEMON_JAVA_OPTS": JVM}
    options = ["--host", "127.0.0.1", "--webui-port", "0"]
    commands = {
        "master": ["org.apache.spark.deploy.master.Master", *options, "--port", str(port)],
        **{f"worker{n}": ["org.apache.spark.deploy.worker.Worker", *options, "--cores", "1", "--memory", "600m",
                          "--work-dir", str(folder / f"work{n}"), f"spark://127.0.0.1:{port}"] for n in (1, 2)},
    }  # fmt: skip
    processes = []
    try:
        for name, command in commands.items():
            log = folder / f"{name}.log"
            with open(log, "wb") as out:
                processes.append(subprocess.Popen([HOME / "bin" / "spark-class", *command], stdout=out, cwd=folder,
                                                  stderr=subprocess.STDOUT, env=environment))
            wait_for("I have been elected leader" if name == "master" else "Successfully registered with master", log,
                     processes[-1])
        yield f"spark://127.0.0.1:{port}"
    finally:
        for process in reversed(processes):
            process.terminate()
        for process in processes:
            process.wait(30)


def test_executors_take_kwire_from_the_archive(master: str, tmp_path: Path) -> None:
    for partition in range(4):
        segment(tmp_path / "logs" / f"t-{partition}", 0, *(batch(n * 50, 50) for n in range(20)))
    bad = segment(tmp_path / "bad" / "t-0", 0, batch(0), damaged(batch(3), 75))
    archive = archived_environment(tmp_path)
    (tmp_path / "job.py").write_text(JOB)
    environment = {**os.environ, "PYSPARK_PYTHON": sys.executable, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [HOME / "bin" / "spark-submit", "--master", master, "--archives", f"{archive}#kwire-env",
         "--conf", "spark.executorEnv.PYTHONPATH=kwire-env", "--conf", "spark.executor.memory=512m",
         "--conf", f"spark.executor.extraJavaOptions={JVM}",
         "--conf", "spark.cores.max=2", "--conf", "spark.driver.memory=512m", "--conf", "spark.ui.enabled=false",
         "--conf", "spark.driver.host=127.0.0.1", "--conf", "spark.log.level=ERROR",
         tmp_path / "job.py", tmp_path / "logs", tmp_path / "bad"],
        capture_output=True, text=True, timeout=560, env=environment, cwd=tmp_path,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-4000:]
    said: dict[str, list[str]] = {}
    for line in done.stdout.splitlines():
        name, _, rest = line.partition(" ")
        said.setdefault(name, []).append(rest)
    assert said["rows"] == ["4000"] and said["records"] == ["4000"]
    assert said["sum"] == [str(4 * sum(range(1000)))]
    places = [line.split() for line in said["place"]]
    assert len(places) == 2, "both executors ran tasks"
    for kwire_file, extension_file, _ in places:
        for file in (kwire_file, extension_file):
            assert "/kwire-env/" in file and str(ROOT) not in file and "site-packages" not in file
    assert said["error"][0].startswith("kwire.CorruptBatchError: checksum does not match at ")
    assert str(bad) in said["error"][0] and "offset 3, byte" in said["error"][0]
