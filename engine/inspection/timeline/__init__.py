"""Tell from a store's files alone what happened to it and when."""
