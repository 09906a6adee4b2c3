"""Registers the format "kwire" with Spark by itself: PySpark imports all packages named pyspark_* for that."""

from __future__ import annotations

from kwire.spark.source import KwireDataSource as DefaultSource

__all__ = ["DefaultSource"]
