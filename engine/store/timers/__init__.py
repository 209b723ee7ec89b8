"""Messages for any delivery time: wheel, log and what runs them (spec 12.4 to 12.7)."""
