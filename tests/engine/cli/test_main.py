"""The command line itself: usage errors, numbers, pipes, interrupts, completion, and mqadmin's names and options."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import agree
import handmade_stores
import pytest

from engine import __version__
from engine.cli.command_table import SUMMARIES
from engine.cli.main import FIRST_PAGE, build_parser

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def store(tmp_path):
    """Write a small healthy store."""
    return handmade_stores.healthy().write(tmp_path / "store")


def start(*arguments, **how):
    """Start the command as a process."""
    return subprocess.Popen(
        [sys.executable, "-m", "engine.cli", *map(str, arguments)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **how,
    )


USAGE = [
    pytest.param(["nonsense"], "invalid choice: 'nonsense'", id="unknown command"),
    pytest.param(["info"], "the following arguments are required: STORE", id="no store"),
    pytest.param(["info", "STORE", "--nonsense"], "unrecognized arguments: --nonsense", id="unknown option"),
    pytest.param(
        ["info", "STORE", "more"], "unrecognized arguments: more (see 'storescope info --help')", id="one word too many"
    ),
    pytest.param(["units", "STORE", "--limit", "x"], "expected a number", id="no number"),
    pytest.param(["units", "STORE", "--limit", "0"], "expected a number from 1 on", id="a limit of nothing"),
    pytest.param(["units", "STORE", "--limit"], "expected one argument", id="an option without its value"),
    pytest.param(["units", "STORE", "--from", "99999999999999999999"], "within 64 bits", id="beyond 64 bits"),
    pytest.param(["units", "STORE", "--where", "size >"], "filter", id="a filter that ends too early"),
    pytest.param(["offset", "STORE", "Orders", "0"], "--time", id="a missing option"),
    pytest.param(["offset", "STORE", "Orders", "0", "--time", "1", "--boundary", "x"], "invalid choice", id="a choice"),
    pytest.param(["units", "STORE", "--mask", "keys,names"], "found 'names'", id="a word that masks nothing"),
    pytest.param(["recover", "STORE"], "--plan", id="recover without a plan"),
    pytest.param(["check", "STORE", "--fail-on", "panic"], "invalid choice", id="an unknown severity"),
    pytest.param(["get", "STORE", "Orders", "0", "0", "--sql", "a ="], "", id="half an SQL expression"),
    pytest.param(["completion", "tcsh"], "invalid choice", id="an unknown shell"),
    pytest.param(["queryCq", "-s", "STORE", "-t", "Orders"], "-q", id="mqadmin's required options"),
]


@pytest.mark.parametrize(("arguments", "message"), USAGE)
def test_wrong_usage_is_one_line_and_exit_2(store, arguments, message):
    status, out, err = agree.command(*(store if word == "STORE" else word for word in arguments))
    assert (status, out) == (2, "")
    assert err.startswith("storescope: ")
    assert err.count("\n") == 1
    assert message in err


def test_keys_after_a_double_dash_may_begin_with_a_dash(tmp_path):
    handmade_store = handmade_stores.HandmadeStore()
    handmade_store.put("Orders", keys="-x --json")
    path = handmade_store.write(tmp_path / "store")
    for key in ("-x", "--json"):
        for arguments in (["trace", path, "Orders", "--json", "--", key], ["where", path, "--json", "--", key]):
            status, out, err = agree.command(*arguments)
            assert (status, err) == (0, ""), arguments
            assert all(json.loads(line) for line in out.splitlines())
    status, _, err = agree.command("queryMsgByKey", "-s", path, "-t", "Orders", "-k=-x", "--json")
    assert (status, err) == (0, "")


def test_help_and_version_on_every_level():
    for arguments in (["--help"], ["--version"], ["units", "--help"], ["queryCq", "--help"], ["snapshot", "--help"]):
        with start(*arguments) as process:
            out, err = process.communicate(timeout=60)
        assert (process.returncode, err) == (0, b"")
        assert out
    with start() as process:
        assert b"usage" in process.communicate(timeout=60)[0]
    assert process.returncode == 2


def test_the_first_page_names_five_commands_that_exist():
    lines = [line for line in FIRST_PAGE.splitlines() if line.startswith("  storescope ")]
    assert len(lines) == 5
    assert {line.split()[1] for line in lines} <= {*COMMAND_LINES}
    parser = build_parser()
    for line in lines:
        parser.parse_args(line.strip().partition("  ")[0].split()[1:])


def test_the_version_and_the_first_page_need_no_module_of_a_store():
    """``storescope --version`` loaded all commands, two hundred modules and numpy, before it printed ten characters."""
    code = (
        "import sys\nfrom engine.cli.main import main\nmain([])\nmain(['--version'])\n"
        "sys.exit(' '.join(name for name in sys.modules if name.startswith(('engine.', 'numpy', 'argparse'))))"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert set(ended.stderr.split()) == {"engine.cli", "engine.cli.main", "engine.cli.command_table"}
    assert ended.stdout.endswith(f"\nstorescope {__version__}\n")


def test_help_and_a_wrong_word_load_no_command():
    """``storescope --help`` imported the modules of all commands to print one line about each."""
    code = (
        "import sys\nfrom engine.cli.main import main\nmain(['chek'])\n"
        "try:\n    main(['--help'])\nexcept SystemExit:\n"
        "    sys.exit(' '.join(name for name in sys.modules if name.startswith(('numpy', 'engine.cli.commands'))))"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    wrong_word, rest = ended.stderr.split("\n", 1)
    assert "invalid choice: 'chek' (choose from" in wrong_word
    assert rest.strip() == ""
    lines = {line.split()[0]: line.split(None, 1)[1:] for line in ended.stdout.splitlines() if line.strip()}
    assert {*SUMMARIES, "view"} <= set(lines)


def every_command(parser, *path):
    """Yield the words and the parser of each command and each job."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for name, command in action.choices.items():
                yield " ".join((*path, name)), command
                yield from every_command(command, *path, name)


