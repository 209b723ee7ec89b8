"""What the program ships beside its code: icons, styles, pictures, the sample stores.

Read with :mod:`importlib.resources`; its only doors are ``viewer/look/assets.py`` and ``engine/inspection/samples.py``.
"""
