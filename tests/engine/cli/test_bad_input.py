"""Whatever is given instead of a healthy store: an exit code, at most one clear line, no traceback, and an end."""

from __future__ import annotations

import json
import shutil
import struct
import zlib
from pathlib import Path

import agree
import made_stores
import pytest
from commands import reading_commands
from made_stores import MadeStore
from other_user import as_nobody, open_folder
from raw_units import raw_unit

from engine.errors import StoreError

QUESTIONS = [
    ["info", "STORE"],
    ["units", "STORE"],
    ["units", "STORE", "--body", "--where", "body contains 'a' or keys contains 'k'"],
    ["queue", "STORE", "Orders", "0", "--resolve"],
    ["index", "STORE", "--entries"],
    ["trace", "STORE", "Orders", "K1"],
    ["get", "STORE", "Orders", "0", "0", "--tag", "TagA"],
    ["message", "STORE", "U00001"],
    ["offset", "STORE", "Orders", "0", "--time", "1700000000100"],
    ["where", "STORE", "U00001"],
    ["where", "STORE", "Orders/0/1"],
    ["positions", "STORE"],
    ["groups", "STORE"],
    ["config", "STORE"],
    ["check", "STORE"],
    ["recover", "STORE", "--plan"],
    ["printMsg", "-s", "STORE", "-t", "Orders"],
    ["topicStatus", "-s", "STORE", "-t", "Orders"],
    ["consumerProgress", "-s", "STORE", "-g", "G"],
]


def ask(path, question, *more):
    """Exit status and the one line of an answer that must be whole, in JSON and as text."""
    arguments = [path if word == "STORE" else word for word in question]
    status, out, err = agree.command(*arguments, "--json", *more)
    assert status in {0, 1, 2, 3}, arguments
    assert "Traceback" not in err
    assert err.count("\n") <= 1 or status < 2
    if status >= 2:
        assert err.startswith("storescope: ")
    for line in out.splitlines():
        assert "type" in json.loads(line)
    text_status, text, _ = agree.command(*arguments, *more)
    assert text_status == status
    assert all(line.isprintable() for line in text.split("\n"))
    return status, err


# -- not a store at all


def nothing(path):
    return path / "nowhere"


def empty(path):
    (path / "empty").mkdir()
    return path / "empty"


def a_text_file(path):
    (path / "notes.txt").write_text("hello " * 1000)
    return path / "notes.txt"


def an_empty_file(path):
    (path / "empty file").write_bytes(b"")
    return path / "empty file"


def a_folder_of_other_things(path):
    (path / "photos" / "2024").mkdir(parents=True)
    (path / "photos" / "a.jpg").write_bytes(b"\xff\xd8")
    return path / "photos"


def a_queue_folder(path):
    store = made_stores.healthy().write(path / "store")
    return store / "consumequeue" / "Orders" / "0"


def a_broken_link(path):
    (path / "link").symlink_to(path / "gone")
    return path / "link"


def a_link_to_itself(path):
    (path / "loop").symlink_to("loop")
    return path / "loop"


def a_device(_path):
    return Path("/dev/null")


def a_name_too_long(path):
    return path / ("x" * 5000)


NO_STORES = [
    (nothing, "found nothing of this name"),
    (empty, "found an empty directory"),
    (a_text_file, "no message unit"),
    (an_empty_file, "expected"),
    (a_folder_of_other_things, "2 other entries: 2024, a.jpg"),
    (a_queue_folder, "found queue files"),
    (a_broken_link, "expected"),
    (a_link_to_itself, ""),
    (a_device, "expected"),
    (a_name_too_long, ""),
]


@pytest.mark.parametrize(("make", "said"), NO_STORES)
def test_what_is_no_store_is_said_in_one_line(tmp_path, make, said):
    path = make(tmp_path)
    for question in QUESTIONS:
        status, err = ask(path, question)
        if an_empty_file is make and status == 0:
            continue
        assert status == 3
        assert said in err
        assert str(path)[:40] in err


