"""Readers find log positions by offset across the files."""

import pytest
from put_logs import PutLog

from engine.codec.encode import Message
from engine.codec.message import decode
from engine.config import MessageStoreConfig
from engine.message_store import MessageStore
from engine.store.mapped_log import MappedLog


@pytest.fixture
def put(tmp_path):
    put = PutLog(tmp_path, file_size=512)
    for number in range(12):
        assert put.log.put_message(Message("T", b"%d" % number)).ok
    assert len(put.files.files) > 2
    return put


def test_each_unit_is_lent_by_its_offset_and_given_back(put):
    log = MappedLog(put.files)
    bodies = []
    for unit in put.units():
        lent = log.lend_unit(unit.offset)
        assert lent is not None
        view, lent_file = lent
        assert len(view) == unit.size
        bodies.append(decode(view, 0, unit.offset).body)
        assert any(file.is_lent for file in put.files.files)
        lent_file.release()
    assert bodies == [b"%d" % number for number in range(12)]
    assert not any(file.is_lent for file in put.files.files)


@pytest.mark.parametrize("offset", [-1, 1, 1 << 40, (1 << 63) - 1, -(1 << 63)])
def test_no_unit_is_lent_where_none_begins(put, offset):
    log = MappedLog(put.files)
    assert log.lend_unit(offset) is None
    assert not any(file.is_lent for file in put.files.files)


def test_a_gap_between_files_has_no_units(put):
    log, file = MappedLog(put.files), put.files.files[1]
    put.files.remove([file])
    assert log.lend_unit(file.start_offset) is None
    assert log.lend(file.start_offset, 4) is None
    last_file = put.files.files[-1]
    lent = log.lend_unit(last_file.start_offset)
    assert lent is not None
    assert lent[1] is last_file
    lent[1].release()


def test_an_empty_log_has_nothing(tmp_path):
    assert MappedLog(PutLog(tmp_path).files).lend_unit(0) is None


def test_a_file_without_a_pool_buffer_is_not_lent_before_the_files_in_front_of_it_are_committed(tmp_path):
    """When the pool is empty, the next file is written without a buffer: its bytes are readable at once, but must
    not be lent.
    """
    settings = MessageStoreConfig(
        mapped_file_size_commit_log=1 << 13,
        mapped_file_size_consume_queue=20 * 12,
        max_message_size=4096,
        transient_store_pool_enable=True,
        transient_store_pool_size=2,
    )
    with MessageStore(tmp_path, settings, services=False) as store:
        offsets = []
        for _ in range(3):
            offsets.append(store.put_message(Message("T", b"x" * 40)).append.physical_offset)
            assert store.parts.commit_log.append_blank()
        offsets.append(store.put_message(Message("T", b"last")).append.physical_offset)
        last_file = store.parts.commit_log.files.files[-1]
        assert not last_file.has_buffer
        assert last_file.readable > 0
        log = MappedLog(store.parts.commit_log.files)
        assert store.positions().committed == 0
        for offset in offsets:
            assert store.look_message_by_offset(offset) is None
            assert log.lend(offset, 4) is None
            assert log.read(offset, 4) == b""
        store.services.log.commit_all()
        assert [store.look_message_by_offset(offset).physical_offset for offset in offsets] == offsets
        assert log.lend(offsets[-1], 4) is not None
