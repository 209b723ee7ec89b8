"""Lab view: put messages, run a load, control services, cut the power of a lab store."""
