"""The PostgreSQL of the run, where there is one."""

from tests.postgres import postgres_server

__all__ = ["postgres_server"]
