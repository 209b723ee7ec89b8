"""The README's and the documentation's examples work as printed.

``tests/pipeline/test_readme_on_spark.py`` runs the examples with Spark.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import readme
from ssh_stand_in import install_stand_in, on_machine

import engine.cli.main
from engine.config import MessageStoreConfig, read_properties
from engine.inspection import open_store
from engine.inspection.samples import sample
from engine.message_store import MessageStore

ROOT = Path(__file__).resolve().parents[2]
CONF = "mappedFileSizeCommitLog = 1048576\nflushDiskType = SYNC_FLUSH\nmaxIndexNum = 1000\n"
EXECUTED_ELSEWHERE = ("storescope bench", "storescope pipeline", "storescope view", "storescope mcp", "bash packaging")
"""Minutes each, Spark, a window, a server: their own suites run them. Here it is asked whether they are understood."""


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder of the examples: a broker's settings, a plan, a sample store."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bin").mkdir()
    install_stand_in(tmp_path / "bin", monkeypatch)
    (tmp_path / "broker.conf").write_text(CONF, "utf-8")
    plan = {"config": {"mappedFileSizeCommitLog": 65_536}, "messages": [{"topic": "Orders", "body": "one cup of tea"}]}
    (tmp_path / "PLAN.json").write_text(json.dumps(plan), "utf-8")
    shutil.copytree(sample("orders", tmp_path / "cache"), tmp_path / "sample")
    return tmp_path


def test_the_examples_in_python_work(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    blocks = readme.python_blocks()
    assert blocks
    for block in blocks:
        readme.run_block(block, {})
    output = capsys.readouterr().out
    assert output.startswith("PutMessageStatus.PUT_OK\nb'one cup of tea'\n")
    assert "0 ['SO-000001']\n" in output
    assert not (place / "orders-store" / "abort").exists()


def test_the_fixture_for_a_test_suite_works(place: Path) -> None:
    (block,) = [python_block for python_block in readme.python_blocks() if "@pytest.fixture" in python_block]
    text = "\n\ndef test_it(rocketmq):\n    assert rocketmq.startswith('127.0.0.1:')\n"
    (place / "test_it.py").write_text(block + text, "utf-8")
    words = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_it.py"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)  # the limit is that of any test
    assert "1 passed" in done.stdout, done.stdout + done.stderr


def test_every_name_of_the_engine_in_the_text_exists(place: Path) -> None:
    expressions = readme.expressions()
    assert expressions
    for expression in expressions:
        readme.value_of(expression, {})


def test_a_store_takes_the_settings_that_the_readme_gives_it(place: Path) -> None:
    """``MessageStore(path, engine.config.read_properties("broker.conf"))``, as it stood there, died: a tuple."""
    (expression,) = [text for text in readme.expressions() if "broker.conf" in text]
    config = readme.value_of(expression, {})
    assert isinstance(config, MessageStoreConfig)
    assert config == read_properties("broker.conf")[0]
    with MessageStore("store", config) as store:
        assert store.config.flush_disk_type == "SYNC_FLUSH"
    assert f"`MessageStore(path, config)` takes a broker's settings (`{expression}`)" in readme.README.replace(
        "\n", " "
    )


def with_and_without(command: str) -> Iterator[str]:
    """Return the command without its parts in brackets, and with them."""
    yield " ".join(re.sub(r"\[[^]]*\]", "", command).split())
    if "[" in command:
        yield command.replace("[", "").replace("]", "")


def arguments(command: str, place: Path) -> list[str]:
    """Return the command's words, with values for the words in capitals."""
    copied = place / "copied"
    if not copied.exists():
        shutil.copytree(place / "sample", copied)
    with open_store(place / "sample") as store:
        unit = next(item for item in store.units() if hasattr(item, "topic"))
    put, new = command.startswith("storescope put"), place / f"new {zlib.crc32(command.encode())}"
    files = sorted(place.glob("copied.kept-*"))
    results = {
        "STORE": str(new) if put else str(copied),
        "STORE…": str(copied),
        "SRC": str(place / "sample"),
        "REPLICA": str(place / "sample"),
        "DST": str(new),
        "DIR": str(place / "out"),
        "FOLDER": str(files[-1]) if files else "FOLDER",
        "FILTER": 'topic = "OrderPaid"',
        "BROKER.conf": "broker.conf",
        "KEYS": "keys.txt",
        "7F00000100002A9F…": unit.offset_msg_id,
    }
    words = [results.get(word, word) for word in shlex.split(command)[1:]]
    words = [str(on_machine(copied)) if word.startswith("ssh://") else word for word in words]
    return [*words, "--yes"] if words[0] in {"put", "dispatch"} or {"--apply", "--undo"} & {*words} else words


def test_every_shell_line_works_as_printed(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    commands = list(dict.fromkeys(readme.commands()))
    assert len(commands) > 20
    parser = engine.cli.main.build_parser()
    for command in (item for line in commands for item in with_and_without(line)):
        if command.startswith("bash "):
            assert (ROOT / command.split()[1]).is_file()
            continue
        words = arguments(command, place)
        parser.parse_args(words)
        if not command.startswith(EXECUTED_ELSEWHERE):
            code = engine.cli.main.main(words)
            output = capsys.readouterr()
            permitted = {"check": {0, 1}, "compat": {0, 1, 3}}.get(words[0], {0})
            assert code in permitted, f"{command}: {code}, {output.err}"
            assert output.out, command


def test_every_command_in_the_readme_exists() -> None:
    named = set(re.findall(r"^storescope ([\w-]+)", readme.README, re.MULTILINE)) - {"COMMAND", "view"}
    assert len(named) > 10
    of_offsets = {"set-offset", "resetOffsetByTime", "skipAccumulatedMessage", "cloneGroupOffset", "restore-offsets"}
    assert named <= set(engine.cli.main.COMMANDS) | {"queryMsgByKey"} | of_offsets


def test_examples_with_spark_are_recognized(monkeypatch: pytest.MonkeyPatch) -> None:
    text = (
        "```python\nprint(1)\n```\n`engine.pipeline.register(spark)`, `engine.config`\n```python\nspark.range(1)\n```\n"
    )
    monkeypatch.setattr(readme, "README", text)
    assert (readme.python_blocks(), readme.python_blocks(spark=True)) == (["print(1)\n"], ["spark.range(1)\n"])
    assert readme.expressions(spark=True) == ["engine.pipeline.register(spark)"]
    assert callable(readme.value_of("engine.pipeline.register", {}))
    run: Callable[..., None] = readme.run_block
    run("assert spark == 1", {"spark": 1})
