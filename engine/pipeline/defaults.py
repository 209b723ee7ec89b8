"""What jobs and queries take where nobody says otherwise, and the packages they need."""

from __future__ import annotations

NEEDED = ("pyspark", "pandas", "pyarrow")
SPLIT_BYTES = 128 << 20
"""Bytes of a log that one split of a job reads: finding where it begins takes 16 ms, as walking some 40 MiB does."""
LOG_BYTES = 256 << 20
"""Bytes of a log that one task of a query reads: a quarter of a file, for a task costs what walking 64 MiB costs."""
PART_BYTES = 16 << 20
"""Bytes of queue or index files that one task of a query reads."""