COMMAND_LINES = dict(every_command(build_parser()))


@pytest.mark.parametrize("name", COMMAND_LINES)
def test_the_help_of_a_command_has_a_plain_line_and_examples_that_are_valid(name):
    """Help used to begin with the list of common options, and no command had an example."""
    command = COMMAND_LINES[name]
    assert command.description[0].isupper()
    assert command.description.endswith(".")
    examples = [shlex.split(line) for line in command.epilog.splitlines()[1:]]
    assert examples
    for words in examples:
        assert words[: 1 + len(name.split())] == ["storescope", *name.split()]
        arguments = words[1 : words.index(">")] if ">" in words else words[1:]
        if "--help" not in arguments and name != "pipeline":
            build_parser().parse_args(arguments)


@pytest.mark.parametrize("name", COMMAND_LINES)
def test_every_option_is_explained(name):
    plain_arguments = {"topic"}  # the name TOPIC needs no explanation
    unexplained = [
        action.dest for action in COMMAND_LINES[name]._actions if not action.help and action.dest not in plain_arguments
    ]
    assert [dest for dest in unexplained if dest != "job"] == []


def test_output_to_a_closed_pipe_ends_quietly(tmp_path):
    handmade_store = handmade_stores.HandmadeStore(log_size=1 << 22)
    for _ in range(4000):
        handmade_store.put(body=b"x" * 200, keys="k")
    path = handmade_store.write(tmp_path / "store", index=False, queues=False)
    for arguments in (["units", path, "--json"], ["units", path], ["units", path, "--markdown"], ["units", "--help"]):
        process = start(*arguments)
        assert process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(60) == 0
        process.stderr.close()


def test_records_are_printed_while_the_log_is_read(tmp_path):
    """A reader of the stream gets the first unit before the last one is read."""
    handmade_store = handmade_stores.HandmadeStore(log_size=1 << 22)
    for _ in range(4000):
        handmade_store.put(body=b"x" * 200)
    path = handmade_store.write(tmp_path / "store", index=False, queues=False)
    process = start("units", path, "--json")
    first_record = json.loads(process.stdout.readline())
    assert first_record["type"] == "unit"
    assert process.poll() is None  # it waits for the reader: the pipe has room for only a part of the records
    lines = process.stdout.read().splitlines()
    assert json.loads(lines[-1])["units"] == 4000
    assert process.wait(60) == 0
    process.stdout.close()
    process.stderr.close()


