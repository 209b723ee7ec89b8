"""The index: files, the load of their slots, the trace of a key."""
