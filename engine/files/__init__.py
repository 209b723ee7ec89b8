"""Files and folders: the names in a store, whole writes, temporary and private folders, Java's properties syntax."""
