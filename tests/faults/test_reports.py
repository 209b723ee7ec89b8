"""Stores of bug reports: the answers about each must match patterns.

``reports/states.tar.xz`` holds stores like those of public bug reports, ``questions.json`` the commands and the
patterns; ``report_states`` makes more of the same kinds. If a right answer fails a pattern, the pattern is widened.
"""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from pathlib import Path

import pytest
from report_states import STATES, Command

from engine.cli.main import main
from engine.inspection import archives

FOLDER = Path(__file__).parent / "reports"
QUESTIONS = json.loads((FOLDER / "questions.json").read_text())


@pytest.fixture(scope="module")
def states(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Unpack every state, once."""
    folder = tmp_path_factory.mktemp("reports")
    with (FOLDER / "states.tar.xz").open("rb") as packed:
        archives.unpack(packed, folder, 1 << 30)
    for conf in folder.glob("*/*.conf"):
        conf.write_text(conf.read_text().replace("@HERE@", str(conf.parent)))
    return folder


def digests(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != "timerwheel")
    return {str(path.relative_to(folder)): hashlib.sha1(path.read_bytes()).hexdigest() for path in files}


def faults_of(question: Command, parent: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """Return the faults of the answer to a question."""
    words = [word.replace("STORE", str(parent / "store")) for word in shlex.split(question.command)]
    code = main([word.replace("HERE", str(parent)) for word in words])
    output = capsys.readouterr()
    answer = (" ".join((output.out + output.err).split()) + output.out).replace(str(parent), "HERE")
    name = question.command
    faults = [
        f"{name} lacks /{pattern}/"
        for pattern in question.must
        if not re.search(pattern, answer, re.IGNORECASE | re.DOTALL)
    ]
    faults += [
        f"{name} says /{pattern}/"
        for pattern in question.must_not
        if re.search(pattern, answer, re.IGNORECASE | re.DOTALL)
    ]
    if question.exit is not None and code != question.exit:
        faults.append(f"{name} ends with {code}, not {question.exit}")
    return faults


@pytest.mark.parametrize("name", sorted(QUESTIONS))
def test_answers_about_a_reported_store_are_right(states, name, capsys):
    """Two of nineteen were: offsets that no broker reads were sound, and advice lost messages."""
    parent = states / name
    faults: list[str] = []
    for record in QUESTIONS[name]["questions"]:
        watched = Path(record["unchanged"].replace("HERE", str(parent))) if record["unchanged"] else None
        digests_before = digests(watched) if watched is not None else None
        question = Command(record["command"], tuple(record["must"]), tuple(record["must_not"]), record["exit"])
        faults += faults_of(question, parent, capsys)
        if watched is not None and digests(watched) != digests_before:
            faults.append(f"{record['command']} changed {record['unchanged']}")
    assert faults == []


@pytest.mark.parametrize("name", sorted(STATES))
def test_answers_about_a_related_store_are_right(name, tmp_path, capsys):
    state = STATES[name]
    state.make(tmp_path)
    if state.config:
        lines = [f"{key}={value.replace('HERE', str(tmp_path))}" for key, value in state.config.items()]
        (tmp_path / "broker.conf").write_text("\n".join(lines) + "\n")
    digests_before = digests(tmp_path / "store")
    assert [fault for question in state.questions for fault in faults_of(question, tmp_path, capsys)] == []
    assert digests(tmp_path / "store") == digests_before
