"""The calls for systems that lack Linux's own give the same bytes, and say what they cannot."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from engine.system import portable, posix

CHILD = "import time; print(flush=True); time.sleep(60)"


@pytest.fixture(params=[portable, posix], ids=["portable", "posix"])
def module(request):
    return request.param


@pytest.fixture
def descriptor(tmp_path):
    (tmp_path / "file").write_bytes(bytes(range(256)) * 16)
    descriptor = os.open(tmp_path / "file", os.O_RDWR)
    yield descriptor
    os.close(descriptor)


def test_both_have_the_same_names():
    names = [
        {
            name
            for name, value in vars(module).items()
            if not name.startswith("_") and getattr(value, "__module__", module.__name__) == module.__name__
            if not isinstance(value, type(os))
        }
        for module in (portable, posix)
    ]
    assert names[0] ^ names[1] <= {"pread", "pwrite", "annotations", "TYPE_CHECKING", "IS_LINUX"}  # posix: those of os
    assert callable(posix.pread)


def test_bytes_are_read_and_written_at_a_position_and_the_descriptor_stays_where_it_was(module, descriptor):
    os.lseek(descriptor, 7, os.SEEK_SET)
    assert module.pread(descriptor, 3, 10) == bytes([10, 11, 12])
    view = memoryview(bytearray(4))
    assert module.read_into(descriptor, view, 256 * 16 - 2) == 2
    assert bytes(view) == bytes([254, 255, 0, 0])
    assert module.pwrite(descriptor, memoryview(b"ab"), 100) == 2
    assert module.pread(descriptor, 4, 99) == b"\x63ab\x66"
    assert os.lseek(descriptor, 0, os.SEEK_CUR) == 7


def test_threads_that_read_one_descriptor_do_not_disturb_each_other(descriptor):
    with ThreadPoolExecutor(4) as pool:
        positions = [(17 * number) % 256 for number in range(400)]
        read = list(pool.map(lambda position: portable.pread(descriptor, 1, position), positions))
    assert read == [bytes([position]) for position in positions]


def test_a_disk_has_room_and_a_folder_can_be_synced(module, tmp_path, descriptor):
    total, free, available = module.disk_space(tmp_path)
    assert total > free >= available > 0
    module.sync_data(descriptor)
    module.sync_file(tmp_path / "file")
    module.sync_folder(tmp_path)
    module.advise_sequential(descriptor, 0)
    with pytest.raises(FileNotFoundError):
        module.sync_folder(tmp_path / "none")
    info = (tmp_path / "file").stat()
    assert module.allocated_bytes(info) == 512 * info.st_blocks


def test_a_file_without_a_name_can_be_written(module):
    descriptor = module.nameless_file()
    os.write(descriptor, b"content")
    assert os.fstat(descriptor).st_nlink == 0
    assert module.pread(descriptor, 20, 0) == b"content"
    os.close(descriptor)


def test_a_held_folder_and_a_locked_file_are_free_again_after_closing(module, tmp_path):
    for _ in range(2):
        descriptor = module.hold_folder(tmp_path)
        os.close(descriptor)
    with (tmp_path / "journal").open("w+b") as file:
        assert module.lock_file(file.fileno())


def test_a_locked_byte_that_may_not_be_read_is_held(descriptor, monkeypatch):
    """Windows refuses to read bytes that another process has locked."""

    def refuse(*_):
        raise PermissionError(13, "Permission denied")

    assert portable.first_byte_lock(descriptor) == (False, 0)
    monkeypatch.setattr(portable, "pread", refuse)
    assert portable.first_byte_lock(descriptor) == (True, -1)


def test_a_process_of_its_own_group_is_interrupted_and_killed(module):
    for end, code in ((module.interrupt, None), (module.kill_group, -signal.SIGKILL)):
        process = subprocess.Popen(
            [sys.executable, "-c", CHILD], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, **module.new_group()
        )
        with process:
            process.stdout.readline()
            end(process)
        assert process.returncode not in {0, None}
        assert code is None or process.returncode == code


def test_ctrl_c_is_postponed_or_ignored_in_the_block(module):
    interrupted = []
    old_handler = signal.signal(signal.SIGINT, lambda *_: interrupted.append(1))
    try:
        with module.postponed_signals():
            signal.raise_signal(signal.SIGINT)
            assert not interrupted
        thread = threading.Thread(target=lambda: module.postponed_signals().__enter__())
        thread.start()
        thread.join()
    finally:
        signal.signal(signal.SIGINT, old_handler)


def test_what_no_system_call_answers_is_unknown(tmp_path):
    assert portable.descriptor_limit() is None
    assert portable.memory_bytes() is None
    assert portable.load_average() is None
    assert portable.mount_type(tmp_path) is None
    assert portable.user_id() is portable.group_id() is None
    assert portable.copy_range(0, 1, 1, 0) == portable.peak_memory_bytes() == 0
    assert not portable.allocate(0, 0, 1)
    assert not portable.clone_blocks(0, 1)
    assert portable.processor_count() >= 1
    assert not portable.PROC.exists()
    for call in (portable.c_library, portable.read_only_shared_map):
        with pytest.raises(OSError, match="not implemented"):
            call()
    for call in (portable.next_data, portable.next_hole):
        with pytest.raises(OSError, match="Invalid argument"):
            call(0, 0)
