"""The shared store of the watch wing: SQLite by default, PostgreSQL where machines are many.

Nothing here is imported by a server that was given no store.
"""
