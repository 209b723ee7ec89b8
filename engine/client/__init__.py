"""Clients of RocketMQ: producers and consumers over the remoting protocol, for our broker and real ones
(docs/protocol/clients.md). Start with ``producer``, ``consumer``, ``pulling`` and ``popping``; ``blocking`` has
the same without an event loop, and ``events`` report what a client does. Allocation, routes, queue choice and
process queues are pure.

``producer``, ``consumer``, ``pulling`` and ``popping`` are the doors, ``blocking`` the same without an event loop; what
a client sees and does comes as ``events``. Allocation, routes, queue choice and process queues are pure.
"""
