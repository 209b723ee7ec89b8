"""An open snapshot of a store whose files are replaced, deleted, grown and cut: after a refresh it equals a newly
opened snapshot.

RocketMQ's files have fixed lengths: a topic that was deleted and created again, or a log that was cut and rolled again,
has the same names and lengths. An open window showed the old bytes forever. ``--refresh-steps 100000`` is the full
campaign.
"""

from __future__ import annotations

import contextlib
import functools
import shutil
import sys
import tempfile
from pathlib import Path

import handmade_stores
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

import engine.inspection
from engine.errors import StoreError
from engine.inspection import open_store
from engine.inspection.tail import TRUSTED, StoreTail

STEPS = 25
TREES = ("commitlog", "consumequeue", "index")
ALONE = ("checkpoint", "abort", "config/consumerOffset.json", "consumequeue_ext/Orders/0/00000000000000000000")


@functools.cache
def worlds(root: Path) -> tuple[Path, ...]:
    """Make stores with the same names and lengths, and different bytes."""
    paths = []
    for number, count in enumerate((60, 61, 30)):
        store = handmade_stores.healthy(count)
        store.log = bytearray(bytes(store.log).replace(b"body", b"b%03d" % number)) if number else store.log
        path = store.write(root / f"world {number}", abort=number == 1)
        for name in ALONE[2:]:
            (path / name).parent.mkdir(parents=True, exist_ok=True)
            (path / name).write_bytes(b'{"offsetTable":{"Orders@g":{"0":%d}}}' % number)
        paths.append(path)
    return tuple(paths)


def result_or_error(ask):
    """Return the result, or the class name of an error."""
    try:
        return ask()
    except StoreError as error:
        return type(error).__name__


def queue_account(queue):
    entries = result_or_error(
        lambda: [(e.queue_offset, e.physical_offset, e.size, e.tags_code) for e in queue.entries(0, 1 << 20)]
    )
    bounds = [
        result_or_error(lambda name=name: getattr(queue, name)) for name in ("min_offset", "max_offset", "raw_end")
    ]
    return entries, bounds, result_or_error(queue.newest), queue.ext is not None and [f.size for f in queue.ext.files]


def index_account(reader):
    return reader.name, result_or_error(lambda: reader.header), result_or_error(lambda: list(reader.entries()))


def account(store):
    """Return all values that a store reports."""
    log = store.log
    return {
        "files": [(f.path, f.size, f.start_offset) for f in log.files],
        "units": [(type(i).__name__, i.offset, getattr(i, "raw_crc", 0), getattr(i, "body", b"")) for i in log.walk()],
        "end": result_or_error(lambda: log.max_offset),
        "queues": {
            f"{topic}/{number}": queue_account(queue)
            for topic, queues in store.topics().items()
            for number, queue in queues.items()
        },
        "index": [
            (i.name, result_or_error(lambda i=i: i.header), result_or_error(lambda i=i: list(i.entries())))
            for i in store.index_files()
        ],
        "checkpoint": result_or_error(store.checkpoint),
        "abort": store.abort,
        "table": result_or_error(lambda: store.small_file(store.paths.config / "consumerOffset.json")),
        "sizes": store.geometry.commit_log_file_size,
        "positions": result_or_error(store.positions),
        "unread": store.unread,
    }


