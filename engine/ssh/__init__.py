"""Stores on another machine: their files are read through the pipe of an ssh command."""
