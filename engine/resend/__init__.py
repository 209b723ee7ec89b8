"""Messages of a store are sent again to a running broker, and a journal keeps what was sent.

The plan only reads the store. Each send is written into the journal before and after, so no message is sent twice by
accident.
"""
