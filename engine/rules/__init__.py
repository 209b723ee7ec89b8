"""Rules: what is wrong with a store, decided over arrays and records. Pure: no file is opened here."""
