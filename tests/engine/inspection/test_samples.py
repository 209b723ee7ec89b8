from __future__ import annotations

import hashlib
import io
import json
import shutil
import tarfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from engine.codec.java import index_key_hash
from engine.codec.message import Unit
from engine.codec.unit_scan import Damage
from engine.errors import CannotRead, UsageError
from engine.inspection import open_store, samples
from engine.query import parse

RESOURCES = Path(samples.__file__).parents[2] / "resources" / "samples"


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("samples")


def units(store: Path) -> list[Unit]:
    with open_store(store) as snapshot:
        return [item for item in snapshot.log.walk() if isinstance(item, Unit)]


def test_the_samples_have_names_texts_and_small_archives():
    assert samples.names() == ["orders", "orders-damaged", "retries-5.5"]
    for item in samples.samples():
        assert item.title
        assert item.text
        assert item.state in ("ok", "error")
        assert (RESOURCES / item.archive).stat().st_size < 1 << 20


def test_the_sample_of_5_5_has_messages_that_came_back(cache, unchanged):
    store_units = units(unchanged(samples.sample("retries-5.5", cache)))
    assert all(unit.crc == "ok" for unit in store_units)
    assert {"%RETRY%pricing", "%DLQ%pricing"} <= {unit.topic for unit in store_units}


def test_the_healthy_sample_shows_everything_a_broker_does(cache, unchanged):
    store = unchanged(samples.sample("orders", cache))
    actual_units = units(store)
    assert 2000 <= len(actual_units) <= 12_000
    assert all(unit.crc == "ok" and not unit.stale for unit in actual_units)
    request_fields = {
        'topic = "OrderPaid" and tags = "card"': 100,
        'transaction = "half"': 10,
        'transaction = "commit"': 5,
        "retry and reconsumeTimes > 0": 5,
        "deadLetter": 1,
        "delayed": 5,
        'topic = "SCHEDULE_TOPIC_XXXX" and properties.REAL_TOPIC = "PaymentReminders" and properties.DELAY = 18': 1,
        'topic = "PaymentReminders"': 3,
        "batch": 5,
        "compressed and sysFlag & 0x700 = 0x100": 5,
        "compressed and sysFlag & 0x700 = 0x200": 5,
        "compressed and sysFlag & 0x700 = 0x300": 5,
        'body contains "上海"': 5,
        'body matches /^\\{"order":"SO-\\d+"/': 1000,
        'keys = "AaAa"': 10,
        'keys = "BBBB"': 10,
    }
    for text, least in request_fields.items():
        expected = parse(text).compile()
        assert sum(map(expected, actual_units)) >= least, text
    assert len({index_key_hash("StockReserved", key) for key in ("AaAa", "AaBB", "BBAa", "BBBB")}) == 1
    with open_store(store) as snapshot:
        assert not snapshot.abort
        assert len(snapshot.log.files) >= 2
        assert len(list(snapshot.index_files())) >= 3


def test_the_damaged_sample_is_the_same_store_after_a_crash(cache, unchanged):
    store = unchanged(samples.sample("orders-damaged", cache))
    with open_store(store) as snapshot:
        assert snapshot.abort
        rows = list(snapshot.log.walk())
    kinds = Counter(type(item).__name__ for item in rows)
    assert kinds["Damage"] == 1
    assert isinstance(rows[-2], Damage)
    assert [item.topic for item in rows if isinstance(item, Unit) and item.crc == "bad"] == ["OrderPaid"]
    page = (RESOURCES / "README.md").read_text("utf-8")
    places = [
        item.offset for item in rows if isinstance(item, Damage) or (isinstance(item, Unit) and item.crc == "bad")
    ]
    assert [f"{offset:,}" for offset in places if f"at {offset:,}" not in page] == []
    healthy = {unit.unique_key for unit in units(samples.sample("orders", cache))}
    damaged = {item.unique_key for item in rows if isinstance(item, Unit)}
    assert healthy < damaged


def test_a_second_request_unpacks_nothing_again(tmp_path):
    sample_path = samples.sample("orders", tmp_path)
    identity_before = sample_path.stat().st_ino, (sample_path.parent / "unpacked").stat().st_mtime_ns
    assert samples.sample("orders", tmp_path) == sample_path
    assert (sample_path.stat().st_ino, (sample_path.parent / "unpacked").stat().st_mtime_ns) == identity_before