def test_without_rights_the_file_is_named():
    with open_folder() as folder:
        store = made_stores.healthy().write(folder / "store")
        locked = [store / "commitlog" / f"{0:020d}", store / "checkpoint", store / "consumequeue" / "Orders"]
        questions = [question for question in QUESTIONS if question[0] != "check"]
        for path in (*locked, store / "commitlog", store / "config", store):
            if not path.exists():
                path.mkdir()
            mode = path.stat().st_mode
            path.chmod(0)
            answers = as_nobody(lambda: [ask(store, question) for question in questions])
            path.chmod(mode)
            assert all(status in {0, 1, 2, 3} for status, _ in answers)
        store.chmod(0)
        ((status, err),) = as_nobody(lambda: [ask(store, ["info", "STORE"])])
        store.chmod(0o755)
        assert status == 3
        assert "cannot be" in err


# -- stores with something wrong in their files


def spoiled(path, name):
    """A healthy small store with one thing wrong."""
    made = made_stores.healthy()
    store = made.write(path / "store")
    first = store / "commitlog" / f"{0:020d}"
    queue = store / "consumequeue" / "Orders" / "0"
    config = store / "config"
    config.mkdir()
    match name:
        case "a folder where a log file belongs":
            first.unlink()
            first.mkdir()
        case "a file where the log folder belongs":
            shutil.rmtree(store / "commitlog")
            (store / "commitlog").write_text("no folder")
        case "a file where the queue folder belongs":
            shutil.rmtree(store / "consumequeue")
            (store / "consumequeue").write_text("no folder")
        case "a file where a topic's folder belongs":
            (store / "consumequeue" / "file").write_text("no folder")
            (store / "consumequeue" / "Orders" / "file").write_text("no folder")
        case "a file where the index folder belongs":
            shutil.rmtree(store / "index")
            (store / "index").write_text("no folder")
        case "a folder where the checkpoint belongs":
            (store / "checkpoint").unlink()
            (store / "checkpoint").mkdir()
        case "a folder where a table belongs":
            (config / "topics.json").mkdir()
        case "names that are no numbers":
            for folder in ("commitlog", "index", "consumequeue/Orders/0", "consumequeue/Orders"):
                (store / folder / "x.bak").write_bytes(b"hello")
                (store / folder / "-5").write_bytes(b"hello")
                (store / folder / ("9" * 40)).write_bytes(b"hello")
                (store / folder / "１２").write_bytes(b"hello")
        case "names beyond 64 bits":
            (store / "commitlog" / "99999999999999999999").write_bytes(b"\0" * 4096)
            (queue / "99999999999999999999").write_bytes(b"\1" * 400)
            (store / "consumequeue" / "Orders" / "99999999999999999999").mkdir()
        case "files of different sizes":
            with first.open("ab") as file:
                file.write(b"\0" * 999)
        case "sizes that are no multiples":
            for file in (*queue.iterdir(), *(store / "index").iterdir()):
                with file.open("ab") as opened:
                    opened.write(b"\7" * 13)
        case "every file empty":
            for file in store.rglob("*"):
                if file.is_file():
                    file.write_bytes(b"")
        case "every file one byte":
            for file in store.rglob("*"):
                if file.is_file():
                    file.write_bytes(b"\x7f")
        case "every file full of ones":
            for file in store.rglob("*"):
                if file.is_file():
                    file.write_bytes(b"\xff" * file.stat().st_size)
        case "a checkpoint cut short":
            (store / "checkpoint").write_bytes(b"\0" * 7)
        case "index headers that count too much":
            for file in (store / "index").iterdir():
                data = bytearray(file.read_bytes())
                struct.pack_into(">ii", data, 32, 0x7FFFFFFF, 0x7FFFFFFF)
                file.write_bytes(data)
        case "index chains that loop":
            for file in (store / "index").iterdir():
                data = bytearray(file.read_bytes())
                for entry in range(1, 60):
                    struct.pack_into(">i", data, 40 + 80 + 20 * entry + 16, (entry % 50) + 1)
                file.write_bytes(data)
        case "queue entries that point anywhere":
            data = b"".join(struct.pack(">qiq", n * 7919 % (1 << 62), 1 << 30, -(1 << 63) + n) for n in range(20))
            (queue / f"{0:020d}").write_bytes(data)
        case "lengths below zero, zero and huge":
            data = bytearray(first.read_bytes())
            for number, unit in enumerate(made.units[:12]):
                struct.pack_into(">i", data, unit.offset, (0, -1, 0x7FFFFFFF, -(1 << 31))[number % 4])
            first.write_bytes(data)
        case "tables that are bombs":
            (config / "topics.json").write_bytes(b"[" * 500_000)
            (config / "consumerOffset.json").write_bytes(b'{"offsetTable":' * 50_000 + b"}" * 50_000)
            (config / "delayOffset.json").write_bytes(b'{"offsetTable":{1:' + b"9" * 200_000 + b"}}")
            (config / "subscriptionGroup.json").write_bytes(b'"' + b"\\u0000" * 200_000)
            (config / "consumerFilter.json").write_bytes(b'{"a":1e999999999,"b":-' + b"1" * 5000 + b"}")
        case "tables of other kinds":
            for table, text in (
                ("topics.json", "[]"),
                ("consumerOffset.json", '{"offsetTable":{"T@G":[1,2]}}'),
                ("delayOffset.json", '{"offsetTable":{"x":"y"}}'),
                ("subscriptionGroup.json", '{"subscriptionGroupTable":{"g":7}}'),
                ("consumerFilter.json", '{"filterDataByTopic":{"t":{"groupFilterData":{"g":null}}}}'),
                ("lmqConsumerOffset.json", '{"lmqOffsetTable":{"a":{"b":1}}}'),
            ):
                (config / table).write_text(text)
        case "a timer check of three bytes":
            (config / "timercheck").write_bytes(b"abc")
    return store


