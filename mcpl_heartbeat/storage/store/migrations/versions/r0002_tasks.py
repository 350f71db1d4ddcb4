"""The tables of the tasks wing, and the switches that wake at its work."""

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_MS = _SEQ = sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def _where(condition: str) -> dict[str, Any]:
    return {"sqlite_where": sa.text(condition), "postgresql_where": sa.text(condition)}


def upgrade() -> None:
    """Add them; the rows that are there stay as they are, but for who can be pushed to."""
    op.add_column(
        "switches",
        sa.Column("wake_on_tasks", sa.Integer, nullable=False, server_default=sa.text("0")),
    )
    op.create_index(
        "switches_wake",
        "switches",
        ["namespace"],
        **_where("state = 'armed' AND wake_on_tasks = 1"),
    )
    # What servers say there holds for a minute, and they say it again.
    op.drop_table("presence")
    op.create_table(
        "presence",
        sa.Column("agent", sa.Text, nullable=False),
        sa.Column("token", sa.Text, nullable=False),
        sa.Column("feature_set", sa.Text, nullable=False),
        sa.Column("until", _MS, nullable=False),
        sa.PrimaryKeyConstraint("agent", "token", "feature_set"),
        sqlite_strict=True,
    )
    op.create_index(
        "envelopes_reviews",
        "envelopes",
        ["agent", "seq"],
        **_where("state = 'pending' AND of_generation = 0 AND pushed_at IS NULL"),
    )
    op.create_table(
        "task_epochs",
        sa.Column("task", sa.Text, nullable=False),
        sa.Column("epoch", sa.Integer, nullable=False),
        sa.Column("namespace", sa.Text, nullable=False),
        sa.Column("agent_id", sa.Text),
        sa.Column("claimed_at", _MS, nullable=False),
        sa.Column("beats", sa.Integer, nullable=False),
        sa.Column("ended_at", _MS),
        sa.Column("cause", sa.Text),
        sa.Column("note", sa.Text),
        sa.Column("step", sa.Text),
        sa.Column("note_at", _MS),
        sa.PrimaryKeyConstraint("task", "epoch"),
        sqlite_strict=True,
    )
    op.create_table(
        "task_payloads",
        sa.Column("task", sa.Text, nullable=False),
        sa.Column("instructions", sa.Text),
        sa.Column("output_contract", sa.Text, nullable=False),
        sa.Column("input_snapshot", sa.Text, nullable=False),
        sa.Column("outputs", sa.Text),
        sa.PrimaryKeyConstraint("task"),
        sqlite_strict=True,
    )
    op.create_table(
        "task_wakes",
        sa.Column("namespace", sa.Text, nullable=False),
        sa.Column("number", sa.Integer, nullable=False),
        sa.Column("real", _MS, nullable=False),
        sa.Column("watched", _MS, nullable=False),
        sa.Column("push_token", sa.Text),
        sa.Column("push_until", _MS),
        sa.PrimaryKeyConstraint("namespace"),
        sqlite_strict=True,
    )
    op.create_table(
        "tasks",
        sa.Column("seq", _SEQ, nullable=False),
        sa.Column("id", sa.Text, nullable=False),
        sa.Column("namespace", sa.Text, nullable=False),
        sa.Column("status", sa.Text, nullable=False),
        sa.Column("epoch", sa.Integer, nullable=False),
        sa.Column("creator", sa.Text, nullable=False),
        sa.Column("created_at", _MS, nullable=False),
        sa.Column("updated_at", _MS, nullable=False),
        sa.Column("lease_ms", _MS, nullable=False),
        sa.Column("timeout_at", _MS, nullable=False),
        sa.Column("fallthrough", sa.Text, nullable=False),
        sa.Column("dedupe_key", sa.Text),
        sa.Column("claimed_at", _MS),
        sa.Column("expires_watched", _MS),
        sa.Column("agent_id", sa.Text),
        sa.Column("scope", sa.Text),
        sa.Column("guard", sa.Integer, nullable=False),
        sa.Column("claim_key", sa.Text),
        sa.Column("note", sa.Text),
        sa.Column("step", sa.Text),
        sa.Column("note_at", _MS),
        sa.Column("note_epoch", sa.Integer),
        sa.Column("lost", sa.Text),
        sa.Column("claimable_at", _MS),
        sa.Column("submitted_at", _MS),
        sa.Column("summary", sa.Text),
        sa.Column("reason", sa.Text),
        sa.PrimaryKeyConstraint("seq"),
        sa.UniqueConstraint("id"),
        sqlite_strict=True,
    )
    op.create_index("tasks_list", "tasks", ["namespace", "seq"])
    op.create_index("tasks_status", "tasks", ["namespace", "status", "seq"])
    op.create_index(
        "tasks_dedupe",
        "tasks",
        ["namespace", "dedupe_key"],
        unique=True,
        **_where("dedupe_key IS NOT NULL"),
    )
    op.create_index(
        "tasks_timeout", "tasks", ["timeout_at"], **_where("status IN ('available', 'claimed')")
    )
    op.create_index(
        "tasks_claimable",
        "tasks",
        ["namespace", "claimable_at"],
        **_where("status = 'available'"),
    )
    op.create_index(
        "tasks_claimed", "tasks", ["namespace", "scope"], **_where("status = 'claimed'")
    )
