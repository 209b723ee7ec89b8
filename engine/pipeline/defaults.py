"""Defaults of jobs and queries, and the packages that they need."""

from __future__ import annotations

NEEDED = ("pyspark", "pandas", "pyarrow")
SPLIT_BYTES = 128 << 20
"""Bytes of a log that one split of a job reads: finding where it begins takes 16 ms, as walking some 40 MiB does."""
LOG_BYTES = 256 << 20
"""Bytes of a log that one task of a query reads: a quarter of a file, for a task costs what walking 64 MiB costs."""
PART_BYTES = 16 << 20
"""Bytes of queue or index files that one task of a query reads."""
IMPORT_MEMORY_BYTES = 512 << 20
"""Bytes of rows up to which ``import`` sorts them in memory; with more it asks Spark.

The other jobs need no such bound. Measured at rest (tests/bench/bench_here_or_spark.py: 1 GiB of 380-byte units, two
cores, medians of two turns, seconds here / by Spark without its start, which takes 4.8): verify 2.2 / 5.4, trace 1.6 /
5.8, rebuild 1.6 / 4.9, export 10.0 / 9.0. So this process answers, and Spark is for ``--master`` and ``--spark``; for
an export of more than about 5 GiB on one machine ``--spark`` is the quicker one.
"""
