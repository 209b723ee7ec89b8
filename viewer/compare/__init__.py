"""Comparison of two open stores, and of a store with queues and index that were rebuilt from its log."""
