"""The whole picture as Markdown."""

from __future__ import annotations

import sample_clusters as made

from viewer.cluster.cluster_model import ClusterModel
from viewer.cluster.markdown import markdown

MODEL = made.looked_at(made.small(0), made.small(5))


def test_markdown_has_every_broker_client_and_queue():
    text = markdown(MODEL)
    lines = text.splitlines()
    assert lines[0] == "# Cluster 127.0.0.1:9876"
    assert "| broker-a | slave 1 | 10.0.0.9:10921 | 5.3.3 |  |  |" in lines
    assert "| P1 | 10.0.0.1@101#1 | order-service | JAVA 5.3.3 | broker-a, broker-b |" in lines
    assert "| billing | cluster · push | C4 | 10.0.1.3@23#3 | JAVA 5.3.3 | 2 | 0 /s | 9,000 |" in lines
    assert "| OrderPaid | broker-b | 0 | 20,500 | billing | 16,000 | 4,500 | C4 | 100 /s | 0 /s |" in lines
    assert "| OrderPaid | broker-b | 0 | 20,500 | audit | … | … | broadcast: every client | 100 /s | … |" in lines
    widths = {line.count("|") for line in lines if line.startswith("| billing")}
    assert widths == {9}
    assert markdown(ClusterModel()) == ""
