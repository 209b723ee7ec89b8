"""Big-endian numpy types of all records that are read in bulk.

See docs/formats/consume-queue.md#entry, #ext, #batch-queues, docs/formats/index-file.md#layout,
docs/formats/delays.md#wheel, #timer-log.
"""

from __future__ import annotations

import numpy as np

CQ_UNIT = np.dtype([("physical_offset", ">i8"), ("size", ">i4"), ("tags_code", ">i8")])
BATCH_CQ_UNIT = np.dtype(
    [
        ("physical_offset", ">i8"),
        ("size", ">i4"),
        ("tags_code", ">i8"),
        ("store_timestamp", ">i8"),
        ("msg_base_offset", ">i8"),
        ("batch_size", ">i2"),
        ("compacted_offset", ">i4"),
        ("reserved", ">i4"),
    ]
)
ROCKSDB_QUEUE_ROW = np.dtype(
    [("physical_offset", ">i8"), ("size", ">i4"), ("tags_code", ">i8"), ("store_timestamp", ">i8")]
)
INDEX_SLOT = np.dtype(">i4")
INDEX_ENTRY = np.dtype([("key_hash", ">i4"), ("phy_offset", ">i8"), ("time_diff", ">i4"), ("prev", ">i4")])
TIMER_SLOT = np.dtype([("time", ">i8"), ("first", ">i8"), ("last", ">i8"), ("count", ">i4"), ("magic", ">i4")])
TIMER_LOG_UNIT = np.dtype(
    [
        ("size", ">i4"),
        ("prev", ">i8"),
        ("magic", ">i4"),
        ("write_time", ">i8"),
        ("delay", ">i4"),
        ("physical_offset", ">i8"),
        ("message_size", ">i4"),
        ("topic_hash", ">i4"),
        ("reserved", ">i8"),
    ]
)