class RefreshedStore(RuleBasedStateMachine):
    """Changes and reads in any order, then a refresh."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="storescope-refresh-"))
        self.worlds = worlds(ROOT[0])
        self.live = self.folder / "store"

    @initialize(world=st.integers(0, 2))
    def open_it(self, world):
        shutil.copytree(self.worlds[world], self.live)
        self.store = open_store(self.live)
        self.tail = StoreTail(self.store)

    def teardown(self) -> None:
        if hasattr(self, "store"):
            self.store.close()
        shutil.rmtree(self.folder)

    def files(self, tree):
        return sorted(path for path in (self.live / tree).rglob("*") if path.is_file())

    # -- changes

    @rule(tree=st.sampled_from(TREES), pick=st.integers(0, 99), world=st.integers(0, 2), method=st.sampled_from("rud"))
    def replace_a_file(self, tree, pick, world, method):
        """Replace a file by a rename, by deleting and creating it, or in place as a broker writes."""
        files = self.files(tree)
        if not files:
            return
        path = files[pick % len(files)]
        replacement = self.worlds[world] / path.relative_to(self.live)
        data = replacement.read_bytes() if replacement.exists() else bytes(path.stat().st_size)
        if method == "d":
            path.write_bytes(data)
            return
        if method == "u":
            path.unlink()
        temporary = path.parent.parent / "beside"
        temporary.write_bytes(data)
        temporary.replace(path)

    @rule(tree=st.sampled_from(TREES), pick=st.integers(0, 99))
    def delete_a_file(self, tree, pick):
        files = self.files(tree)
        if files:
            files[pick % len(files)].unlink()

    @rule(tree=st.sampled_from(TREES), pick=st.integers(0, 99), size=st.sampled_from([0, 1, 40, 400, 4096, 5000]))
    def set_a_length(self, tree, pick, size):
        """A file grows or is cut."""
        files = self.files(tree)
        if files:
            with files[pick % len(files)].open("r+b") as file:
                file.truncate(size)

    @rule(topic=st.sampled_from(["Orders", "Payments"]), world=st.integers(0, 2), is_recreated=st.booleans())
    def delete_a_topic(self, topic, world, is_recreated):
        """Delete a topic; recreate it with the content of another world if ``is_recreated``."""
        folder = self.live / "consumequeue" / topic
        shutil.rmtree(folder, ignore_errors=True)
        if is_recreated:
            shutil.copytree(self.worlds[world] / "consumequeue" / topic, folder)

    @rule(tree=st.sampled_from(TREES), world=st.integers(0, 2))
    def make_a_tree_again(self, tree, world):
        shutil.rmtree(self.live / tree, ignore_errors=True)
        shutil.copytree(self.worlds[world] / tree, self.live / tree)

    @rule(name=st.sampled_from(ALONE), world=st.integers(0, 2))
    def change_what_stands_alone(self, name, world):
        replacement, path = self.worlds[world] / name, self.live / name
        path.unlink(missing_ok=True)
        if replacement.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(replacement, path)

    # -- reads

    @rule()
    def ask_in_between(self):
        """Fill all caches. Files may be missing by now, so errors are valid answers."""
        result_or_error(lambda: account(self.store))
        result_or_error(self.tail.read_positions)

    @precondition(lambda self: hasattr(self, "store"))
    @rule()
    def refresh(self):
        account_before = account(self.store)
        changed = self.store.refresh()
        with open_store(self.live) as fresh:
            expected, refreshed = account(fresh), account(self.store)
            for name, value in expected.items():
                assert refreshed[name] == value, name
            assert not self.store.refresh()
            assert changed or account_before["files"] == refreshed["files"]
            self.same_by_the_tail(fresh)

    def same_by_the_tail(self, fresh):
        """Compare with the tail that the status line uses. It waits some steps before it trusts a last unit with a
        wrong CRC.
        """
        expected = result_or_error(lambda: fresh.log.max_offset)
        results = [result_or_error(lambda: self.tail.read_positions().wrote.offset) for _ in range(TRUSTED + 2)][-1]
        assert results == expected or not isinstance(expected, int)
        self.store.refresh()


ROOT: list[Path] = []


@pytest.mark.timeout(7200)  # the full campaign takes longer than any other test
def test_a_refreshed_snapshot_equals_a_new_one(tmp_path_factory, request):
    ROOT[:] = [tmp_path_factory.mktemp("worlds")]
    count = max(request.config.getoption("--refresh-steps") // STEPS, 1)
    run_state_machine_as_test(RefreshedStore, settings=settings(max_examples=count, stateful_step_count=STEPS))


def test_the_tail_sees_that_a_log_without_units_in_front_was_exchanged(tmp_path):
    """Its end was 0 with no unit before it, so the tail did not notice that the files after it had changed."""
    sample = worlds(tmp_path)
    live = tmp_path / "store"
    shutil.copytree(sample[2], live)
    files = sorted((live / "commitlog").iterdir())
    files[1].unlink()
    files[0].write_bytes(b"")
    with open_store(live) as store:
        tail = StoreTail(store)
        assert tail.read_positions().wrote.offset == store.log.max_offset
        shutil.rmtree(live / "commitlog")
        shutil.copytree(sample[0] / "commitlog", live / "commitlog")
        files[0].write_bytes(b"")
        store.refresh()
        with open_store(live) as fresh:
            expected = fresh.log.max_offset
        assert expected > 0
        assert [tail.read_positions().wrote.offset for _ in range(TRUSTED + 2)][-1] == expected


def test_a_log_folder_that_appears_later_removes_its_note(golden, tmp_path: Path) -> None:
    """ "The store has no commitlog folder" stayed in the tree after the folder had appeared."""
    shutil.copytree(golden("clean-5.3.3"), tmp_path / "store")
    log = tmp_path / "store" / "commitlog"
    log.rename(tmp_path / "aside")
    with open_store(tmp_path / "store") as store:
        assert "The store has no commitlog folder" in store.notes
        (tmp_path / "aside").rename(log)
        store.refresh()
        assert "The store has no commitlog folder" not in store.notes


def all_bounds(store):
    return [
        (queue.min_offset, queue.max_offset, queue.raw_end)
        for queues in store.queues.by_topic().values()
        for queue in queues.values()
    ]


CACHED_ANSWERS = {
    "index files": lambda store: [reader.name for reader in store.index_files()],
    "sizes": lambda store: store.geometry.commit_log_file_size,
    "start of recovery": lambda store: store.commit_log.settle_start,
    "log end": lambda store: (store.log.max_offset, store.log.all_blocks),
    "undecoded parts": lambda store: store.undecoded,
    "undecoded subjects": lambda store: [store.undecoded_part(s) for s in ("log", "queues", "index", "topics")],
    "bounds of queues": all_bounds,
    "key": lambda store: [str(step) for step in store.trace("Orders", "key-1")],
    "tables": lambda store: [store.rocksdb_tables.table(name) for name in ("topics.json", "consumerOffset.json")],
}
MODULES = tuple(
    str(Path(engine.inspection.__file__).parent / name)
    for name in ("snapshot", "store_", "queue_", "rocksdb_", "log_r")
)


def refresh_at_each_line(store, answer, expected):
    """Ask once for each line that answering runs through; another thread refreshes just before that line."""
    waiting = set()

    def collect(frame, event, _argument):
        if frame.f_code.co_filename.startswith(MODULES):
            waiting.add((frame.f_code.co_filename, frame.f_lineno))
            return collect
        return None

    store.refresh()
    with traced(collect):
        answer(store)
    for place in sorted(waiting):

        def refresh_here(frame, event, _argument, place=place):
            if not frame.f_code.co_filename.startswith(MODULES):
                return None
            if place is not None and (frame.f_code.co_filename, frame.f_lineno) == place:
                place = None
                sys.settrace(None)
                store.refresh()
            return refresh_here

        store.refresh()
        with traced(refresh_here):
            actual = answer(store)
        assert actual == expected, place


@contextlib.contextmanager
def traced(function):
    previous = sys.gettrace()
    sys.settrace(function)
    try:
        yield
    finally:
        sys.settrace(previous)


@pytest.mark.golden
@pytest.mark.full_form(keep=6)
@pytest.mark.parametrize("name", ["clean-5.3.3", "rocks-5.5.1"])
@pytest.mark.parametrize("subject", CACHED_ANSWERS)
def test_an_answer_is_the_same_whichever_line_a_refresh_of_another_thread_comes_before(name, subject, golden):
    """The window refreshes while panes read: a list that was set to None in between was taken for the answer."""
    answer = CACHED_ANSWERS[subject]
    with open_store(golden(name)) as store:
        refresh_at_each_line(store, answer, answer(store))
