"""Questions to a store in SQL, answered by DuckDB over the engine's columns; the store is only read."""
