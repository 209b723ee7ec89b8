"""The files of a message store: its structures, recovery and the unit check that recovery rests on."""
