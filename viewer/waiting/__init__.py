"""Messages that wait in a store, when they are due, and what the services that deliver them have reached."""
