"""What jobs and queries take where nobody says otherwise, and the packages they need."""

from __future__ import annotations

NEEDED = ("pyspark", "pandas", "pyarrow")
SPLIT_BYTES = 128 << 20
"""Bytes of a log that one split of a job reads: finding where it begins takes 16 ms, as walking some 40 MiB does."""
LOG_BYTES = 256 << 20
"""Bytes of a log that one task of a query reads: a quarter of a file, for a task costs what walking 64 MiB costs."""
PART_BYTES = 16 << 20
"""Bytes of queue or index files that one task of a query reads."""
SMALL_BYTES = 512 << 20
"""Bytes of logs below which a job on this machine answers without Spark.

To start it takes S = 6.5 s, and a core walks r = 100 MiB/s in a job (1 GiB: stats in 6.6 s on two cores of Spark's,
verify in 7; of the engine's own check one core takes 3.2). With N cores Spark is through first where
S + B/(r·N) < B/r, so from B = S·r·N/(N − 1) on: 1.3 GiB with two cores, 0.7 with eight, and with no number of cores
below 0.63. These figures were taken on a busy machine and are to be repeated on one at rest.
"""
