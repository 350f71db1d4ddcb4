"""The steps by which a store's tables came to be what ``schema.py`` says, for Alembic."""
