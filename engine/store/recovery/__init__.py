"""Recovery at a start: its plan (planning), and its execution (apply) (docs/formats/recovery.md)."""
