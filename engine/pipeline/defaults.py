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

The other jobs need no such bound: on one machine this process is quicker than Spark at every size that was measured
(1 GiB of 380-byte units, two cores, seconds here / by Spark without its start: stats 1.0 / 4.8, verify 2.6 / 8.2,
export 7.5 / 11.8, rebuild 1.4 / 9.1; on a shared machine, to be repeated on one at rest), so Spark is for ``--master``
and ``--spark``.
"""
