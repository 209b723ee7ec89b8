"""What a start does to a store: the plan of it (planning), and its deed (apply) (spec 10)."""
