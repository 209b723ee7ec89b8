"""The log: every unit a row, filtered, found, marked, decoded and as bytes."""
