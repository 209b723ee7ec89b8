"""The commands, each a module with ``register(commands)`` and ``run(args, out) -> exit code``."""
