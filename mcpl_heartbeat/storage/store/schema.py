"""The tables, a column for each field of the rows in ``watch/rows.py`` and ``tasks/rows.py``.

A beat changes one row in place and no index: ``switches.check_watched``, which is indexed, lags
behind ``deadline_watched`` until a sweep reaches it. Lists and objects are JSON text.
"""

import sqlalchemy as sa

metadata = sa.MetaData()

# SQLite's integers hold 64 bits anyway, and its strict tables know no other word for them.
_MS = _SEQ = sa.BigInteger().with_variant(sa.Integer, "sqlite")


def _table(name: str, *parts: sa.schema.SchemaItem) -> sa.Table:
    return sa.Table(name, metadata, *parts, sqlite_strict=True)


clock = _table(
    "clock",
    sa.Column("id", sa.Integer, primary_key=True),
    sa.Column("source", sa.Text, nullable=False),
    sa.Column("offset_ms", _MS, nullable=False),
    sa.Column("cut", _MS, nullable=False),
    sa.Column("seen", _MS, nullable=False),
    sa.Column("salt", sa.Text, nullable=False),
)
"""One row: ``source`` names the steady clock that ``offset_ms`` makes real time of, ``seen`` is the
real time at which a server last watched, ``salt`` is the key of the namespaces' hash, in hex."""

gaps = _table(
    "gaps",
    sa.Column("began", _MS, primary_key=True, autoincrement=False),
    sa.Column("ended", _MS, nullable=False),
    sa.Column("cut", _MS, nullable=False),
)

identities = _table(
    "identities",
    sa.Column("namespace", sa.Text, primary_key=True),
    sa.Column("agent", sa.Text, nullable=False, unique=True),
    sa.Column("label", sa.Text),
    sa.Column("registered_at", _MS, nullable=False),
)

switches = _table(
    "switches",
    sa.Column("namespace", sa.Text, primary_key=True),
    sa.Column("scope", sa.Text, primary_key=True),
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
    sa.Column("wake_on_tasks", sa.Integer, nullable=False, server_default=sa.text("0")),
)
"""``state`` is one of ``watch.rows.Switch``'s, or ``corrupt``: set aside as it cannot be read."""

_armed = switches.c.state == "armed"
sa.Index(
    "switches_check",
    switches.c.check_watched,
    sqlite_where=_armed,
    postgresql_where=_armed,
)
_to_nudge = sa.and_(_armed, switches.c.nudge_ms.is_not(None), switches.c.nudged == 0)
sa.Index(
    "switches_nudge",
    switches.c.namespace,
    sqlite_where=_to_nudge,
    postgresql_where=_to_nudge,
)

_to_wake = sa.and_(_armed, switches.c.wake_on_tasks == 1)
_counted = switches.c.namespace > sa.literal_column("''")
sa.Index(
    "switches_state",
    switches.c.namespace,
    switches.c.state,
    # True of all; SQLite takes it only for a statement that says so. For the others, which look for
    # few among those armed, it would choose it before their own.
    sqlite_where=_counted,
    postgresql_where=_counted,
)

sa.Index(
    "switches_wake",
    switches.c.namespace,
    # Few have been armed since the last wake, of however many.
    switches.c.armed_at,
    sqlite_where=_to_wake,
    postgresql_where=_to_wake,
)

leases = _table(
    "leases",
    sa.Column("namespace", sa.Text, primary_key=True),
    sa.Column("key", sa.Text, primary_key=True),
    sa.Column("holder", sa.Text, nullable=False),
    sa.Column("scope", sa.Text),
    sa.Column("fence", sa.Text, nullable=False),
    sa.Column("generation", sa.Integer, nullable=False),
    sa.Column("expires_watched", _MS, nullable=False),
    sa.Column("ttl_ms", _MS, nullable=False),
    sa.Column("held", sa.Integer, nullable=False),
)
_held = leases.c.held == 1
sa.Index(
    "leases_scope",
    leases.c.namespace,
    leases.c.scope,
    sqlite_where=_held,
    postgresql_where=_held,
)

envelopes = _table(
    "envelopes",
    sa.Column("seq", _SEQ, primary_key=True),
    sa.Column("task_id", sa.Text, nullable=False, unique=True),
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
    sa.UniqueConstraint("of_namespace", "of_scope", "of_generation", name="alert_once"),
)
"""``of_*`` name the switch and generation that an alert is of: never two alerts of one fire. The
review of a task has the generation 0 of its guards' scope there: never two reviews of one task.
``push_token`` and ``push_until`` say which server is pushing it, and until when it may be."""

