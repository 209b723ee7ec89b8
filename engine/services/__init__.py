"""The background services of a store: flush, commit, dispatch, allocation, cleaning. Each is one ``step()`` in a
loop.
"""