def test_an_incomplete_copy_is_replaced(tmp_path):
    store = samples.sample("orders", tmp_path)
    log = min((store / "commitlog").iterdir())
    log.write_bytes(b"short")
    assert min((samples.sample("orders", tmp_path) / "commitlog").iterdir()).stat().st_size > 5
    shutil.rmtree(store / "index")
    assert (samples.sample("orders", tmp_path) / "index").is_dir()
    assert [path.name for path in (tmp_path / "samples").iterdir()] == [store.parent.name]


def test_two_concurrent_requests_get_the_same_store(tmp_path):
    with ThreadPoolExecutor(4) as pool:
        results = set(pool.map(lambda _: samples.sample("orders", tmp_path), range(4)))
    assert len(results) == 1
    assert len(list((tmp_path / "samples").iterdir())) == 1


def test_without_a_folder_the_users_cache_is_used(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert samples.sample("orders").is_relative_to(tmp_path / "storescope")


def test_an_unknown_name_is_refused_with_the_known_ones(tmp_path):
    with pytest.raises(UsageError, match="orders, orders-damaged"):
        samples.sample("shop", tmp_path)


def test_an_unwritable_cache_is_reported(tmp_path):
    (tmp_path / "samples").write_text("a file where a folder belongs")
    with pytest.raises(CannotRead, match="cannot be unpacked"):
        samples.sample("orders", tmp_path)


def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packed: bytes) -> None:
    """An installation with one sample, ``bad``, whose archive is ``packed``."""
    folder = tmp_path / "installed"
    folder.mkdir()
    item = dict.fromkeys(("title", "text", "state", "word"), "x")
    item |= {"name": "bad", "archive": "bad.tar.xz", "sha256": hashlib.sha256(packed).hexdigest()}
    (folder / "samples.json").write_text(json.dumps([item]))
    (folder / "bad.tar.xz").write_bytes(packed)
    monkeypatch.setattr(samples, "_folder", lambda: folder)


def packed(name: str, size: int = 1, kind: bytes = tarfile.REGTYPE) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:xz") as archive:
        member = tarfile.TarInfo(name)
        member.size, member.type, member.linkname = size if kind == tarfile.REGTYPE else 0, kind, "/etc"
        archive.addfile(member, io.BytesIO(bytes(size)) if kind == tarfile.REGTYPE else None)
    return out.getvalue()


@pytest.mark.parametrize(
    "archive",
    [
        pytest.param(b"no archive", id="no archive"),
        pytest.param(packed("store/file")[:40], id="cut off"),
        pytest.param(packed("../outside"), id="leads out"),
        pytest.param(packed("file"), id="no folder"),
        pytest.param(packed("store", kind=tarfile.SYMTYPE), id="link to a system folder"),
    ],
)
def test_a_foreign_archive_leaves_no_files(tmp_path, monkeypatch, archive):
    planted(tmp_path, monkeypatch, archive)
    with pytest.raises(CannotRead):
        samples.sample("bad", tmp_path / "cache")
    assert not (tmp_path / "outside").exists()
    assert list((tmp_path / "cache" / "samples").iterdir()) == []


def test_an_archive_that_would_fill_the_disk_is_refused(tmp_path, monkeypatch):
    planted(tmp_path, monkeypatch, packed("store/file", 5000))
    monkeypatch.setattr(samples, "MAX_UNPACKED_BYTES", 4999)
    with pytest.raises(CannotRead, match="5,000 bytes"):
        samples.sample("bad", tmp_path / "cache")


def test_an_archive_with_another_hash_is_refused(tmp_path, monkeypatch):
    full_packed = packed("store/file")
    planted(tmp_path, monkeypatch, full_packed)
    (tmp_path / "installed" / "bad.tar.xz").write_bytes(full_packed[:-30] + bytes(30))
    with pytest.raises(CannotRead, match="SHA-256"):
        samples.sample("bad", tmp_path / "cache")


def test_an_installation_without_samples_has_none(tmp_path, monkeypatch):
    monkeypatch.setattr(samples, "_folder", lambda: tmp_path)
    assert samples.names() == []
