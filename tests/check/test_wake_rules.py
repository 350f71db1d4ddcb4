"""First match wins: which rule decides on a heartbeat, and which one keeps the agent asleep."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpl_heartbeat.check import wake_rules
from mcpl_heartbeat.check.findings import Level

from .support import RULE, bridge, framework, judged, only

pytestmark = pytest.mark.requirement("people.check-wake-policy")


def judge(*policies, default="always", server="heartbeat"):
    wake = {"policies": list(policies), "default": default}
    return wake_rules.judge(wake, "modules.wake", server)


def rule(name, behavior="skip", **match):
    return {"name": name, "match": match, "behavior": behavior}


AMBIENT = rule("discord-ambient", scope=["mcpl:push-event"])


def test_the_rule_first_is_right():
    assert judge(RULE, AMBIENT) == []
    assert judge(RULE, default="skip")[0].level is Level.NOTE


@pytest.mark.parametrize(
    "ambient",
    [
        AMBIENT,
        rule("discord-ambient"),
        rule("discord-ambient", "defer", scope=["mcpl:push-event", "mcpl:channel-incoming"]),
        rule("discord-ambient", source="*"),
        rule("discord-ambient", source="heart*"),
        rule("discord-ambient", tagsAny=["heartbeat:*"]),
        rule("discord-ambient", tagsNone=["chat:*"]),
        rule("discord-ambient", metadataTrue=["isMention", "tags"]),
        rule("discord-ambient", {"passive_sample": {"every": 10}}, channel="*"),
    ],
)
def test_a_rule_that_takes_them_first_is_named_with_the_one_below_it(ambient):
    finding = only(judge(ambient, RULE))
    assert finding.level is Level.ERROR
    assert finding.where == "modules.wake.policies[0]"
    assert '"discord-ambient" comes first for heartbeats and reminders' in finding.text
    assert '"heartbeat-wake", below it' in finding.text
    assert finding.remedy == 'Move "heartbeat-wake" above "discord-ambient".'


@pytest.mark.parametrize(
    "other",
    [
        rule("x", scope=["mcpl:channel-incoming"]),
        rule("x", source="discord"),
        rule("x", source="heartbea"),
        rule("x", channel="discord:*"),
        rule("x", mount="notes"),
        rule("x", pathGlob="*"),
        rule("x", metadataTrue=["isMention"]),
        rule("x", tagsAny=["chat:*"]),
        rule("x", tagsAll=["heartbeat:*", "chat:dm"]),
        rule("x", tagsNone=["heartbeat:*"]),
        rule("x", {"passive_sample": {"every": 3}}) | {"passthrough": True},
        rule("x", {"passive_sample": {"every": 1}}, source="y"),
    ],
)
def test_a_rule_that_does_not_match_them_is_in_nobodys_way(other):
    assert judge(other, RULE) == []


def test_without_a_rule_of_theirs_the_remedy_is_the_rule():
    finding = only(judge(AMBIENT))
    assert '"heartbeat-wake"' in finding.remedy
    assert "Put this rule above it" in finding.remedy
    finding = only(judge(default="skip", server="hb"))
    assert "the default keeps the agent asleep" in finding.text
    assert '"source": "hb"' in finding.remedy


@pytest.mark.parametrize(
    ("match", "why"),
    [
        ({"scope": ["push:event"], "source": "heartbeat"}, "push:event, which today's hosts call"),
        ({"scope": ["mcpl:push"], "source": "heartbeat"}, "a push is mcpl:push-event"),
        ({"scope": ["mcpl:push-event"], "source": "hb"}, "its source is hb"),
        ({"tagsAny": ["heartbeat"]}, "wants one of the tags heartbeat"),
    ],
)
def test_a_rule_that_never_matches_says_why(match, why):
    mine = {"name": "heartbeat-wake", "match": match, "behavior": "always"}
    asleep = only(judge(mine, default="skip"))
    assert asleep.level is Level.ERROR
    assert why in asleep.text
    awake = only(judge(mine))
    assert awake.level is Level.WARNING
    assert why in awake.text


def test_both_spellings_serve_hosts_of_both_ages():
    both = RULE | {"match": {"scope": ["mcpl:push-event", "push:event"], "source": "heartbeat"}}
    assert judge(both, default="skip") == []
    note = only(judge(RULE, rule("ambient", scope=["push:event"])))
    assert note.level is Level.NOTE
    assert "push:event" in note.text
    assert '"ambient"' in note.text


def test_heartbeats_and_reminders_can_fare_differently():
    ticks = rule("ticks", "always", tagsAny=["heartbeat:tick"])
    finding = only(judge(ticks, AMBIENT))
    assert "comes first for reminders and" in finding.text


@pytest.mark.parametrize(
    "behavior",
    [{"debounce": 60_000}, {"rate_limit": {"tokens": 1, "refillIntervalMs": 1000}}],
)
def test_a_rule_that_wakes_late_or_seldom_is_a_warning(behavior):
    findings = judge(RULE | {"behavior": behavior})
    assert {finding.level for finding in findings} == {Level.WARNING}
    assert {finding.remedy for finding in findings} == {'Write "behavior": "always" in it.'}
    others = judge(rule("all", behavior=behavior))
    assert all("a rule of their own" in finding.remedy for finding in others)


def test_a_rule_with_a_filter_is_not_said_to_match_never():
    loud = rule("heartbeat-loud", "always", source="heartbeat", filter={"pattern": "loud"})
    assert judge(loud, RULE) == judge(RULE, loud) == []
    finding = only(judge(loud, default="skip"))
    assert "No rule matches heartbeats and reminders for sure" in finding.text
    assert '"heartbeat-loud" may not: its filter looks at the text of a wake.' in finding.text


def test_a_rule_with_a_filter_may_take_them():
    finding = only(judge(rule("spam", filter={"type": "text", "pattern": "buy"}), RULE))
    assert finding.level is Level.WARNING
    assert '"spam" comes first and may keep' in finding.text


@pytest.mark.parametrize(
    ("wake", "words"),
    [
        ({"policies": {}}, "must be an array"),
        ({"policies": [RULE, {"match": {}}]}, "has no name"),
        ({"policies": [RULE | {"behavior": "sometimes"}]}, "knows no such behaviour"),
        ({"policies": [RULE], "default": "never"}, "default is no behaviour"),
        ("always", "must be true, false or an object"),
    ],
)
def test_rules_that_the_host_refuses_are_errors(wake, words):
    finding = only(wake_rules.judge(wake, "modules.wake", "heartbeat"))
    assert finding.level is Level.ERROR
    assert words in finding.text


def test_a_scope_that_is_a_string_is_ignored_by_the_host():
    findings = judge(rule("ambient", scope="mcpl:channel-incoming"), RULE)
    assert [finding.level for finding in findings] == [Level.ERROR, Level.WARNING]
    assert "gives its scope as a string" in findings[1].text


@pytest.mark.parametrize("wake", [None, True, False])
def test_no_rules_are_a_note(wake):
    assert only(wake_rules.judge(wake, "modules.wake", "heartbeat")).level is Level.NOTE


def test_what_decides_is_said():
    wake = {"policies": [AMBIENT, RULE]}
    assert '"discord-ambient" decides' in wake_rules.deciding_rule(wake, "heartbeat")
    assert "the default, always" in wake_rules.deciding_rule({"policies": []}, "heartbeat")
    assert "no wake rules" in wake_rules.deciding_rule(True, "heartbeat")


def test_the_servers_id_is_the_source():
    finding = judged(framework(id="hb"))
    assert [f.id for f in finding] == ["server-id", "wake-policy"]
    assert "this server's id is hb" in finding[1].text


def test_a_file_without_modules_says_that_they_were_not_looked_at():
    config = framework()
    del config["modules"]
    assert "was not checked" in only(judged(config)).text


def test_the_bridges_own_rules():
    assert judged(bridge(wake="chat")) == judged(bridge(wake="all")) == []
    held = judged(bridge(wake={"hold": [["heartbeat:tick"], ["chat:ambient"]]}))
    assert "holds heartbeats back" in only(held).text
    wake = {"wake": [["heartbeat:tick"]], "hold": [["heartbeat:tick"]]}
    assert judged(bridge(wake=wake)) == []


LEAVES = st.none() | st.booleans() | st.integers() | st.sampled_from(
    ["always", "skip", "mcpl:push-event", "heartbeat", "*", "x"]
)  # fmt: skip
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["policies", "name", "match", "behavior", "scope", "source", "filter", "debounce",
                 "tagsAny", "passive_sample", "default", "passthrough"]
            ),
            inner,
        )
    ),
    max_leaves=20,
)  # fmt: skip


@given(VALUES, st.lists(VALUES, max_size=4))
def test_whatever_stands_there_is_judged(wake, policies):
    for value in (wake, {"policies": policies}, {"policies": [{"name": "x", "match": wake}]}):
        findings = wake_rules.judge(value, "w", "heartbeat")
        assert len(wake_rules.judge(value, "w", "hb", renamed=True)) == len(
            wake_rules.judge(value, "w", "hb")
        )
        wake_rules.bound_to(value, "hb")
        if not any(finding.level is Level.ERROR for finding in findings):
            wake_rules.deciding_rule(value, "heartbeat")
        json.dumps([finding.text for finding in findings])
