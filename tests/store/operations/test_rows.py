"""Rows and Structs say the same, and a row that says nothing sensible is named, not guessed at."""

from typing import Any

import msgspec
import pytest
from msgspec import Raw

from mcpl_heartbeat.storage.store import rows, schema
from mcpl_heartbeat.storage.store.rows import CorruptRow
from mcpl_heartbeat.watch.rows import (
    Alert,
    Checkpoint,
    Entry,
    Envelope,
    Freed,
    Identity,
    Lease,
    ResumePoint,
    Switch,
)

ADDRESS = "agent:aaaaaaaaaaaaaaaa/inbox"
SWITCH = Switch(
    namespace="n",
    scope="s",
    state="armed",
    generation=3,
    deadline_watched=5,
    window_ms=2000,
    on_expiry=("mark_failed", "queue_alert"),
    notify=ADDRESS,
    agent_id="w",
    other_agent_id="v",
    other_at=1,
    armed_at=2,
    last_beat_at=3,
    beats=4,
    nudge_ms=1000,
    nudged=True,
    fires=2,
    fired_generation=1,
    failed=True,
)
LEASE = Lease(
    namespace="n", key="k", holder="h", scope=None, fence="f", generation=2, expires_watched=9
)
ALERT = Alert(
    scope="s",
    generation=1,
    agent_id=None,
    last_beat_at="a",
    deadline="b",
    noticed_at="c",
    on_expiry=("queue_alert",),
    released=(Freed(key="k", holder="h", generation=1),),
    unreachable=2,
    marked_failed=False,
    resume=ResumePoint(objective="o", next_action="n", saved_at="d"),
    folded=2,
    folded_scopes=("x", "ä"),
)
ENVELOPE = Envelope(
    task_id="t",
    agent="a",
    box="inbox",
    kind="alert",
    sender=None,
    objective="o",
    context=Raw(b'{"a": [1.50, 1e999]}'),
    alert=ALERT,
    sent_at=1,
    due_at=2,
    visible_at=3,
)
OTHERS: list[tuple[Any, Any, Any, Any]] = [
    (
        Identity(namespace="n", agent="a", label=None, registered_at=1),
        rows.IDENTITY,
        rows.identity,
        rows.identity_values,
    ),
    (
        Checkpoint(namespace="n", scope="s", version=1, saved_at=2, content={"a": [1, None, 0.5]}),
        rows.CHECKPOINT,
        rows.checkpoint,
        rows.checkpoint_values,
    ),
    (
        Entry(namespace="n", scope="s", at=1, kind="fired", generation=2, detail={"x": ["ä"]}),
        rows.ENTRY,
        rows.entry,
        rows.entry_values,
    ),
    (LEASE, rows.LEASE, rows.lease, rows.lease_values),
    (SWITCH, rows.SWITCH, rows.switch, rows.switch_values),
]


def _row(columns: Any, values: dict[str, Any]) -> list[Any]:
    return [values.get(column.name, 0) for column in columns]


@pytest.mark.requirement("watch.store.rows")
@pytest.mark.parametrize(("struct", "columns", "read", "write"), OTHERS)
def test_what_is_written_is_what_is_read(struct: Any, columns: Any, read: Any, write: Any) -> None:
    assert read(_row(columns, write(struct))) == struct


@pytest.mark.requirement("watch.store.rows")
def test_an_envelope_keeps_foreign_json_byte_by_byte() -> None:
    values = rows.envelope_values(ENVELOPE)
    found = rows.envelope(_row(rows.ENVELOPE, values))
    assert bytes(found.context or b"") == bytes(ENVELOPE.context or b"")
    assert rows.envelope_values(found) == values
    assert found.alert == ALERT


@pytest.mark.requirement("watch.store.rows")
def test_each_field_of_a_struct_has_its_column() -> None:
    for kind, table in (
        (Switch, schema.switches),
        (Lease, schema.leases),
        (Envelope, schema.envelopes),
        (Checkpoint, schema.checkpoints),
        (Entry, schema.journal),
        (Identity, schema.identities),
    ):
        assert set(kind.__struct_fields__) <= set(table.columns.keys())


@pytest.mark.requirement("watch.store.rows", "watch.store.corrupt")
@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("generation", "1"),
        ("generation", 0),
        ("generation", 1.5),
        ("state", "lost"),
        ("state", None),
        ("deadline_watched", None),
        ("window_ms", 0),
        ("on_expiry", None),
        ("on_expiry", ""),
        ("on_expiry", "{}"),
        ("on_expiry", "[]"),
        ("on_expiry", '["queue_alert","mark_failed"]'),
        ("on_expiry", '["mark_failed","mark_failed"]'),
        ("on_expiry", b"\xff"),
        ("notify", "agent:short"),
        ("notify", None),
        ("failed", 2),
        ("nudged", "1"),
        ("agent_id", 7),
    ],
)
def test_a_switch_that_cannot_be_is_named(column: str, value: Any) -> None:
    values = {**rows.switch_values(SWITCH), column: value}
    with pytest.raises(CorruptRow) as caught:
        rows.switch(_row(rows.SWITCH, values))
    assert (caught.value.table, caught.value.key) == ("switches", ("n", "s"))
    assert caught.value.why in str(caught.value)


@pytest.mark.requirement("watch.store.rows", "watch.store.corrupt")
@pytest.mark.parametrize(
    ("read", "columns", "values", "table"),
    [
        (rows.lease, rows.LEASE, {**rows.lease_values(LEASE), "held": 2}, "leases"),
        (rows.lease, rows.LEASE, {**rows.lease_values(LEASE), "fence": None}, "leases"),
        *[
            (rows.envelope, rows.ENVELOPE, {**rows.envelope_values(ENVELOPE), **wrong}, "envelopes")
            for wrong in (
                {"context": "{"},
                {"history": "nothing"},
                {"alert": None},
                {"alert": "{}"},
                {"alert": "["},
                {"kind": "letter"},
                {"state": "corrupt"},
                {"due_at": "soon"},
            )
        ],
        *[
            (
                rows.checkpoint,
                rows.CHECKPOINT,
                {**rows.checkpoint_values(OTHERS[1][0]), **wrong},
                "checkpoints",
            )
            for wrong in ({"content": "[]"}, {"content": "{"}, {"content": 1}, {"version": "x"})
        ],
        *[
            (rows.entry, rows.ENTRY, {**rows.entry_values(OTHERS[2][0]), **wrong}, "journal")
            for wrong in ({"kind": "beat"}, {"detail": "[]"}, {"detail": "{"})
        ],
        (rows.identity, rows.IDENTITY, {"namespace": 1, "agent": "a"}, "identities"),
    ],
)
def test_any_row_that_cannot_be_is_named(
    read: Any, columns: Any, values: dict[str, Any], table: str
) -> None:
    with pytest.raises(CorruptRow) as caught:
        read(_row(columns, values))
    assert caught.value.table == table


@pytest.mark.requirement("watch.store.rows")
def test_what_nests_deep_is_kept_as_it_came() -> None:
    deep = b"[" * 5000 + b"]" * 5000
    values = rows.envelope_values(msgspec.structs.replace(ENVELOPE, history=Raw(deep)))
    assert bytes(rows.envelope(_row(rows.ENVELOPE, values)).history or b"") == deep
