"""Messages for any delivery time: wheel, log and what runs them (docs/formats/delays.md)."""
