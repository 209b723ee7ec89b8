"""Cluster view: brokers, queues, producers, consumers and queue owners of a running cluster, and rebalance."""
