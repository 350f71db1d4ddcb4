"""The conformance suite: transcripts of hosts, replayed against any heartbeat server.

For use from a source checkout, in its root: ``python -m conformance --help``. What a transcript may
say is in ``FORMAT.md``, how to use the suite in ``README.md``.
"""
