"""Proofs that ranges of a log follow the rules."""

from __future__ import annotations

import numpy as np

from engine.rules.proofs import KeyDigest, KeySum, Proof, ProofLine


def test_proofs_are_looked_up_by_offset():
    proofs = [Proof(start, start + 10, 1, 10, 0, 0, None, (), KeySum(), KeySum()) for start in (0, 10, 30)]
    line = ProofLine(proofs)
    assert line.at(0) is proofs[0]
    assert line.at(10) is proofs[1]
    assert line.behind(10) is proofs[2]
    assert line.at(20) is None
    assert line.at(30) is proofs[2]
    assert line.behind(30) is None
    assert ProofLine().at(0) is None


def test_the_digest_of_keys_depends_on_their_order():
    def digest(*pairs):
        key_digest = KeyDigest()
        for offsets, hashes in pairs:
            key_digest.add(np.array(offsets, np.int64), np.array(hashes, np.int64))
        return key_digest.count, key_digest.text

    assert digest(([1, 2], [5, 6]), ([3], [7])) == digest(([1], [5]), ([2, 3], [6, 7]))
    assert digest(([1, 2], [6, 5])) != digest(([1, 2], [5, 6]))
