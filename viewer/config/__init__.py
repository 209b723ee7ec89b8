"""Config view: the tables below config/, value by value."""
