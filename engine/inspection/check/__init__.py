"""The parts of a check, a room each: log, queues, index, groups, timers, tables, clocks; and the four answers."""
