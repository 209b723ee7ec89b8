"""RocketMQ's name server: which brokers there are, and which queues of a topic they hold (protocol 2).

``routes`` are its tables, ``registration`` reads what brokers send, ``processor`` answers requests, ``server`` listens.
"""
