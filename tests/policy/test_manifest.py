"""The manifest and its revision (MCPL §5.1, §6.1, §17)."""

import base64
import hashlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mcpl_heartbeat.policy.manifest import (
    HEARTBEAT,
    FeatureSet,
    ManifestError,
    manifest,
    revision,
    wants_array,
)

PUBLISHED = {
    "version": "0.5",
    "pushEvents": True,
    "contextHooks": {"beforeInference": True},
    "inferenceLifecycle": True,
    "channels": {"register": True, "publish": True, "incoming": True},
    "featureSets": {
        "demo.messaging": {
            "description": "Demo",
            "uses": ["channels.publish", "channels.incoming", "pushEvents", "tools"],
        }
    },
}
PUBLISHED_REVISION = "sha256:_YZTS0h1tqTAMZI6eElCszSQE2WNx3xhAhmgUvNI9H4"


def digest(text: str) -> str:
    """The revision of a manifest whose canonical form is written out by hand."""
    raw = base64.urlsafe_b64encode(hashlib.sha256(text.encode()).digest())
    return "sha256:" + raw.decode().rstrip("=")


@pytest.mark.requirement("policy.manifest")
def test_the_manifest_names_the_version_the_capability_and_the_set() -> None:
    built = manifest((HEARTBEAT,))
    assert built["version"] == "0.5"
    assert built["pushEvents"] is True
    assert built["featureSets"]["heartbeat"]["uses"] == ["pushEvents", "tools"]
    assert built["featureSets"]["heartbeat"]["description"]
    assert set(built) == {"version", "pushEvents", "featureSets", "revision"}


@pytest.mark.requirement("policy.manifest-array", "host.6")
def test_the_array_form_holds_the_same_sets_with_their_names() -> None:
    as_object, as_array = manifest((HEARTBEAT,)), manifest((HEARTBEAT,), as_array=True)
    assert as_array["featureSets"] == [
        {"name": "heartbeat", **as_object["featureSets"]["heartbeat"]}
    ]
    assert as_array["revision"] == revision(as_array) != as_object["revision"]


@pytest.mark.requirement("policy.manifest-array", "host.6")
@pytest.mark.parametrize(
    ("client", "array"),
    [
        ("mcpl-harness", True),
        ("mcpl-harness-web", True),
        ("agent-framework", False),
        ("mcpl-cc-bridge", False),
        ("my-mcpl-harness", False),
        ("", False),
    ],
)
def test_only_the_harness_reads_an_array(client: str, array: bool) -> None:
    assert wants_array(client) is array


@pytest.mark.requirement("policy.manifest-method")
def test_the_manifest_is_the_same_object_each_time() -> None:
    assert manifest((HEARTBEAT,)) is manifest((HEARTBEAT,))


@pytest.mark.requirement("policy.manifest")
def test_capability_paths_are_nested() -> None:
    built = manifest((HEARTBEAT,), ("pushEvents", "channels.publish", "channels.typing"))
    assert built["channels"] == {"publish": True, "typing": True}


@pytest.mark.requirement("policy.revision")
def test_the_published_check_value_holds() -> None:
    assert revision(PUBLISHED) == PUBLISHED_REVISION


@pytest.mark.requirement("policy.revision")
def test_only_the_root_revision_is_left_out() -> None:
    assert revision({**PUBLISHED, "revision": "sha256:x"}) == PUBLISHED_REVISION
    nested = {"version": "0.5", "featureSets": {"a": {"revision": "r"}}}
    assert revision(nested) == digest('{"featureSets":{"a":{"revision":"r"}},"version":"0.5"}')


