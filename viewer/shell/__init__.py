"""The window: menus, commands, rail, places, history, what frames the views. It alone knows all of them."""