SPOILED = [
    "a folder where a log file belongs", "a file where the log folder belongs", "a file where the queue folder belongs",
    "a file where a topic's folder belongs", "a file where the index folder belongs",
    "a folder where the checkpoint belongs", "a folder where a table belongs", "names that are no numbers",
    "names beyond 64 bits", "files of different sizes", "sizes that are no multiples", "every file empty",
    "every file one byte", "every file full of ones", "a checkpoint cut short", "index headers that count too much",
    "index chains that loop", "queue entries that point anywhere", "lengths below zero, zero and huge",
    "tables that are bombs", "tables of other kinds", "a timer check of three bytes",
]  # fmt: skip


@pytest.mark.parametrize("name", SPOILED)
def test_a_spoiled_store_is_told_and_survived(tmp_path, name):
    store = spoiled(tmp_path, name)
    for question in QUESTIONS:
        ask(store, question)


# -- units that no broker would write


def of_units(path, *raws):
    """A store whose log holds these bytes, one after the other."""
    folder = path / "store" / "commitlog"
    folder.mkdir(parents=True)
    data = b"".join(raws)
    (folder / f"{0:020d}").write_bytes(data.ljust(max(len(data) + 4096, 8192), b"\0"))
    return path / "store"


HOSTILE_TOPICS = [
    b"../../../etc/passwd",
    b"a/b/c",
    b"..",
    b".",
    b"",
    b"\x1b[2J\x9b31m",
    b"\n\r\0",
    b"\xff\xfe",
    b"%00",
    b"-s",
]


@pytest.mark.parametrize("topic", HOSTILE_TOPICS)
def test_a_topic_is_a_name_and_never_a_path(tmp_path, topic):
    raw = raw_unit(0, topic=topic, properties=b"KEYS\x01k\x02UNIQ_KEY\x01u\x02")
    store = of_units(tmp_path, raw, raw_unit(len(raw), topic=topic))
    for question in (*QUESTIONS, ["where", "STORE", "u"], ["where", "STORE", "k"], ["message", "STORE", "0"]):
        ask(store, question)
    text = topic.decode("utf-8", "replace")
    if not text.startswith("-"):
        for question in (
            ["queue", "STORE", text, "3"],
            ["get", "STORE", text, "3", "0"],
            ["trace", "STORE", text, "k"],
        ):
            ask(store, question)


