"""Pipeline jobs: asked for, followed, and what they found."""
