import errno
import threading
import time
from pathlib import Path

import pytest
from dispatching import DispatchTarget
from raw_units import raw_log
from simulated_disk import SimulatedDisk
from uncompiled_queries import compiled, plain

from engine.config import from_mapping
from engine.errors import WrongFileSize
from engine.files.layout import StorePaths, index_file_name
from engine.mapped.disk import RealDisk
from engine.store.index_service import IndexService

CONFIG, _ = from_mapping({"maxHashSlotNum": 3, "maxIndexNum": 5})  # four keys a file
T0 = 1_700_000_000_000


@pytest.fixture(autouse=True)
def _utc(monkeypatch):
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def log_of(*keys: str, unique: bool = False) -> bytes:
    return raw_log(
        *(
            {
                "properties": f"KEYS\x01{key}\x02{'UNIQ_KEY' + chr(1) + 'U' + key + chr(2) if unique else ''}".encode(),
                "queue_offset": number,
                "stored": T0 + 2000 * number,
            }
            for number, key in enumerate(keys)
        )
    )


def offsets(index: IndexService, key: str, begin: int = 0, end: int = 1 << 62, max_count: int = 64) -> list[int]:
    return index.query_offset("TopicTest", key, max_count, begin, end)[0]


def test_keys_are_found_newest_first_over_all_files():
    place = DispatchTarget(CONFIG)
    log = log_of("a", "b", "a", "c", "d", "a")
    place.dispatch(log)
    size = len(log) // 6
    assert len(place.index.files) == 2
    assert offsets(place.index, "a") == [5 * size, 2 * size, 0]
    assert offsets(place.index, "a", max_count=2) == [5 * size, 2 * size]
    assert offsets(place.index, "a", begin=T0 + 3000, end=T0 + 5000) == [2 * size]
    assert offsets(place.index, "nothing") == []
    assert place.index.query_offset("TopicTest", "a", 1, 0, 1 << 62)[1:] == (T0 + 10_000, 5 * size)


def test_many_keys_are_answered_like_single_ones():
    place = DispatchTarget(CONFIG)
    place.dispatch(log_of("a", "b", "a", "c", "d", "a", "b"))
    expected = ["a", "b", "键", "c", "a"]
    together = place.index.query_offsets("TopicTest", expected, 2, 0, 1 << 62)
    actual_offsets = [sorted(offsets(place.index, key, max_count=2)) for key in expected]
    assert together.offsets.tolist() == [offset for ours in actual_offsets for offset in ours]
    assert together.ends.tolist() == [sum(map(len, actual_offsets[: number + 1])) for number in range(len(expected))]
    assert DispatchTarget(CONFIG).index.query_offsets("T", ["a"], 2, 0, 9).ends.tolist() == [0]


@pytest.fixture(params=[plain, compiled])
def twin(request):
    with request.param():
        yield


