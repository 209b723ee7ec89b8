"""Clients of RocketMQ: producers and consumers over the remoting protocol, for our broker and real ones
(docs/protocol/clients.md).

``producer``, ``consumer``, ``pulling`` and ``popping`` are the doors, ``blocking`` the same without an event loop; what
a client sees and does comes as ``events``. Allocation, routes, queue choice and process queues are pure.
"""
