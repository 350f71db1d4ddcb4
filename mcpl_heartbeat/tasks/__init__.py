"""The tasks wing: work claimed under a lease, fenced by an epoch, with a deadline of its own."""
