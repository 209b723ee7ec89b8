"""Space view: every byte by topic, queue and day, and what retention deletes next."""
