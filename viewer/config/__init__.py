"""The tables below config/, value by value."""