def test_an_interrupt_ends_at_once_with_130(tmp_path):
    handmade_store = handmade_stores.HandmadeStore(log_size=1 << 22)
    for _ in range(4000):
        handmade_store.put(body=b"x" * 200)
    path = handmade_store.write(tmp_path / "store", index=False, queues=False)
    process = start("units", path, "--json")
    process.stdout.readline()
    time.sleep(0.2)  # the process is blocked because its output is not read
    process.send_signal(signal.SIGINT)
    process.stdout.read()
    assert process.wait(60) == 130
    assert process.stderr.read() == b""
    process.stdout.close()
    process.stderr.close()


# -- mqadmin's names


NOTHING = [
    ["message", "STORE", "nobody"],
    ["message", "STORE", "7"],
    ["where", "STORE", "nobody"],
    ["trace", "STORE", "Orders", "nobody"],
    ["queryMsgByKey", "-s", "STORE", "-t", "Orders", "-k", "nobody"],
    ["queryMsgById", "-s", "STORE", "-i", "0" * 32],
    ["queryMsgByUniqueKey", "-s", "STORE", "-t", "Orders", "-i", "nobody"],
    ["queryMsgByOffset", "-s", "STORE", "-t", "Orders", "-i", "0", "-o", "999"],
    ["consumerProgress", "-s", "STORE", "-g", "nobody"],
]


@pytest.mark.parametrize("times", [1, 2])
def test_an_interrupt_after_the_last_output_exits_with_130_and_no_traceback(times):
    """Ctrl-C while Spark was shutting down printed a traceback, and the exit code was 0."""
    program = (
        "import atexit, sys, time\n"
        "def last():\n"
        "    print('ending', flush=True)\n"
        "    time.sleep(2)\n"
        "    print('ended', flush=True)\n"
        "sys.argv[1:] = ['--version', '--verbose']\n"
        "from engine.cli import main\n"
        "_run = main._run\n"
        "main._run = lambda *words: [_run(*words), atexit.register(last)][0]\n"
        "sys.exit(main.main())\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    with process:
        while process.stdout.readline() != "ending\n":
            assert process.poll() is None
        for _ in range(times):
            process.send_signal(signal.SIGINT)
            time.sleep(0.2)
        remainder, output = process.communicate(timeout=60)
    assert (process.returncode, output) == (130, "")
    assert remainder == ("ended\n" if times == 1 else ""), "one lets the end go on, a second one does not"


@pytest.mark.parametrize("arguments", NOTHING, ids=lambda item: item[0])
def test_a_search_without_a_match_exits_with_1(store, arguments):
    status, _, err = agree.command(*(store if word == "STORE" else word for word in arguments))
    assert status == 1
    assert err.count("\n") <= 1


def test_only_debug_prints_the_traceback(tmp_path):
    _, _, err = agree.command("info", tmp_path)
    assert "Traceback" not in err
    _, _, err = agree.command("info", tmp_path, "--debug")
    assert "Traceback" in err


@pytest.mark.parametrize("module", ["engine.cli.command_table", "engine.cli.output"])
def test_ctrl_c_while_the_program_is_loaded_ends_without_a_word(tmp_path, module):
    """It printed Python's traceback, and the exit code was that of a killed process."""
    (tmp_path / "sitecustomize.py").write_text(
        "import signal, sys\n"
        "class Interrupt:\n"
        "    def find_spec(self, name, *_):\n"
        f"        if name == '{module}':\n"
        "            signal.raise_signal(signal.SIGINT)\n"
        "sys.meta_path.insert(0, Interrupt())\n"
    )
    code = "import sys\nfrom engine.cli.main import main\nsys.exit(main(['info', 'nowhere']))"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    ended = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert (ended.returncode, ended.stdout, ended.stderr) == (130, "", "")
