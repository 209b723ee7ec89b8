"""Where is my message: evidence, the ways to it, and what is said where no unit is seen."""