_pending = envelopes.c.state == "pending"
sa.Index(
    "envelopes_pending",
    envelopes.c.agent,
    envelopes.c.box,
    envelopes.c.visible_at,
    sqlite_where=_pending,
    postgresql_where=_pending,
)
_failed = envelopes.c.state == "failed"
sa.Index("envelopes_failed", envelopes.c.agent, sqlite_where=_failed, postgresql_where=_failed)
_settled = envelopes.c.settled_at.is_not(None)
sa.Index(
    "envelopes_settled",
    envelopes.c.settled_at,
    sqlite_where=_settled,
    postgresql_where=_settled,
)
_to_push = sa.and_(_pending, envelopes.c.kind == "alert", envelopes.c.pushed_at.is_(None))
sa.Index(
    "envelopes_to_push",
    envelopes.c.agent,
    envelopes.c.seq,
    sqlite_where=_to_push,
    postgresql_where=_to_push,
)

_reviews = sa.and_(_pending, envelopes.c.of_generation == 0, envelopes.c.pushed_at.is_(None))
sa.Index(
    "envelopes_reviews",
    envelopes.c.agent,
    envelopes.c.seq,
    sqlite_where=_reviews,
    postgresql_where=_reviews,
)

checkpoints = _table(
    "checkpoints",
    sa.Column("namespace", sa.Text, primary_key=True),
    sa.Column("scope", sa.Text, primary_key=True),
    sa.Column("version", sa.Integer, nullable=False),
    sa.Column("saved_at", _MS, nullable=False),
    sa.Column("content", sa.Text, nullable=False),
)

journal = _table(
    "journal",
    sa.Column("seq", _SEQ, primary_key=True),
    sa.Column("namespace", sa.Text, nullable=False),
    sa.Column("scope", sa.Text, nullable=False),
    sa.Column("at", _MS, nullable=False),
    sa.Column("kind", sa.Text, nullable=False),
    sa.Column("generation", sa.Integer, nullable=False),
    sa.Column("detail", sa.Text, nullable=False),
    sa.Index("journal_scope", "namespace", "scope", "seq"),
)

presence = _table(
    "presence",
    sa.Column("agent", sa.Text, primary_key=True),
    sa.Column("token", sa.Text, primary_key=True),
    sa.Column("feature_set", sa.Text, primary_key=True),
    sa.Column("until", _MS, nullable=False),
)
"""Which servers (``token``) can push to which agents, under which of the feature sets ``watch`` and
``tasks``, and until when (real time) that holds."""

tasks = _table(
    "tasks",
    sa.Column("seq", _SEQ, primary_key=True),
    sa.Column("id", sa.Text, nullable=False, unique=True),
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
    sa.Index("tasks_list", "namespace", "seq"),
    sa.Index("tasks_status", "namespace", "status", "seq"),
)
"""``status`` is one of ``tasks.rows.Task``'s, or ``corrupt``: set aside as it cannot be read. A
heartbeat changes one row in place and no index. What is large of a task is in ``task_payloads``."""

_keyed = tasks.c.dedupe_key.is_not(None)
sa.Index(
    "tasks_dedupe",
    tasks.c.namespace,
    tasks.c.dedupe_key,
    unique=True,
    sqlite_where=_keyed,
    postgresql_where=_keyed,
)
_open = tasks.c.status.in_(("available", "claimed"))
sa.Index("tasks_timeout", tasks.c.timeout_at, sqlite_where=_open, postgresql_where=_open)
_available = tasks.c.status == "available"
sa.Index(
    "tasks_claimable",
    tasks.c.namespace,
    tasks.c.claimable_at,
    sqlite_where=_available,
    postgresql_where=_available,
)
_claimed = tasks.c.status == "claimed"
sa.Index(
    "tasks_claimed",
    tasks.c.namespace,
    tasks.c.scope,
    sqlite_where=_claimed,
    postgresql_where=_claimed,
)

task_payloads = _table(
    "task_payloads",
    sa.Column("task", sa.Text, primary_key=True),
    sa.Column("instructions", sa.Text),
    sa.Column("output_contract", sa.Text, nullable=False),
    sa.Column("input_snapshot", sa.Text, nullable=False),
    sa.Column("outputs", sa.Text),
)
"""Apart from ``tasks``, as it is written when a task is made and submitted, and never between."""

task_epochs = _table(
    "task_epochs",
    sa.Column("task", sa.Text, primary_key=True),
    sa.Column("epoch", sa.Integer, primary_key=True),
    sa.Column("namespace", sa.Text, nullable=False),
    sa.Column("agent_id", sa.Text),
    sa.Column("claimed_at", _MS, nullable=False),
    sa.Column("beats", sa.Integer, nullable=False),
    sa.Column("ended_at", _MS),
    sa.Column("cause", sa.Text),
    sa.Column("note", sa.Text),
    sa.Column("step", sa.Text),
    sa.Column("note_at", _MS),
)

task_wakes = _table(
    "task_wakes",
    sa.Column("namespace", sa.Text, primary_key=True),
    sa.Column("number", sa.Integer, nullable=False),
    sa.Column("real", _MS, nullable=False),
    sa.Column("watched", _MS, nullable=False),
    sa.Column("push_token", sa.Text),
    sa.Column("push_until", _MS),
)
"""How often a namespace was woken by claimable work, and up to when (in both times) it was told of
all that there was. ``push_token`` and ``push_until`` as in ``envelopes``."""
