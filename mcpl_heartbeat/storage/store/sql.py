"""What the statements share. Fixed words stand in them as literals, else no partial index serves.

Statements are made once, at import: then SQLAlchemy compiles each of them once as well.
"""

from typing import Any

import sqlalchemy as sa

from mcpl_heartbeat.storage.store import schema

Key = tuple[str, str]
"""Namespace and scope, or namespace and lease key."""

ARMED = schema.switches.c.state == sa.literal_column("'armed'")
HELD = schema.leases.c.held == sa.literal_column("1")
PENDING = schema.envelopes.c.state == sa.literal_column("'pending'")
ALERT = schema.envelopes.c.kind == sa.literal_column("'alert'")


def among(*columns: sa.ColumnElement[Any]) -> sa.ColumnElement[bool]:
    """Match rows whose ``columns`` are among the parameter ``keys``, which must not be empty."""
    keys: sa.BindParameter[Any] = sa.bindparam("keys", expanding=True)
    return sa.tuple_(*columns).in_(keys) if len(columns) > 1 else columns[0].in_(keys)
