"""What happened to a store and when, from its files alone."""
