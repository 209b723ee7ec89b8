"""What a message store does with its files: recovery and the unit check that it rests on."""
