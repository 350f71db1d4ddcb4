"""Run by Alembic: the steps are taken on the connection that ``migrate.py`` hands over."""

from alembic import context

from mcpl_heartbeat.storage.store import schema

context.configure(
    connection=context.config.attributes["connection"], target_metadata=schema.metadata
)
with context.begin_transaction():
    context.run_migrations()
