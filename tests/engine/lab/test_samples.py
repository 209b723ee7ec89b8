"""Samples of the lab: they travel through a pipe, and can be added."""

from __future__ import annotations

import pickle

from engine.lab.samples import LoadCounts, PutAnswer, ServiceState, TopicPutCounts


def test_samples_travel_through_a_pipe_unchanged():
    for put_answer in (
        PutAnswer("PUT_OK", 10, 20, 3, unit=b"x"),
        LoadCounts(True, 5, 50, {"PUT_OK": 5}),
        ServiceState(False, 7, None),
    ):
        assert pickle.loads(pickle.dumps(put_answer)) == put_answer


def test_entries_of_a_topic_are_those_of_its_queues():
    assert TopicPutCounts("T", ((0, 5), (3, 7))).entries == 12
    assert TopicPutCounts("T", ()).entries == 0
