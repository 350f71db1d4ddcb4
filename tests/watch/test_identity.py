"""Who an agent is: what is derived from its secret, and what is told of it."""

import hashlib
import hmac
import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET

from mcpl_heartbeat.watch import identity
from mcpl_heartbeat.watch.arguments import RegisterArguments
from mcpl_heartbeat.watch.failures import Failure
from mcpl_heartbeat.watch.results import BoxView, RegisterResult
from mcpl_heartbeat.watch.rows import Identity
from tests.watch.mailing import START, at

SALT = b"s" * 32
SECRET = "a secret of thirty-two characters"
NAMESPACE = identity.namespace_of(SALT, SECRET)
AGENT = identity.agent_of(SALT, NAMESPACE)


def registered(
    arguments: RegisterArguments, existing: Identity | None = None
) -> tuple[Identity | None, RegisterResult | Failure]:
    return identity.register(existing, arguments, SECRET, NAMESPACE, AGENT, at())


@pytest.mark.requirement("watch.identity.namespace")
def test_the_namespace_is_a_keyed_hash_of_the_secret() -> None:
    assert hmac.new(SALT, SECRET.encode(), hashlib.sha256).hexdigest() == NAMESPACE
    assert identity.namespace_of(b"t" * 32, SECRET) != NAMESPACE
    assert identity.namespace_id(NAMESPACE) == f"ns_{NAMESPACE[:24]}"


@pytest.mark.requirement("watch.identity.namespace")
@given(st.text(st.characters(), max_size=300))
def test_any_secret_has_a_namespace_and_an_address(secret: str) -> None:
    namespace = identity.namespace_of(SALT, secret)
    agent = identity.agent_of(SALT, namespace)
    assert re.fullmatch("[0-9a-f]{64}", namespace)
    assert re.fullmatch("agent:[a-z2-7]{16}", identity.address(agent))
    assert agent == identity.agent_of(SALT, namespace)


@pytest.mark.requirement("watch.identity.namespace")
def test_a_secret_that_is_no_text_is_somebody_too() -> None:
    assert identity.namespace_of(SALT, "\ud800") != identity.namespace_of(SALT, "\ud801")


@pytest.mark.requirement("watch.identity.address")
def test_an_address_tells_nothing_of_the_namespace() -> None:
    """It is keyed too: without the salt nobody can tell whose namespace an address is."""
    assert identity.agent_of(b"t" * 32, NAMESPACE) != AGENT
    assert AGENT not in NAMESPACE
    assert identity.address(AGENT) == f"agent:{AGENT}"


@pytest.mark.requirement("watch.identity.secret")
def test_a_secret_is_made_of_32_random_bytes() -> None:
    assert identity.new_secret(bytes(32)) == "hb_" + "A" * 43
    assert re.fullmatch(r"hb_[A-Za-z0-9_-]{43}", identity.new_secret(b"\xff" * 32))
    with pytest.raises(ValueError, match="32 random bytes, not 31"):
        identity.new_secret(bytes(31))


@pytest.mark.requirement("watch.identity.register")
@pytest.mark.parametrize(
    ("arguments", "label"),
    [
        (RegisterArguments(), None),
        (RegisterArguments(label="w"), "w"),
        (RegisterArguments(agent_id="w"), "w"),
        (RegisterArguments(label="w", agent_id="w"), "w"),
    ],
)
def test_registering_gives_secret_address_and_namespace(
    arguments: RegisterArguments, label: str | None
) -> None:
    kept, result = registered(arguments)
    assert kept == Identity(namespace=NAMESPACE, agent=AGENT, label=label, registered_at=START)
    assert isinstance(result, RegisterResult)
    assert (result.agent_secret, result.address) == (SECRET, f"agent:{AGENT}")
    assert (result.namespace_id, result.label) == (f"ns_{NAMESPACE[:24]}", label)
    assert (result.created, result.notes) == (True, ())


@pytest.mark.requirement("watch.identity.register")
def test_two_labels_are_refused() -> None:
    kept, refused = registered(RegisterArguments(label="a", agent_id="b"))
    assert kept is None
    assert isinstance(refused, Failure)
    assert (refused.code, refused.status) == ("invalid_arguments", 400)
    assert refused.problems == ("label + agent_id: are one thing: send one of them",)


@pytest.mark.requirement("watch.identity.register-again")
def test_registering_again_changes_nothing() -> None:
    first, _ = registered(RegisterArguments(label="w"))
    for arguments in (RegisterArguments(), RegisterArguments(label="w")):
        kept, result = registered(arguments, first)
        assert kept is None
        assert isinstance(result, RegisterResult)
        assert (result.created, result.label, result.notes) == (False, "w", ())
        assert result.address == f"agent:{AGENT}"
    kept, result = registered(RegisterArguments(label="other"), first)
    assert kept is None
    assert isinstance(result, RegisterResult)
    assert (result.created, result.label) == (False, "w")
    assert result.notes == ("This secret was registered before: its label stays as it was.",)


@pytest.mark.requirement("watch.identity.never-kept")
def test_what_is_kept_holds_no_secret() -> None:
    kept, _ = registered(RegisterArguments(label="w"))
    assert SECRET.encode() not in msgspec.json.encode(kept)


@pytest.mark.requirement("watch.identity.whoami")
def test_whoami_counts_and_tells_no_secret() -> None:
    who, _ = registered(RegisterArguments())
    assert who is not None
    boxes = [BoxView(box="alerts", total=3, due=1), BoxView(box="inbox", total=4, due=2)]
    result = identity.whoami(who, boxes, 5, START + 1_000, {"armed": 2}, 6, at())
    assert msgspec.to_builtins(result) == {
        "server_time": "2026-09-21T14:13:20.000Z",
        "notes": (),
        "address": f"agent:{AGENT}",
        "namespace_id": f"ns_{NAMESPACE[:24]}",
        "label": None,
        "registered_at": "2026-09-21T14:13:20.000Z",
        "total": 7,
        "due": 3,
        "next_due_at": "2026-09-21T14:13:21.000Z",
        "dead_lettered": 5,
        "boxes": tuple({"box": box.box, "total": box.total, "due": box.due} for box in boxes),
        "switches": {"armed": 2},
        "leases": 6,
    }
    nothing = identity.whoami(who, [], 0, None, {}, 0, at())
    assert (nothing.total, nothing.due, nothing.next_due_at) == (0, 0, None)
    assert nothing.code is UNSET