@pytest.mark.usefixtures("twin")
def test_keys_put_since_the_last_query_are_found():
    """Readers cache the files: a grown file, a new file and a deleted file must all be noticed."""
    place = DispatchTarget(CONFIG)
    log = log_of("a", "b", "a", "a", "a", "b", "a")
    size = len(log) // 7
    actual_offsets, known_values = [], []
    for number in range(7):
        place.dispatch(log[size * number : size * (number + 1)], base=size * number)
        actual_offsets.append(offsets(place.index, "a"))
        known_values.append(place.index.query_offset("TopicTest", "a", 1, 0, 1 << 62)[2] // size)
    assert [[offset // size for offset in results] for results in actual_offsets] == [
        [0],
        [0],
        [2, 0],
        [3, 2, 0],
        [4, 3, 2, 0],
        [4, 3, 2, 0],
        [6, 4, 3, 2, 0],
    ]
    assert known_values == list(range(7))
    assert place.index.delete_expired(4 * size) == [place.full[0]]
    assert offsets(place.index, "a") == [6 * size, 4 * size]
    place.index.destroy()
    assert offsets(place.index, "a") == []


def test_one_messages_keys_may_span_two_files_and_a_full_one_is_reported():
    place = DispatchTarget(CONFIG)
    place.dispatch(log_of("a b c d e f"))
    first_file, second_file = place.index.files
    assert (first_file.header.entries, second_file.header.entries) == (4, 2)
    assert place.full == [first_file.name]
    assert first_file.is_full
    assert second_file.header.begin_timestamp == T0
    assert [offsets(place.index, key) for key in "af"] == [[0], [0]]


def test_any_unit_after_a_full_file_creates_the_next_one():
    place = DispatchTarget(CONFIG)
    place.dispatch(log_of("a b c d"))
    assert len(place.index.files) == 1
    place.dispatch(raw_log({"properties": b""}))
    assert len(place.index.files) == 2


def test_a_unit_before_the_end_is_known_but_the_newest_is_indexed_again():
    place = DispatchTarget(CONFIG)
    log = log_of("a", "b")
    place.dispatch(log)
    place.dispatch(log)
    assert place.index.files[-1].header.entries == 3
    assert offsets(place.index, "b") == [len(log) // 2] * 2


NAMES = [
    (T0, "", "20231114221320000"),
    (T0, "20231114221319999", "20231114221320000"),
    (T0, "20231114221320000", "20231114221320001"),
    (T0, "20231231235959999", "20240101000000000"),
]


@pytest.mark.parametrize(("now", "previous_name", "name"), NAMES)
def test_names_are_local_times_and_always_grow(now, previous_name, name):
    """RocketMQ reuses the same file if two are created within one millisecond, and the first one's entries are lost."""
    assert index_file_name(now, previous_name) == name


def test_the_local_zone_counts(monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Shanghai")
    time.tzset()
    assert index_file_name(T0, "") == "20231115061320000"


def test_files_are_loaded_and_go_on(tmp_path):
    place = DispatchTarget(CONFIG, RealDisk(), tmp_path)
    log = log_of("a", "b", "c", "d", "e")
    place.dispatch(log[: len(log) // 5])
    place.index.flush()
    place.index.close()
    second_target = DispatchTarget(CONFIG, RealDisk(), tmp_path)
    assert second_target.index.load() == []
    assert offsets(second_target.index, "a") == [0]
    second_target.dispatch(log)
    assert offsets(second_target.index, "e") == [4 * len(log) // 5]
    assert [file.header.entries for file in second_target.index.files] == [4, 2]


def test_after_a_crash_files_beyond_the_checkpoint_are_deleted(tmp_path):
    place = DispatchTarget(CONFIG, RealDisk(), tmp_path)
    place.dispatch(log_of("a", "b", "c", "d", "e"))
    names = [file.name for file in place.index.files]
    place.index.close()
    second_target = DispatchTarget(CONFIG, RealDisk(), tmp_path)
    assert second_target.index.load(abnormal=True, index_msg_timestamp=T0 + 6000) == names[1:]
    assert sorted(path.name for path in (tmp_path / "index").iterdir()) == names[:1]


def test_another_geometry_is_refused_and_other_names_are_skipped(tmp_path):
    place = DispatchTarget(CONFIG, RealDisk(), tmp_path)
    place.dispatch(log_of("a"))
    (tmp_path / "index" / "notes.txt").write_text("x")
    DispatchTarget(CONFIG, RealDisk(), tmp_path).index.load()
    other_config, _ = from_mapping({"maxHashSlotNum": 4, "maxIndexNum": 5})
    with pytest.raises(WrongFileSize, match="maxHashSlotNum 4"):
        DispatchTarget(other_config, RealDisk(), tmp_path).index.load()


def test_files_below_the_log_are_deleted_but_never_the_last():
    place = DispatchTarget(CONFIG)
    log = log_of("a b c d", "e f g h", "i")
    place.dispatch(log)
    names = [file.name for file in place.index.files]
    assert place.index.delete_expired(1) == names[:1]
    assert place.index.delete_expired(len(log) * 2) == names[1:2]
    place.index.destroy()
    assert place.index.files == ()


def new_service(disk: SimulatedDisk, pauses: list[float]) -> IndexService:
    return IndexService(StorePaths(Path("/s")), CONFIG, disk, lambda: T0, tag_entries=False, pause=pauses.append)


def test_creating_a_file_is_tried_three_times():
    disk, pauses = SimulatedDisk(), []
    disk.fail(errno.ENOSPC, kind="create", times=2)
    index = new_service(disk, pauses)
    assert index._ready_file().room == 4
    assert pauses == [1.0, 1.0]
    full = SimulatedDisk()
    full.fail(errno.ENOSPC, kind="create")
    with pytest.raises(OSError, match="No space"):
        new_service(full, pauses)._ready_file()


def test_a_file_that_does_not_fit_on_the_disk_is_removed():
    disk = SimulatedDisk()
    disk.fail(errno.ENOSPC, kind="reserve")
    with pytest.raises(OSError, match="No space"):
        new_service(disk, [])._ready_file()
    assert disk.names(Path("/s/index")) == []


def test_an_index_beyond_the_log_is_cut_permanently():
    """After a power loss the log ended before the index. New messages at these offsets counted as indexed, and no query
    by key found them.
    """
    place = DispatchTarget(CONFIG)
    log = log_of("a", "b", "c", "d", "e")
    place.dispatch(log)
    size = len(log) // 5
    place.index.cut(2 * size)
    assert [file.end_phy_offset for file in place.index.files] == [2 * size, 2 * size]
    second_service = IndexService(StorePaths(place.root), CONFIG, place.disk, lambda: T0, tag_entries=False)
    second_service.load()
    assert second_service.end_phy_offset == 2 * size
    place.dispatch(raw_log({"properties": b"KEYS\x01new\x02", "stored": T0 + 9000}, base=2 * size), base=2 * size)
    assert offsets(place.index, "new") == [2 * size]


def test_a_file_whose_header_was_lost_begins_without_its_old_entries():
    """A power loss kept slots and entries of a new index file but lost its header. The file was filled again over them,
    and old slots became chain links to entries of lost messages.
    """
    place = DispatchTarget(CONFIG)
    place.dispatch(log_of("a", "b", "a"))
    place.index.files[0]._view[:40] = bytes(40)
    name = place.index.files[0].name
    place.index.close()
    place.index.load()
    assert [file.name for file in place.index.files] == [name]
    assert not any(place.index.files[0]._view[40:])
    assert offsets(place.index, "a") == []


def test_a_file_that_is_begun_while_old_ones_are_deleted_stays():
    """The list of files was read, shortened and stored back while another thread added a file. That file was forgotten,
    and its keys were not found until the next start.
    """
    place = DispatchTarget(CONFIG)
    log = log_of("a", "b", "c", "d", "e", "f")
    place.dispatch(log)
    index = place.index
    added = threading.Event()
    thread = threading.Thread(target=lambda: (index._create(), added.set()), daemon=True)

    class SlowFileList(tuple):
        """A list of files that is read while another thread adds to it."""

        __slots__ = ()

        def __getitem__(self, expected):
            if expected == slice(1, None):
                thread.start()
                added.wait(0.2)  # gives the other thread time; it must wait for this one
            return tuple(self)[expected] if isinstance(expected, slice) else super().__getitem__(expected)

    first_file, second_file = index.files
    index.files = SlowFileList(index.files)
    assert index.delete_expired(len(log)) == [first_file.name]
    thread.join(60)
    assert index.files[0] is second_file
    assert len(index.files) == 2
