"""Codecs: functions between bytes and frozen records. They open nothing, log nothing and know no clock."""
