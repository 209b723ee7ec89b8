"""Files of the tables under ``config/``, and which of them a broker loads."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from engine.codec.table_files import TABLES, load_table

GOOD = b'{"offsetTable":{"T@g":{0:1}}}'
OLD = b'{"offsetTable":{"T@g":{0:0}}}'
VALUE, OLD_VALUE = {"offsetTable": {"T@g": {0: 1}}}, {"offsetTable": {"T@g": {0: 0}}}

CASES = [
    (GOOD, b"garbage", "main", VALUE, "consumerOffset.json is sound"),
    (None, OLD, "bak", OLD_VALUE, "consumerOffset.json is missing, so consumerOffset.json.bak counts"),
    (b"", OLD, "bak", OLD_VALUE, "consumerOffset.json is empty, so consumerOffset.json.bak counts"),
    (GOOD[:-1], OLD, "bak", OLD_VALUE, "consumerOffset.json cannot be read (line 1 column 29 (offset 28): expected"),
    (GOOD + b"}}", OLD, "bak", OLD_VALUE, "consumerOffset.json cannot be read (line 1 column 30 (offset 29): 2 charac"),
    (
        b"[1]",
        OLD,
        "bak",
        OLD_VALUE,
        "consumerOffset.json cannot be read (the table: expected an object with named fields, found a list)",
    ),
    (
        bytes(4096),
        OLD,
        "bak",
        OLD_VALUE,
        "consumerOffset.json cannot be read (line 1 column 1 (offset 0): 4,096 zero bytes",
    ),
    (GOOD + bytes(50), OLD, "main", VALUE, "consumerOffset.json is sound"),
    (b"null", OLD, "main", {}, "consumerOffset.json is sound"),
    (
        None,
        None,
        "defaults",
        {},
        "consumerOffset.json is missing and consumerOffset.json.bak is missing: a broker starts",
    ),
    (b"x", b"", "defaults", {}, "consumerOffset.json cannot be read (line 1 column 1 (offset 0): expected a value, fo"),
    (b"x", b"y", "nothing", {}, "consumerOffset.json cannot be read (line 1 column 1 (offset 0): expected a value, fo"),
]


@pytest.mark.parametrize(("main", "bak", "used", "value", "why"), CASES)
def test_takes_the_file_that_a_broker_takes(main, bak, used, value, why):
    table = load_table("consumerOffset.json", {"consumerOffset.json": main, "consumerOffset.json.bak": bak}.get)
    assert (table.used, table.value) == (used, value)
    assert table.why.startswith(why)
    assert table.will_load is (used != "nothing")
    assert table.file == {"main": "consumerOffset.json", "bak": "consumerOffset.json.bak"}.get(used)


def test_the_backup_is_not_read_where_the_file_is_sound():
    asked = []

    def read(name):
        asked.append(name)
        return GOOD

    assert load_table("topics.json", read).bak is None
    assert asked == ["topics.json"]


def test_a_file_without_rights_counts_as_bad():
    def read(name):
        if name.endswith(".bak"):
            return OLD
        raise PermissionError(13, "Permission denied")

    table = load_table("topics.json", read)
    assert (table.used, table.main.state) == ("bak", "unreadable")
    assert "Permission denied" in table.why


@given(st.none() | st.binary(max_size=60), st.none() | st.binary(max_size=60))
def test_any_two_files_give_a_table(main, bak):
    table = load_table("t", {"t": main, "t.bak": bak}.get)
    assert isinstance(table.value, dict)
    assert table.why


@pytest.mark.golden
@pytest.mark.parametrize(
    "name", ["broker-orders", "broker-orders-4.9.7", "broker-retries", "broker-lmq", "broker-pop", "broker-crash"]
)
def test_every_table_of_a_real_broker_is_sound_with_its_backup(golden, name):
    folder = golden(name) / "config"
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    found = [table for table in TABLES if table in files]
    assert len(found) >= 2
    for table in found:
        loaded = load_table(table, files.get)
        assert loaded.used == "main"
        assert not loaded.main.parsed.duplicates
        without = {name: raw for name, raw in files.items() if name != table}
        assert load_table(table, without.get).used == ("bak" if f"{table}.bak" in files else "defaults")
