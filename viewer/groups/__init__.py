"""Consumer groups view: how far each group has read."""