def test_a_topic_of_ten_thousand_letters(tmp_path):
    raw = raw_unit(0, topic=b"t" * 10_000, version=2)
    store = of_units(tmp_path, raw)
    (unit, *_) = agree.ask("units", store)
    assert unit["topic"] == "t" * 10_000
    for question in QUESTIONS:
        ask(store, question)
    for command in (["queue", store, "t" * 10_000, 3], ["where", store, f"{'t' * 10_000}/3/5"]):
        status, _, err = agree.command(*command)
        assert status in {0, 1, 3}
        assert err.count("\n") <= 1


def test_properties_without_separators_and_with_nothing_else(tmp_path):
    raws, at = [], 0
    for text in (b"no separators", b"\x01" * 50, b"\x02" * 50, b"\x01\x02" * 50, b"KEYS\x01" + b" " * 999, b"\0" * 99):
        raws.append(raw_unit(at, properties=text))
        at += len(raws[-1])
    store = of_units(tmp_path, *raws)
    units = [unit for unit in agree.ask("units", store) if unit["type"] == "unit"]
    assert len(units) == len(raws)
    for question in QUESTIONS:
        ask(store, question)


def test_a_body_that_unpacks_to_gigabytes_is_capped_and_said(tmp_path):
    once = zlib.compress(bytes(200 << 20), 9)
    raw = raw_unit(0, body=once, sys_flag=0x301, properties=b"UNIQ_KEY\x01u\x02")
    store = of_units(tmp_path, raw, bytes(1 << 20))
    status, out, err = agree.command("message", store, "0")
    assert (status, err) == (0, "")
    assert "16 MiB" in out or "16.0 MiB" in out
    for question in QUESTIONS:
        ask(store, question)


@pytest.mark.parametrize("flag", [0x101, 0x201, 0x301, 0x401, 0x701])
def test_a_body_that_is_not_what_its_flag_says(tmp_path, flag):
    store = of_units(tmp_path, raw_unit(0, body=b"not packed at all", sys_flag=flag))
    status, out, err = agree.command("message", store, "0")
    assert (status, err) == (0, "")
    assert "body:" in out


def test_an_inner_batch_whose_lengths_lie(tmp_path):
    body = struct.pack(">iiiii", 0x7FFFFFFF, 0, 0, 0, -1) + b"x" * 40
    text = b"INNER_NUM\x012147483647\x02INNER_BASE\x010\x02UNIQ_KEY\x01u\x02"
    store = of_units(tmp_path, raw_unit(0, body=body, sys_flag=0xC0, properties=text))
    for question in (*QUESTIONS, ["message", "STORE", "0"]):
        ask(store, question)


def test_times_that_no_calendar_has(tmp_path):
    raws, at = [], 0
    for time in (-1, 0, -(1 << 63), (1 << 63) - 1, 1 << 55):
        raws.append(raw_unit(at, stored=time, born=time, properties=b"TIMER_OUT_MS\x01%d\x02UNIQ_KEY\x01u\x02" % time))
        at += len(raws[-1])
    store = of_units(tmp_path, *raws)
    for question in (*QUESTIONS, ["where", "STORE", "u"], ["message", "STORE", "0"]):
        ask(store, question)


def test_a_made_store_with_numbers_at_their_limits(tmp_path):
    made = MadeStore()
    made.put(queue_offset=(1 << 63) - 1)
    made.put(queue_id=-1)
    made.put(queue_offset=-7)
    made.put(physical_offset=1 << 62)
    store = made.write(tmp_path / "store", queues=False)
    for question in (*QUESTIONS, ["where", "STORE", f"Orders/0/{(1 << 63) - 1}"], ["where", "STORE", "Orders/0/-7"]):
        ask(store, question)


# -- options that are wrong for a good store


