"""Checkpoints: what is kept of them, and what an alert may say."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Raw, json

from mcpl_heartbeat.watch import checkpoints
from mcpl_heartbeat.watch.arguments import CheckpointPutArguments
from mcpl_heartbeat.watch.failures import Failure
from mcpl_heartbeat.watch.results import CheckpointPutResult
from mcpl_heartbeat.watch.rows import Checkpoint, Entry, ResumePoint
from tests.watch.mailing import START, at

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


def put(
    before: Checkpoint | None = None, ms: int = 0, **arguments: Any
) -> tuple[Checkpoint, CheckpointPutResult, tuple[Entry, ...]]:
    outcome = tried(before, ms, **arguments)
    assert not isinstance(outcome, Failure), outcome
    return outcome


def tried(before: Checkpoint | None = None, ms: int = 0, **arguments: Any) -> Any:
    given_ = {"objective": "review", "next_action": "open 17", **arguments}
    return checkpoints.put(before, "ns", CheckpointPutArguments(**given_), at(ms))


def problems(outcome: Any) -> tuple[str, ...]:
    assert isinstance(outcome, Failure), outcome
    assert (outcome.code, outcome.status) == ("invalid_arguments", 400)
    assert isinstance(outcome.problems, tuple)
    return outcome.problems


@pytest.mark.requirement("watch.resume.checkpoint")
def test_a_checkpoint_holds_what_was_sent_and_nothing_else() -> None:
    checkpoint, result, entries = put(
        scope="s", step="", files=["a"], body=Raw(b'{"n": [1, 2.5, null]}'), agent_key="k"
    )
    assert checkpoint == Checkpoint(
        namespace="ns",
        scope="s",
        version=1,
        saved_at=START,
        content={
            "objective": "review",
            "next_action": "open 17",
            "step": "",
            "files": ["a"],
            "body": {"n": [1, 2.5, None]},
        },
    )
    assert (result.saved, result.scope, result.version) == (True, "s", 1)
    assert result.saved_at == "2026-09-21T14:13:20.000Z"
    (entry,) = entries
    assert (entry.namespace, entry.scope, entry.at) == ("ns", "s", START)
    assert (entry.kind, entry.detail) == ("checkpoint", {"version": 1})


@pytest.mark.requirement("watch.resume.checkpoint")
def test_the_next_one_takes_its_place() -> None:
    first, _, _ = put(scope="s", step="1", risks=["r"])
    second, result, entries = put(first, 1_000, scope="s", objective="other")
    assert (second.version, result.version) == (2, 2)
    assert second.content == {"objective": "other", "next_action": "open 17"}
    assert second.saved_at == START + 1_000
    assert entries[0].detail == {"version": 2}


@pytest.mark.requirement("watch.resume.scope-or-workflow")
def test_scope_and_workflow_id_are_one_thing() -> None:
    assert put(workflow_id="w")[0].scope == "w"
    assert put(scope="w", workflow_id="w")[0].scope == "w"
    assert "workflow_id" not in put(workflow_id="w")[0].content
    assert problems(tried()) == ("scope: is required",)
    assert problems(tried(scope="a", workflow_id="b")) == (
        "scope + workflow_id: are two names of one thing, and must be equal",
    )


@pytest.mark.requirement("watch.resume.opaque")
@given(JSON)
def test_opaque_values_are_kept_as_they_mean(value: Any) -> None:
    content = put(scope="s", body=Raw(json.encode(value)), state=Raw(b"null"))[0].content
    assert content["body"] == value
    assert content["state"] is None
    assert "provider_extras" not in content


@pytest.mark.requirement("watch.resume.opaque")
def test_a_value_that_nobody_could_read_back_is_refused_with_all_the_rest() -> None:
    deep = b"[" * 60_000 + b"]" * 60_000
    found = problems(tried(body=Raw(deep), state=Raw(b"1e999"), provider_extras=Raw(b"1")))
    assert [problem.partition(":")[0] for problem in found] == ["scope", "body", "state"]


@pytest.mark.requirement("watch.resume.point")
def test_an_alert_says_where_to_resume_unless_that_is_private() -> None:
    checkpoint, _, _ = put(scope="s", step="16 of 40")
    assert checkpoints.resume_point(checkpoint, at(5_000)) == ResumePoint(
        objective="review",
        next_action="open 17",
        step="16 of 40",
        saved_at="2026-09-21T14:13:20.000Z",
    )
    private, _, _ = put(scope="s", privacy_mode="client_key")
    assert checkpoints.resume_point(private, at()) is None
    assert checkpoints.resume_point(None, at()) is None


@pytest.mark.requirement("watch.resume.private")
def test_a_private_checkpoint_is_told_from_none() -> None:
    told, _, _ = put(scope="s")
    private, _, _ = put(scope="s", privacy_mode="client_key")
    assert [checkpoints.is_private(each) for each in (None, told, private)] == [False, False, True]
