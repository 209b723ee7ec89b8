"""Stores with one defect in their files give an exit code, at most one clear line and no traceback, and the command
ends.
"""

from __future__ import annotations

import shutil
import struct
from pathlib import Path
from typing import NamedTuple

import handmade_stores
import pytest
from clean_answers import QUESTIONS, status_and_error


class SpoiledPlaces(NamedTuple):
    """A healthy small store and the parts of it that a test spoils."""

    made: handmade_stores.HandmadeStore
    store: Path
    first: Path
    queue: Path
    config: Path

    @property
    def files(self):
        return [file for file in self.store.rglob("*") if file.is_file()]


def a_folder_where_a_log_file_belongs(parts):
    parts.first.unlink()
    parts.first.mkdir()


def a_file_where_the_log_folder_belongs(parts):
    shutil.rmtree(parts.store / "commitlog")
    (parts.store / "commitlog").write_text("no folder")


def a_file_where_the_queue_folder_belongs(parts):
    shutil.rmtree(parts.store / "consumequeue")
    (parts.store / "consumequeue").write_text("no folder")


def a_file_where_a_topics_folder_belongs(parts):
    (parts.store / "consumequeue" / "file").write_text("no folder")
    (parts.store / "consumequeue" / "Orders" / "file").write_text("no folder")


def a_file_where_the_index_folder_belongs(parts):
    shutil.rmtree(parts.store / "index")
    (parts.store / "index").write_text("no folder")


def a_folder_where_the_checkpoint_belongs(parts):
    (parts.store / "checkpoint").unlink()
    (parts.store / "checkpoint").mkdir()


def a_folder_where_a_table_belongs(parts):
    (parts.config / "topics.json").mkdir()


def names_that_are_no_numbers(parts):
    for folder in ("commitlog", "index", "consumequeue/Orders/0", "consumequeue/Orders"):
        (parts.store / folder / "x.bak").write_bytes(b"hello")
        (parts.store / folder / "-5").write_bytes(b"hello")
        (parts.store / folder / ("9" * 40)).write_bytes(b"hello")
        (parts.store / folder / "１２").write_bytes(b"hello")


def names_beyond_64_bits(parts):
    (parts.store / "commitlog" / "99999999999999999999").write_bytes(b"\0" * 4096)
    (parts.queue / "99999999999999999999").write_bytes(b"\1" * 400)
    (parts.store / "consumequeue" / "Orders" / "99999999999999999999").mkdir()


def files_of_different_sizes(parts):
    with parts.first.open("ab") as file:
        file.write(b"\0" * 999)


def sizes_that_are_no_multiples(parts):
    for file in (*parts.queue.iterdir(), *(parts.store / "index").iterdir()):
        with file.open("ab") as opened:
            opened.write(b"\7" * 13)


def every_file_empty(parts):
    for file in parts.files:
        file.write_bytes(b"")


def every_file_one_byte(parts):
    for file in parts.files:
        file.write_bytes(b"\x7f")


def every_file_full_of_ones(parts):
    for file in parts.files:
        file.write_bytes(b"\xff" * file.stat().st_size)


def a_checkpoint_cut_short(parts):
    (parts.store / "checkpoint").write_bytes(b"\0" * 7)


def index_headers_that_count_too_much(parts):
    for file in (parts.store / "index").iterdir():
        data = bytearray(file.read_bytes())
        struct.pack_into(">ii", data, 32, 0x7FFFFFFF, 0x7FFFFFFF)
        file.write_bytes(data)


def index_chains_that_loop(parts):
    for file in (parts.store / "index").iterdir():
        data = bytearray(file.read_bytes())
        for entry in range(1, 60):
            struct.pack_into(">i", data, 40 + 80 + 20 * entry + 16, (entry % 50) + 1)
        file.write_bytes(data)


def queue_entries_that_point_anywhere(parts):
    data = b"".join(struct.pack(">qiq", n * 7919 % (1 << 62), 1 << 30, -(1 << 63) + n) for n in range(20))
    (parts.queue / f"{0:020d}").write_bytes(data)


def lengths_below_zero_zero_and_huge(parts):
    data = bytearray(parts.first.read_bytes())
    for number, unit in enumerate(parts.made.units[:12]):
        struct.pack_into(">i", data, unit.offset, (0, -1, 0x7FFFFFFF, -(1 << 31))[number % 4])
    parts.first.write_bytes(data)


def tables_that_are_bombs(parts):
    (parts.config / "topics.json").write_bytes(b"[" * 500_000)
    (parts.config / "consumerOffset.json").write_bytes(b'{"offsetTable":' * 50_000 + b"}" * 50_000)
    (parts.config / "delayOffset.json").write_bytes(b'{"offsetTable":{1:' + b"9" * 200_000 + b"}}")
    (parts.config / "subscriptionGroup.json").write_bytes(b'"' + b"\\u0000" * 200_000)
    (parts.config / "consumerFilter.json").write_bytes(b'{"a":1e999999999,"b":-' + b"1" * 5000 + b"}")


def tables_of_other_kinds(parts):
    for table, text in (
        ("topics.json", "[]"),
        ("consumerOffset.json", '{"offsetTable":{"T@G":[1,2]}}'),
        ("delayOffset.json", '{"offsetTable":{"x":"y"}}'),
        ("subscriptionGroup.json", '{"subscriptionGroupTable":{"g":7}}'),
        ("consumerFilter.json", '{"filterDataByTopic":{"t":{"groupFilterData":{"g":null}}}}'),
        ("lmqConsumerOffset.json", '{"lmqOffsetTable":{"a":{"b":1}}}'),
    ):
        (parts.config / table).write_text(text)


def a_timer_check_of_three_bytes(parts):
    (parts.config / "timercheck").write_bytes(b"abc")


SPOILED = [
    a_folder_where_a_log_file_belongs,
    a_file_where_the_log_folder_belongs,
    a_file_where_the_queue_folder_belongs,
    a_file_where_a_topics_folder_belongs,
    a_file_where_the_index_folder_belongs,
    a_folder_where_the_checkpoint_belongs,
    a_folder_where_a_table_belongs,
    names_that_are_no_numbers,
    names_beyond_64_bits,
    files_of_different_sizes,
    sizes_that_are_no_multiples,
    every_file_empty,
    every_file_one_byte,
    every_file_full_of_ones,
    a_checkpoint_cut_short,
    index_headers_that_count_too_much,
    index_chains_that_loop,
    queue_entries_that_point_anywhere,
    lengths_below_zero_zero_and_huge,
    tables_that_are_bombs,
    tables_of_other_kinds,
    a_timer_check_of_three_bytes,
]


@pytest.mark.full_form(keep=6)
@pytest.mark.parametrize("spoil", SPOILED, ids=lambda spoil: spoil.__name__)
def test_a_spoiled_store_is_told_and_survived(tmp_path, spoil):
    new_store = handmade_stores.healthy()
    store = new_store.write(tmp_path / "store")
    queue = store / "consumequeue" / "Orders" / "0"
    parts = SpoiledPlaces(new_store, store, store / "commitlog" / f"{0:020d}", queue, store / "config")
    parts.config.mkdir()
    spoil(parts)
    for question in QUESTIONS:
        status_and_error(store, question)
