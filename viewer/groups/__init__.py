"""Consumer groups: how far each came."""
