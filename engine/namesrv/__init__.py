"""RocketMQ's name server: which brokers there are, and which queues of a topic they hold
(docs/protocol/name-server.md).

``routes`` are its tables and what brokers send to get into them; ``server`` answers requests and listens.
"""
