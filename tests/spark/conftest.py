"""One Spark session for all tests of this folder: local[2], a small heap, no UI."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tools.places import ROOT

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def prepare_environment() -> None:
    """Java, the workers' Python and its path, loopback: before the JVM starts."""
    from kwire.spark import java

    try:
        java.prepare()
    except RuntimeError as error:
        pytest.fail(str(error), pytrace=False)
    os.environ["PYSPARK_PYTHON"] = os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
    path = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if str(ROOT) not in path:
        os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), *filter(None, path)])


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    prepare_environment()
    from pyspark.sql import SparkSession

    import kwire.spark

    session = (
        SparkSession.builder.master("local[2]").appName("kwire tests")
        .config("spark.ui.enabled", "false").config("spark.driver.memory", "700m")
        .config("spark.driver.host", "127.0.0.1").config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2").config("spark.sql.session.timeZone", "UTC")
        .config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse")))
        .config("spark.ui.showConsoleProgress", "false").config("spark.log.level", "ERROR")
        .getOrCreate()
    )
    kwire.spark.register(session)
    yield session
    session.stop()
