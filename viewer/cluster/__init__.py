"""A running cluster as administrators see it: brokers, queues, who sends, who consumes and owns what, and rebalance."""
