"""The tables as they were first."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

_MS = _SEQ = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def _where(condition: str) -> dict[str, Any]:
    return {"sqlite_where": sa.text(condition), "postgresql_where": sa.text(condition)}


def upgrade() -> None:
    """Make the tables and their indexes."""
    op.create_table(
        "checkpoints",
        sa.Column("namespace", sa.Text, nullable=False),
        sa.Column("scope", sa.Text, nullable=False),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("saved_at", _MS, nullable=False),
        sa.Column("content", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("namespace", "scope"),
        sqlite_strict=True,
    )
    op.create_table(
        "clock",
        sa.Column("id", sa.Integer, nullable=False),
        sa.Column("source", sa.Text, nullable=False),
        sa.Column("offset_ms", _MS, nullable=False),
        sa.Column("cut", _MS, nullable=False),
        sa.Column("seen", _MS, nullable=False),
        sa.Column("salt", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sqlite_strict=True,
    )
    op.create_table(
        "envelopes",
        sa.Column("seq", _SEQ, nullable=False),
        sa.Column("task_id", sa.Text, nullable=False),
        sa.Column("agent", sa.Text, nullable=False),
        sa.Column("box", sa.Text, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("sender", sa.Text),
        sa.Column("objective", sa.Text, nullable=False),
        sa.Column("scope", sa.Text),
        sa.Column("context", sa.Text),
        sa.Column("history", sa.Text),
        sa.Column("alert", sa.Text),
        sa.Column("sent_at", _MS, nullable=False),
        sa.Column("due_at", _MS, nullable=False),
        sa.Column("visible_at", _MS, nullable=False),
        sa.Column("attempts", sa.Integer, nullable=False),
        sa.Column("token", sa.Text),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("settled_at", _MS),
        sa.Column("result", sa.Text),
        sa.Column("of_namespace", sa.Text),
        sa.Column("of_scope", sa.Text),
        sa.Column("of_generation", sa.Integer),
        sa.Column("pushed_at", _MS),
        sa.Column("push_token", sa.Text),
        sa.Column("push_until", _MS),
        sa.PrimaryKeyConstraint("seq"),
        sa.UniqueConstraint("of_namespace", "of_scope", "of_generation", name="alert_once"),
        sa.UniqueConstraint("task_id"),
        sqlite_strict=True,
    )
    op.create_index("envelopes_failed", "envelopes", ["agent"], **_where("state = 'failed'"))
    op.create_index(
        "envelopes_pending",
        "envelopes",
        ["agent", "box", "visible_at"],
        **_where("state = 'pending'"),
    )
    op.create_index(
        "envelopes_to_push",
        "envelopes",
        ["agent", "seq"],
        **_where("state = 'pending' AND kind = 'alert' AND pushed_at IS NULL"),
    )
    op.create_table(
        "gaps",
        sa.Column("began", _MS, autoincrement=False, nullable=False),
        sa.Column("ended", _MS, nullable=False),
        sa.Column("cut", _MS, nullable=False),
        sa.PrimaryKeyConstraint("began"),
        sqlite_strict=True,
    )
    op.create_table(
        "identities",
        sa.Column("namespace", sa.Text, nullable=False),
        sa.Column("agent", sa.Text, nullable=False),
        sa.Column("label", sa.Text),
        sa.Column("registered_at", _MS, nullable=False),
        sa.PrimaryKeyConstraint("namespace"),
        sa.UniqueConstraint("agent"),
        sqlite_strict=True,
    )
    op.create_table(
        "journal",
        sa.Column("seq", _SEQ, nullable=False),
        sa.Column("namespace", sa.Text, nullable=False),
        sa.Column("scope", sa.Text, nullable=False),
        sa.Column("at", _MS, nullable=False),
        sa.Column("kind", sa.Text, nullable=False),
        sa.Column("generation", sa.Integer, nullable=False),
        sa.Column("detail", sa.Text, nullable=False),
        sa.PrimaryKeyConstraint("seq"),
        sqlite_strict=True,
    )
    op.create_index("journal_scope", "journal", ["namespace", "scope", "seq"])
    op.create_table(
        "leases",
        sa.Column("namespace", sa.Text, nullable=False),
        sa.Column("key", sa.Text, nullable=False),
        sa.Column("holder", sa.Text, nullable=False),
        sa.Column("scope", sa.Text),
        sa.Column("fence", sa.Text, nullable=False),
        sa.Column("generation", sa.Integer, nullable=False),
        sa.Column("expires_watched", _MS, nullable=False),
        sa.Column("ttl_ms", _MS, nullable=False),
        sa.Column("held", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("namespace", "key"),
        sqlite_strict=True,
    )
    op.create_index("leases_scope", "leases", ["namespace", "scope"], **_where("held = 1"))
    op.create_table(
        "presence",
        sa.Column("agent", sa.Text, nullable=False),
        sa.Column("token", sa.Text, nullable=False),
        sa.Column("until", _MS, nullable=False),
        sa.PrimaryKeyConstraint("agent", "token"),
        sqlite_strict=True,
    )
    op.create_table(
        "switches",
        sa.Column("namespace", sa.Text, nullable=False),
        sa.Column("scope", sa.Text, nullable=False),
        sa.Column("state", sa.Text, nullable=False),
        sa.Column("generation", sa.Integer, nullable=False),
        sa.Column("deadline_watched", _MS, nullable=False),
        sa.Column("check_watched", _MS, nullable=False),
        sa.Column("window_ms", _MS, nullable=False),
        sa.Column("on_expiry", sa.Text, nullable=False),
        sa.Column("notify", sa.Text),
        sa.Column("agent_id", sa.Text),
        sa.Column("other_agent_id", sa.Text),
        sa.Column("other_at", _MS),
        sa.Column("armed_at", _MS, nullable=False),
        sa.Column("last_beat_at", _MS, nullable=False),
        sa.Column("beats", sa.Integer, nullable=False),
        sa.Column("nudge_ms", _MS),
        sa.Column("nudged", sa.Integer, nullable=False),
        sa.Column("fires", sa.Integer, nullable=False),
        sa.Column("fired_generation", sa.Integer),
        sa.Column("failed", sa.Integer, nullable=False),
        sa.PrimaryKeyConstraint("namespace", "scope"),
        sqlite_strict=True,
    )
    op.create_index("switches_check", "switches", ["check_watched"], **_where("state = 'armed'"))
    op.create_index(
        "switches_nudge",
        "switches",
        ["namespace"],
        **_where("state = 'armed' AND nudge_ms IS NOT NULL AND nudged = 0"),
    )
