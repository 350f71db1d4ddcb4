"""The vocabulary and its patterns (MCPL §5.4, §6.2, §6.3)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpl_heartbeat.policy.paths import VOCABULARY, covers, expand, names_feature_set

SEGMENTS = st.lists(st.sampled_from(["a", "b", "*", "channels", "tools", ""]), min_size=1)
ANY_PATTERN = st.one_of(
    st.text(max_size=12),
    SEGMENTS.map(".".join),
    st.sampled_from(sorted(VOCABULARY)),
)


@pytest.mark.requirement("policy.vocabulary")
def test_the_vocabulary_is_the_17_paths_and_the_two_that_newer_hosts_know() -> None:
    assert len(VOCABULARY) == 19
    assert {p for p in VOCABULARY if p.startswith("toolLifecycle.")} == {
        "toolLifecycle.observe",
        "toolLifecycle.inputs",
    }


@pytest.mark.requirement("policy.patterns", "host.11")
@pytest.mark.parametrize(
    ("pattern", "paths"),
    [
        ("*", {"pushEvents", "tools", "modelInfo", "inferenceRequest", "inferenceLifecycle"}),
        (
            "channels.*",
            {
                "channels.register",
                "channels.lifecycle",
                "channels.publish",
                "channels.incoming",
                "channels.streaming",
                "channels.acknowledge",
                "channels.typing",
            },
        ),
        ("contextHooks.*", set()),
        ("contextHooks.*.observe", {"contextHooks.beforeInference.observe"}),
        ("*.beforeInference.inject.system", {"contextHooks.beforeInference.inject.system"}),
        ("channels", set()),
        ("contextHooks.beforeInference", set()),
        ("channels.publish.*", set()),
        ("chan*.publish", set()),
        ("push*", set()),
        ("*.*.*.*.*.*", set()),
        ("PushEvents", set()),
        ("pushEvents ", set()),
        ("", set()),
        ("pushEvents", {"pushEvents"}),
    ],
)
def test_a_pattern_stands_for_these_paths(pattern: str, paths: set[str]) -> None:
    assert expand([pattern]) == paths


@pytest.mark.requirement("policy.patterns")
@given(pattern=ANY_PATTERN, path=st.sampled_from(sorted(VOCABULARY)))
def test_a_pattern_covers_a_path_only_segment_by_segment(pattern: str, path: str) -> None:
    wanted, segments = pattern.split("."), path.split(".")
    if len(wanted) != len(segments):
        expected = False
    else:
        expected = True
        for i in range(len(wanted)):
            if wanted[i] != "*" and wanted[i] != segments[i]:
                expected = False
    assert covers(pattern, path) is expected


@pytest.mark.requirement("policy.patterns", "policy.vocabulary")
@given(st.lists(ANY_PATTERN))
def test_a_list_expands_to_what_its_patterns_cover_and_nothing_else(patterns: list[str]) -> None:
    assert expand(patterns) == {p for p in VOCABULARY if any(covers(q, p) for q in patterns)}


@pytest.mark.requirement("policy.patterns")
@given(ANY_PATTERN, st.lists(ANY_PATTERN))
def test_more_patterns_never_stand_for_fewer_paths(one: str, others: list[str]) -> None:
    assert expand(others) <= expand([one, *others])


@pytest.mark.requirement("policy.enabled", "policy.disabled", "host.11")
@pytest.mark.parametrize(
    ("pattern", "name", "means_it"),
    [
        ("heartbeat", "heartbeat", True),
        ("heart", "heartbeat", False),
        ("heart*", "heartbeat", False),
        ("*", "heartbeat", True),
        ("*", "memory.retrieval", False),
        ("heartbeat.*", "heartbeat", False),
        ("memory.*", "memory.retrieval", True),
        ("memory.*", "memory.retrieval.fast", True),
        ("memory.*", "memories.retrieval", False),
        ("memory.*.fast", "memory.retrieval.fast", True),
        ("memory.*.fast", "memory.a.b.fast", False),
        ("*.retrieval", "memory.retrieval", True),
        ("*.*", "memory.retrieval", True),
        ("*.*", "heartbeat", False),
        ("", "heartbeat", False),
    ],
)
def test_an_entry_means_a_feature_set(pattern: str, name: str, means_it: bool) -> None:
    assert names_feature_set(pattern, name) is means_it
