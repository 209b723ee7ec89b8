"""Where a store's bytes are: counted file by file, walked, or asked of the queues."""
