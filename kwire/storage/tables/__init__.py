"""Records as tables: columns, Arrow and Parquet."""
