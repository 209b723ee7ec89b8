"""The compiled twins of key queries, and when they are loaded."""

from plain_queries import plain

from engine.codec import columns, query_twin


def test_the_twins_are_loaded_when_enough_keys_were_asked_for():
    assert columns.twin() is not None
    with plain():
        query_twin.TwinState.keys_without_twin = 0
        assert query_twin.twin_for(query_twin.KEYS_WITH_NUMBA_IMPORTED - 1) is None
        assert query_twin.twin_for(1) is not None
        assert query_twin.twin_for(0) is query_twin.TwinState.twin
