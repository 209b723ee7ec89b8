"""The campaign finds planted bugs and names the case of each."""

from __future__ import annotations

import signal

import fuzz_campaign
import fuzz_planted_bugs
import pytest

pytestmark = [pytest.mark.fuzz, pytest.mark.timeout(300)]

CAUGHT = {
    "escape": "escaped: ZeroDivisionError('planted')",
    "traceback": "Traceback (most recent call last): planted",
    "change_a_byte": "changed: ['checkpoint']",
    "leave_a_file": "changed: ['', 'planted']",
    "make_and_remove_a_file": "changed: ['config']",
    "hang": "no answer within ",
    "hang_waiting": "s, 0 of them at work",
    "hang_below_python": f"the process ended with {-signal.SIGPROF}",
    "hang_waiting_below_python": "the process ended with 1",
    "crash": "the process ended with -6",
    "hold_memory": "MiB more memory held",
    "no_json": "",  # which of two complaints depends on what the case asked for
    "strange_exit": "exit 7",
}
CASES = len(fuzz_planted_bugs.BUGS) + 3
STORE = "broker-transactions-4.9.7"


def campaign(golden, folder, spoiler, cases, workers=1):
    return fuzz_campaign.run(
        folder, {STORE: golden(STORE)}, range(cases), workers, f"fuzz_planted_bugs:{spoiler}", fuzz_planted_bugs.LIMIT
    )


@pytest.fixture(scope="module")
def spoiled(golden, tmp_path_factory):
    return campaign(golden, tmp_path_factory.mktemp("spoiled"), "plant_all", CASES, workers=3)


@pytest.mark.full_form(keep=3)
@pytest.mark.parametrize("bug", CAUGHT)
def test_a_planted_bug_is_caught_at_its_case(spoiled, bug):
    number = [new_bug.__name__ for new_bug in fuzz_planted_bugs.BUGS].index(bug) + 1
    (named,) = [line for line in spoiled.wrong if line.startswith(f"case {number} ")]
    assert CAUGHT[bug] in named


def test_every_other_case_runs_without_complaint(spoiled):
    """A process that had to be ended loses only its case; one that is kept waiting for a while is no bug."""
    assert spoiled.died == 3
    assert spoiled.cases == CASES - spoiled.died
    numbers = {int(line.split()[1]) for line in spoiled.wrong if line.startswith("case ")}
    assert numbers == set(range(1, len(fuzz_planted_bugs.BUGS) + 1))


def test_a_small_leak_is_caught_over_many_cases(golden, tmp_path):
    account = campaign(golden, tmp_path, "leak", fuzz_campaign.WARM_UP + 50)
    assert len(account.wrong) == 1
    assert "the process has grown by" in account.wrong[0]


def test_a_case_follows_from_its_number_alone(golden, tmp_path):
    """A case that is repeated by its number is the one of the campaign, whatever ran before."""
    reports = []
    for name, numbers in (("one", range(9, 11)), ("two", range(10, 11))):
        bench = fuzz_campaign.WorkerStores(tmp_path / name, {STORE: golden(STORE)}, seconds=30)
        messages = [message for number in numbers for message in bench.case(number)]
        reports.append(
            [message[2].replace(str(tmp_path / name), "") for message in messages if message[0] == "case"][-1]
        )
        assert not list(bench.final_look())
    assert reports[0] == reports[1]
