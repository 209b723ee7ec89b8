"""Rows that a broker keeps in a RocksDB: waiting timers, open transactions, popped messages, entries of the index."""
