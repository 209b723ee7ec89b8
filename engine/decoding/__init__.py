"""Bodies of messages as values: which decoder reads which topic, and what it gives."""
