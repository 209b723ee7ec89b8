"""The view Timeline: what happened to a store and when."""
