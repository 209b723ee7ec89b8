"""A master's log, followed through its HA port."""
