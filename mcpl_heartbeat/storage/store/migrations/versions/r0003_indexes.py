"""Indexes for what went by too many rows: the housekeeping, and the counts of switches."""

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
    op.create_index("switches_state", "switches", ["namespace", "state"])
