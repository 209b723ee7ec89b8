"""What the program ships beside its code: icons, styles, pictures, the sample stores.

Read with :mod:`importlib.resources`; the viewer's only door to it is ``viewer/assets.py``.
"""
