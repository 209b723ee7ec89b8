"""Counting verdicts continues where it stopped, and a late result is dropped."""

from __future__ import annotations

import asyncio
from collections import Counter
from types import SimpleNamespace

import pytest
from PySide6.QtCore import QObject

from engine.errors import StoreError
from viewer.queues.verdict_counter import VerdictCounter
from viewer.queues.verdict_work import Verdicts

KEY = ("Orders", 0)


class Jobs:
    """Runs a counter's work when the test says so."""

    def __init__(self):
        self.tasks = []
        self.answers = []
        self.error = None
        self.begun = []

    def start(self, work):
        self.begun.append(work)
        return SimpleNamespace(cancel=lambda: None)

    async def in_worker(self, _title, _work, _path, _config, tasks, _max_entries, *, on_items):
        self.tasks.append(tasks)
        for answer in self.answers:
            on_items(answer)
        if self.error is not None:
            raise self.error

    def finish(self):
        begun, self.begun = self.begun, []
        for work in begun:
            asyncio.run(work)


@pytest.fixture
def jobs():
    return Jobs()


@pytest.fixture
def counter(qapp):
    parent = QObject()
    counter = VerdictCounter(parent)
    counter.file_saver = parent
    counter.heard = []
    counter.changed.connect(counter.heard.append)
    return counter


def session_of(jobs):
    return SimpleNamespace(jobs=jobs, path="/store", config=None)


def test_counting_continues_where_it_stopped(counter, jobs):
    counted = Verdicts(Counter(ok=3), reached=3, total=10)
    jobs.answers = [(KEY, counted)]
    counter.count(session_of(jobs), [KEY, KEY], 3)
    assert counter.running
    jobs.finish()
    assert not counter.running
    assert counter.of(KEY) is counted
    assert counter.heard == [KEY, KEY], "as it grew, and at the end"
    counter.count(session_of(jobs), [KEY], 3)
    jobs.finish()
    assert jobs.tasks == [[(KEY, Verdicts())], [(KEY, counted)]]


def test_a_late_result_is_dropped(counter, jobs):
    jobs.answers = [(KEY, Verdicts(reached=3, total=10))]
    counter.count(session_of(jobs), [KEY], 3)
    counter.forget()
    jobs.finish()
    assert counter.of(KEY) is None
    assert counter.heard == []


def test_an_error_is_reported_and_ends_the_run(counter, jobs):
    emitted = []
    counter.statusText.connect(emitted.append)
    jobs.error = StoreError("the log is gone")
    counter.count(session_of(jobs), [KEY], 3)
    jobs.finish()
    assert emitted == ["the log is gone"]
    assert not counter.running
