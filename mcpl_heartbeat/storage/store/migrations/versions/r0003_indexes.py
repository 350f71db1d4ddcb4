"""Indexes for what went by too many rows: housekeeping, counts of switches, wakes after a death."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    """Add them; no row changes."""
    settled = sa.text("settled_at IS NOT NULL")
    op.create_index(
        "envelopes_settled",
        "envelopes",
        ["settled_at"],
        sqlite_where=settled,
        postgresql_where=settled,
    )
    counted = sa.text("namespace > ''")
    op.create_index(
        "switches_state",
        "switches",
        ["namespace", "state"],
        sqlite_where=counted,
        postgresql_where=counted,
    )
    wanted = sa.text("state = 'armed' AND wake_on_tasks = 1")
    op.drop_index("switches_wake", "switches")
    op.create_index(
        "switches_wake",
        "switches",
        ["namespace", "armed_at"],
        sqlite_where=wanted,
        postgresql_where=wanted,
    )
