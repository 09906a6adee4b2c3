"""Spark: functions over RDDs and columns, the data source, streams, a cluster."""
