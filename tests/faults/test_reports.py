"""What people report about their stores: each state is told rightly, in the words that a pattern asks for.

``reports/states.tar.xz`` holds stores as public bug reports describe them, ``questions.json`` the commands and the
patterns; ``report_states`` makes more of the same kinds. Where a right answer fails a pattern, the pattern is widened.
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
    """Every state, unpacked once."""
    folder = tmp_path_factory.mktemp("reports")
    with (FOLDER / "states.tar.xz").open("rb") as packed:
        archives.unpack(packed, folder, 1 << 30)
    for conf in folder.glob("*/*.conf"):
        conf.write_text(conf.read_text().replace("@HERE@", str(conf.parent)))
    return folder


def digests(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != "timerwheel")
    return {str(path.relative_to(folder)): hashlib.sha1(path.read_bytes()).hexdigest() for path in files}


def faults_of(question: Command, here: Path, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """What of the answer to a question is not right."""
    words = [word.replace("STORE", str(here / "store")) for word in shlex.split(question.command)]
    code = main([word.replace("HERE", str(here)) for word in words])
    output = capsys.readouterr()
    answer = (" ".join((output.out + output.err).split()) + output.out).replace(str(here), "HERE")
    name = question.command
    faults = [
        f"{name} lacks /{item}/" for item in question.must if not re.search(item, answer, re.IGNORECASE | re.DOTALL)
    ]
    faults += [f"{name} says /{one}/" for one in question.must_not if re.search(one, answer, re.IGNORECASE | re.DOTALL)]
    if question.exit is not None and code != question.exit:
        faults.append(f"{name} ends with {code}, not {question.exit}")
    return faults


@pytest.mark.parametrize("name", sorted(QUESTIONS))
def test_a_report_is_told_rightly(states, name, capsys):
    """Two of nineteen were: offsets that no broker reads were sound, and advice lost messages."""
    here = states / name
    faults: list[str] = []
    for record in QUESTIONS[name]["questions"]:
        watched = Path(record["unchanged"].replace("HERE", str(here))) if record["unchanged"] else None
        before = digests(watched) if watched is not None else None
        question = Command(record["command"], tuple(record["must"]), tuple(record["must_not"]), record["exit"])
        faults += faults_of(question, here, capsys)
        if watched is not None and digests(watched) != before:
            faults.append(f"{record['command']} changed {record['unchanged']}")
    assert faults == []


@pytest.mark.parametrize("name", sorted(STATES))
def test_its_kin_is_told_rightly(name, tmp_path, capsys):
    state = STATES[name]
    state.make(tmp_path)
    if state.config:
        lines = [f"{key}={value.replace('HERE', str(tmp_path))}" for key, value in state.config.items()]
        (tmp_path / "broker.conf").write_text("\n".join(lines) + "\n")
    before = digests(tmp_path / "store")
    assert [fault for question in state.questions for fault in faults_of(question, tmp_path, capsys)] == []
    assert digests(tmp_path / "store") == before
