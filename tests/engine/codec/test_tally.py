"""Tallies of units: both twins compute the same sums, tags, hosts and sketches, and tallies can be merged."""

import random
from collections import Counter

import numpy as np
import pytest
from golden_stores import names
from raw_units import raw_unit

from engine.codec import tally
from engine.codec.columns import BLANK, UnitColumns, scan_block
from engine.codec.message import Unit, host_text
from engine.codec.tally import (
    Groups,
    KeySet,
    UnitTexts,
    bucket_size,
    estimate_distinct,
    keys_in,
    quantile,
    size_buckets,
)
from engine.codec.topic_table import TopicTable
from engine.codec.unit_scan import walk

TWINS = ["compiled", "plain"]
PROPERTIES = [
    b"TAGS\x01A\x02KEYS\x01k1 k2\x02UNIQ_KEY\x0101\x02",
    b"TAGS\x01BB\x02TAGS\x01Aa",
    b"TAGS\x01BB\x02",
    b"KEYS\x01 a  b \x02",
    b"TAGS\x01\x02UNIQ_KEY\x01" + b"X" * 32,
    b"\x02\x02TAGS\x01\x01\x02",
    b"",
    "TAGS\x01標籤\x02".encode(),
]


@pytest.fixture(params=TWINS)
def which(request, monkeypatch):
    if request.param == "plain":
        monkeypatch.setenv("STORESCOPE_PLAIN", "1")
    else:
        assert tally.twin() is not None
    return request.param


def texts_of(data, base=0, room=1 << 20):
    block, topics, texts = UnitColumns(4096), TopicTable(), UnitTexts(room)
    scan_block(data, len(data), base, 0, block, topics)
    units = block.count - int(block.count > 0 and block.kind[block.count - 1] == BLANK)
    texts.read(block, units, topics)
    return texts, units, block


def tag_names(texts, rows):
    return [None if n == 0 else "?" if n < 0 else texts.tags.names[n - 1] for n in texts.tag[:rows].tolist()]


def test_groups_have_the_sums_of_their_rows_in_any_order(which):
    rng = random.Random(5)
    groups, expected, observed = Groups(), Counter(), {}
    for _ in range(7):
        keys = [rng.choice([-1, 0, 1 << 62, rng.randrange(3000), rng.randrange(3000)]) for _ in range(1000)]
        sizes = [rng.randrange(1, 1 << 27) for _ in keys]
        groups.add(np.array(keys, np.int64), np.array(sizes, np.int32))
        expected.update({(key, 0): 0 for key in keys})
        for key, size in zip(keys, sizes, strict=True):
            expected[key, 0] += 1
            expected[key, 1] += size
            observed.setdefault(key, []).append(size)
    assert {(g.key, 0): g.messages for g in groups} | {(g.key, 1): g.bytes for g in groups} == dict(expected)
    assert len(groups) == len(expected) // 2 > 1000
    assert {g.key: (g.smallest, g.largest) for g in groups} == {k: (min(v), max(v)) for k, v in observed.items()}


@pytest.mark.parametrize("properties", PROPERTIES)
def test_a_row_has_the_tag_that_the_single_unit_codec_reads(which, properties):
    data = raw_unit(properties=properties)
    texts, rows, _ = texts_of(data)
    (unit,) = [item for item in walk(data, 0) if isinstance(item, Unit)]
    assert tag_names(texts, rows) == [unit.tags]
    kinds = (int(np.count_nonzero(texts.registers[:, kind])) for kind in (0, 1))
    assert tuple(kinds) == (int(unit.unique_key is not None), len(set(unit.keys)))


def test_tags_beyond_the_tables_size_are_counted_together(which):
    data = b"".join(raw_unit(properties=f"TAGS\x01tag-{n:04}-{'x' * 30}\x02".encode()) for n in range(40))
    texts, rows, _ = texts_of(data, room=10)
    assert tag_names(texts, rows) == [f"tag-{n:04}-{'x' * 30}" for n in range(10)] + ["?"] * 30


@pytest.mark.parametrize("name", [*names()[:4], "ipv6-and-unicode-5.3.3"])
def test_the_twins_agree_on_golden_logs_and_with_the_codec(golden, name, monkeypatch):
    for path in sorted(golden(name).rglob("commitlog/*")):
        data, base = path.read_bytes(), int(path.name)
        fast, rows, block = texts_of(data, base)
        units = [item for item in walk(data, base) if isinstance(item, Unit)][:rows]
        assert tag_names(fast, rows) == [unit.tags for unit in units]
        for row, unit in enumerate(units):
            if fast.host[row] >= 0:
                raw = int(fast.host[row]).to_bytes(4, "big")
                assert host_text(raw + bytes(4)).rpartition(":")[0] == unit.born_host.rpartition(":")[0]
            else:
                assert tally.ipv6_host(block, row) == unit.born_host_raw[:16]
        monkeypatch.setenv("STORESCOPE_PLAIN", "1")
        slow, _, _ = texts_of(data, base)
        monkeypatch.delenv("STORESCOPE_PLAIN")
        assert (fast.tag[:rows] == slow.tag[:rows]).all()
        assert (fast.host[:rows] == slow.host[:rows]).all()
        assert fast.tags.names == slow.tags.names
        known_values = min(len(fast.registers), len(slow.registers))
        assert (fast.registers[:known_values] == slow.registers[:known_values]).all()


@pytest.mark.parametrize("number", [0, 1, 300, 5000, 60_000])
def test_a_sketch_estimates_the_number_of_keys(number):
    registers = np.zeros(tally.REGISTERS, np.uint8)
    for item in range(number):
        place, rank = tally._place_and_rank(f"key-{item}".encode())
        registers[place] = max(rank, int(registers[place]))
    assert abs(estimate_distinct(registers) - number) <= 0.05 * number


def test_quantiles_are_within_a_sixty_fourth_of_the_size():
    rng = random.Random(3)
    sizes = sorted(int(91 * 1.2 ** (rng.random() * 60)) for _ in range(5000))
    buckets = Counter(size_buckets(np.array(sizes, np.int32)).tolist())
    for share in (0.01, 0.5, 0.99, 1.0):
        true = sizes[max(0, -(-int(share * 1000) * len(sizes) // 1000) - 1)]
        assert abs(quantile(buckets, share, sizes[0], sizes[-1]) - true) <= true / 32
    assert quantile(Counter({size_buckets(np.array([200], np.int32))[0]: 3}), 0.99, 200, 200) == 200
    assert bucket_size(int(size_buckets(np.array([128], np.int32))[0])) in range(128, 133)


@pytest.mark.parametrize("number", [0, 1, 40, 3000])
def test_units_with_one_of_many_keys_are_found(which, number):
    keys = [f"k{n}" for n in range(0, number * 3, 3)] + ["", "標籤"]
    units = [raw_unit(properties=f"KEYS\x01k{n} x{n}\x02UNIQ_KEY\x01u{n}\x02".encode()) for n in range(120)]
    units += [
        raw_unit(properties="UNIQ_KEY\x01標籤\x02UNIQ_KEY\x01later".encode()),
        raw_unit(properties=b"KEYS\x01 \x02"),
    ]
    block, topics = UnitColumns(256), TopicTable()
    data = b"".join(units)
    scan_block(data, len(data), 0, 0, block, topics)
    sought_keys = {key.encode() for key in keys}
    expected = [row for row in range(block.count) if sought_keys & set(keys_in(block.raw_properties(row)))]
    assert KeySet(keys).rows(block, block.count).tolist() == expected
    assert len(expected) == min(number, 40) + 1
    assert (b"k3" in KeySet(keys)) == (number > 1)
