"""A cluster as administrators see it: brokers, queues, groups and clients, asked of name servers and brokers."""
