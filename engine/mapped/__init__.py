"""Files as lent bytes: the only floor that opens, reads and (for the engine that writes) syncs files."""
