"""Records of clients about a message, and the answers of ``where``."""

from __future__ import annotations

import random

from engine.inspection import open_store
from engine.inspection.where.evidence import where

CLEAN = ("clean-5.3.3", "clean-4.9.8", "propcrc-5.3.3", "sync-5.3.3", "ipv6-and-unicode-5.3.3")


def verdict(store, text, **how):
    """Return the only verdict on the message that ``text`` names."""
    (result,) = where(store, text, **how)
    return result.verdict


def reopened(path):
    store = open_store(path)
    store.commit_log.settle_end()
    return store


def truth_lines(account, name, *kinds):
    return [line for line in account(name, "truth.jsonl.xz") if line["kind"] in kinds]


def acknowledged(account, name):
    """Return puts of single messages that the store acknowledged."""
    lines = account(name, "puts.jsonl.xz")
    return [line for line in lines if line["t"] == "put" and "msgId" in line and line["kind"] != "batch"]


def sample(items, count, seed=7):
    return random.Random(seed).sample(items, min(count, len(items)))
