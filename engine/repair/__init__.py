"""Mend a store: the patches that make a damaged store readable again, and what they gain and cost.

Nothing is written here: repairs are values (:mod:`engine.patching`), tried on the store as they would leave it.
"""