def test_a_configuration_that_is_none(tmp_path):
    store = made_stores.healthy().write(tmp_path / "store")
    (tmp_path / "broken.conf").write_text("mappedFileSizeCommitLog=many\nmaxIndexNum=-5\n")
    (tmp_path / "folder").mkdir()
    (tmp_path / "binary.conf").write_bytes(bytes(range(256)) * 10)
    (tmp_path / "huge.conf").write_text("mappedFileSizeCommitLog=99999999999999999999999\n")
    for name in ("broken.conf", "folder", "nowhere.conf", "huge.conf"):
        for question in QUESTIONS[:4]:
            status, err = ask(store, question, "--config", tmp_path / name)
            assert status in {2, 3}
            assert name in err
    ask(store, ["info", "STORE"], "--config", tmp_path / "binary.conf")


def test_another_configuration_reads_the_same_log(tmp_path):
    store = made_stores.healthy().write(tmp_path / "store")
    (tmp_path / "b.conf").write_text("mappedFileSizeCommitLog=8192\nmaxHashSlotNum=7\nmaxIndexNum=9\n")
    for question in QUESTIONS:
        ask(store, question, "--config", tmp_path / "b.conf")


@pytest.mark.parametrize("number", [-1, -(1 << 63), (1 << 63) - 1, 1 << 40, 7])
def test_numbers_that_lead_nowhere(tmp_path, number):
    store = made_stores.healthy().write(tmp_path / "store")
    for question in (
        ["units", "STORE", "--from", number],
        ["units", "STORE", "--to", number],
        ["queue", "STORE", "Orders", number],
        ["queue", "STORE", "Orders", "0", "--from", number],
        ["queue", "STORE", "Orders", "0", "--to", number],
        ["get", "STORE", "Orders", "0", number],
        ["get", "STORE", "Orders", number, "0"],
        ["offset", "STORE", "Orders", "0", "--time", number],
        ["trace", "STORE", "Orders", "K1", "--begin", number],
        ["trace", "STORE", "Orders", "K1", "--end", number],
        ["message", "STORE", number],
        ["where", "STORE", number],
        ["where", "STORE", f"Orders/0/{number}"],
        ["where", "STORE", f"Orders/{number}/0"],
        ["queryCq", "-s", "STORE", "-t", "Orders", "-q", "0", "-i", number],
        ["queryMsgByOffset", "-s", "STORE", "-t", "Orders", "-i", "0", "-o", number],
    ):
        ask(store, [str(word) for word in question])


@pytest.mark.golden
def test_every_command_ends_on_a_store_without_anything_but_its_log(golden, tmp_path):
    path = tmp_path / "store"
    shutil.copytree(golden("propcrc-5.3.3") / "commitlog", path / "commitlog")
    for arguments in reading_commands(path):
        status, _, err = agree.command(*arguments, "--json")
        assert status in {0, 1, 3}
        assert err.count("\n") <= 1


def test_an_error_names_the_file_and_the_offset():
    error = StoreError("expected a unit, found zeros", file="/x/0", offset=1234)
    assert str(error) == "/x/0 at offset 1234: expected a unit, found zeros"


@pytest.mark.parametrize("unit", [20, 46])
def test_a_hole_of_a_trillion_entries_is_passed_over(tmp_path, unit):
    """A queue file was copied under a name near 2⁶³: check looked at every entry in between, for ever."""
    store = made_stores.healthy().write(tmp_path / "store")
    folder = store / ("consumequeue" if unit == 20 else "batchconsumequeue") / "Far" / "0"
    made_stores.write_queue(folder, struct.pack(">qiq", 0, 144, 0).ljust(unit, b"\0"), unit * 20)
    first = folder / f"{0:020d}"
    (folder / f"{(1 << 63) - 1:020d}").write_bytes(first.read_bytes())
    (folder / f"{(1 << 62) // (unit * 20) * unit * 20:020d}").write_bytes(first.read_bytes())
    for question in (*QUESTIONS, ["queue", "STORE", "Far", "0"], ["get", "STORE", "Far", "0", "0"]):
        ask(store, question)
