"""What a start does to a store: the plan of it (planning), and its execution (apply) (docs/formats/recovery.md)."""
