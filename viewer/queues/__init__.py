"""Consume queues: the queue as a line, its entries as cells and rows, each with its verdict."""