@pytest.mark.requirement("policy.revision")
@pytest.mark.parametrize(
    ("given_manifest", "canonical"),
    [
        # The three sets: sorted, doubles removed.
        (
            {"featureSets": {"a": {"uses": ["b", "a", "b"]}}},
            '{"featureSets":{"a":{"uses":["a","b"]}}}',
        ),
        (
            {"featureSets": {"a": {"tagOntology": {"coreTags": ["x:b", "x:a"]}}}},
            '{"featureSets":{"a":{"tagOntology":{"coreTags":["x:a","x:b"]}}}}',
        ),
        (
            {"featureSets": {"a": {"tagOntology": {"tags": {"t": {"implies": ["b", "a"]}}}}}},
            '{"featureSets":{"a":{"tagOntology":{"tags":{"t":{"implies":["a","b"]}}}}}}',
        ),
        # Everything else is hashed as it stands.
        (
            {"featureSets": {"a": {"uses": ["b", 1, "a"]}}},
            '{"featureSets":{"a":{"uses":["b",1,"a"]}}}',
        ),
        ({"featureSets": {"a": {"uses": "tools"}}}, '{"featureSets":{"a":{"uses":"tools"}}}'),
        (
            {"featureSets": [{"name": "a", "uses": ["b", "a"]}]},
            '{"featureSets":[{"name":"a","uses":["b","a"]}]}',
        ),
        ({"featureSets": {"a": ["b", "a"]}}, '{"featureSets":{"a":["b","a"]}}'),
        ({"featureSets": True}, '{"featureSets":true}'),
        ({"uses": ["b", "a"]}, '{"uses":["b","a"]}'),
        (
            {"featureSets": {"a": {"tagOntology": {"keyed": {"k": {"values": ["b", "a"]}}}}}},
            '{"featureSets":{"a":{"tagOntology":{"keyed":{"k":{"values":["b","a"]}}}}}}',
        ),
        (
            {
                "featureSets": {
                    "a": {"tagOntology": {"suggestedTreatment": [{"tagsAny": ["b", "a"]}]}}
                }
            },
            '{"featureSets":{"a":{"tagOntology":{"suggestedTreatment":[{"tagsAny":["b","a"]}]}}}}',
        ),
        (
            {"featureSets": {"a": {"tagOntology": {"tags": {"t": 1}, "keyed": 2}}}},
            '{"featureSets":{"a":{"tagOntology":{"keyed":2,"tags":{"t":1}}}}}',
        ),
        ({"featureSets": {"a": {"tagOntology": 5}}}, '{"featureSets":{"a":{"tagOntology":5}}}'),
        # Integers past 2^53-1 are the doubles that JavaScript reads them as.
        ({"x": 2**53 - 1}, '{"x":9007199254740991}'),
        ({"x": 2**53 + 1}, '{"x":9007199254740992}'),
        ({"x": [10**22, -(2**60)]}, '{"x":[1e+22,-1152921504606847000]}'),
        # Free text is no identifier.
        (
            {"featureSets": {"a": {"description": "žluť\u2028"}}},
            '{"featureSets":{"a":{"description":"žluť\u2028"}}}',
        ),
    ],
)
def test_this_is_what_gets_hashed(given_manifest: dict[str, Any], canonical: str) -> None:
    before = json.dumps(given_manifest)
    assert revision(given_manifest) == digest(canonical)
    assert json.dumps(given_manifest) == before


@pytest.mark.requirement("policy.revision-charset")
@pytest.mark.parametrize(
    "bad",
    [
        {"push Events": True},
        {"channels": {"publiſh": True}},
        {"featureSets": {"é": {}}},
        {"featureSets": {"": {}}},
        {"featureSets": {"a": {"uses": ["tools/x"]}}},
        {"featureSets": {"a": {"uses": ["tools\n"]}}},
        {"featureSets": {"a": {"tagOntology": {"coreTags": ["a b"]}}}},
        {"featureSets": {"a": {"tagOntology": {"tags": {"a b": {}}}}}},
        {"featureSets": {"a": {"tagOntology": {"tags": {"t": {"implies": ["a b"]}}}}}},
        {"featureSets": {"a": {"tagOntology": {"keyed": {"a b": {}}}}}},
        {"featureSets": {"a": {"tagOntology": {"keyed": {"k": {"values": ["a b"]}}}}}},
        {"featureSets": {"a": {"tagOntology": {"suggestedTreatment": [{"tagsAll": ["a b"]}]}}}},
    ],
)
def test_a_name_outside_the_charset_has_no_revision(bad: dict[str, Any]) -> None:
    with pytest.raises(ManifestError) as caught:
        revision(bad)
    assert caught.value.rule == "identifier_charset"


@pytest.mark.requirement("policy.revision-charset")
@pytest.mark.parametrize("bad", [{"x": float("nan")}, {"x": 10**400}, {"x": object()}])
def test_what_no_json_can_hold_is_refused_under_another_rule(bad: dict[str, Any]) -> None:
    with pytest.raises(ManifestError) as caught:
        revision(bad)
    assert caught.value.rule == "not_json"


@pytest.mark.requirement("policy.revision-charset")
def test_a_set_with_an_impossible_name_cannot_be_declared() -> None:
    with pytest.raises(ManifestError):
        manifest((FeatureSet("heart beat", "", ("tools",)),))


TEXT = st.sampled_from(["", "a", "b.c", "x:*", "a b", "é", "\U0001f378", "\n"])
JSON: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(-1e300, 1e300) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)
DECLARATION = st.fixed_dictionaries(
    {}, optional={"uses": JSON, "tagOntology": JSON, "description": JSON}
)


@pytest.mark.requirement("policy.revision", "policy.revision-charset")
@given(
    st.fixed_dictionaries(
        {"version": st.just("0.5")},
        optional={
            "pushEvents": JSON,
            "featureSets": JSON | st.dictionaries(TEXT, DECLARATION, max_size=2),
        },
    )
)
def test_the_charset_is_the_only_rule_a_json_manifest_can_break(made: dict[str, Any]) -> None:
    try:
        first = revision(made)
    except ManifestError as error:
        assert error.rule == "identifier_charset"
    else:
        # The order of members is not part of the content.
        assert first == revision(dict(reversed(made.items())))
