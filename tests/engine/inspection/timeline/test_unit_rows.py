"""The columns that the timeline takes from a log."""

from __future__ import annotations

import numpy as np
import pytest
from timeline_rows import chunk_of, steady

from engine.codec.message import Unit, parse_unique_key
from engine.inspection import open_store
from engine.inspection.timeline import unit_rows
from engine.inspection.timeline.unit_rows import DELIVERED, RETRIED, UnitRowScan, broker_text, host_text


def rows_of(root):
    with open_store(root) as store:
        scan = UnitRowScan(store.log)
        parts = [chunk.rows.select(slice(chunk.begin, chunk.stop)) for chunk in scan.chunks()]
        units = [item for item in store.units(crc=False) if isinstance(item, Unit)]
    return unit_rows.concatenated(parts), units, scan


@pytest.mark.golden
def test_rows_hold_what_the_units_hold(golden):
    rows, units, scan = rows_of(golden("broker-orders"))
    assert (scan.units, scan.damage, scan.is_complete) == (len(units), 0, True)
    assert rows.offset.tolist() == [unit.offset for unit in units]
    assert rows.stored.tolist() == [unit.store_timestamp for unit in units]
    assert [host_text(host) for host in rows.host.tolist()] == [unit.born_host.rpartition(":")[0] for unit in units]
    assert [broker_text(host) for host in rows.store_host.tolist()] == [unit.store_host for unit in units]
    parts = [parse_unique_key(unit.unique_key or "") for unit in units]
    assert rows.key_time.tolist() == [part.ms_in_month if part else -1 for part in parts]
    keys = {(unit.topic, unit.unique_key, unit.body_crc) for unit in units if unit.unique_key}
    assert len(np.unique(rows.key[rows.key != 0])) == len(keys)


@pytest.mark.golden
def test_chunks_judge_each_row_once(golden, monkeypatch):
    monkeypatch.setattr(unit_rows, "CHUNK_ROWS", 500)
    monkeypatch.setattr(unit_rows, "OVERLAP_ROWS", 100)
    rows, units, _ = rows_of(golden("broker-orders"))
    assert rows.offset.tolist() == [unit.offset for unit in units]


@pytest.mark.golden
def test_deliveries_and_retries_are_no_sends(golden):
    rows, units, scan = rows_of(golden("broker-retries"))
    delivered = {unit.offset for unit in units if "REAL_TOPIC" in unit.properties or "TIMER_OUT_MS" in unit.properties}
    flagged = set(rows.offset[rows.flags & DELIVERED != 0].tolist())
    assert flagged
    assert flagged <= delivered
    retried = rows.topic[rows.flags & RETRIED != 0]
    assert {scan.names[topic].startswith("%RETRY%") for topic in retried.tolist()} == {True}


@pytest.mark.golden
def test_hosts_of_ipv6_are_told_apart_from_ports(golden):
    rows, units, _ = rows_of(golden("ipv6-and-unicode-5.3.3"))
    wide = [unit.store_host.startswith("[") for unit in units]
    assert [broker_text(host) == "IPv6" for host in rows.store_host.tolist()] == wide


def test_a_single_unit_with_a_wrong_store_time_is_left_out_and_bounds_follow():
    stored = steady(10)
    stored[4], stored[7] = stored[4] + 10**9, -(5 * 10**18)
    chunk = chunk_of(stored=stored)
    chunk.begin, chunk.stop = 5, 9
    clean = unit_rows.without_wrong_times(chunk)
    assert clean.rows.stored.tolist() == [time for number, time in enumerate(stored) if number not in {4, 7}]
    assert (clean.begin, clean.stop) == (4, 7)
    usual = chunk_of(stored=steady(10))
    assert unit_rows.without_wrong_times(usual) is usual
