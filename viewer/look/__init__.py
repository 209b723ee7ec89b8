"""How everything looks and reads: theme, icons, translated words, numbers and times. It knows no store."""
