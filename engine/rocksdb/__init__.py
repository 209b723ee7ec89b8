"""RocksDB databases of a store, opened for reading only (:mod:`engine.rocksdb.database`)."""
