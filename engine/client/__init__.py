"""Clients of RocketMQ: producers and consumers over the remoting protocol, for our broker and real ones.

Start with ``producer``, ``consumer``, ``pulling`` and ``popping``; ``blocking`` has the same without an event loop,
``events`` report what a client does, and ``admin`` makes topics and reports lag (docs/protocol/clients.md). Allocation,
routes, queue choice and process queues are pure.
"""

import logging

logging.getLogger("engine").addHandler(logging.NullHandler())  # silent unless the embedding program configures logging
