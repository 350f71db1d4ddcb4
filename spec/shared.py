"""What the messages of ``pushes.py`` and ``messages.py`` are made of.

The server builds pushes, the manifest and ``initialize``'s result as plain data and reads what a
host sends member by member, so that each fault can be named. Their shapes are written out here;
``tests/spec`` holds them against what a session really says.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import Meta

Yes = Annotated[bool, Meta(extra_json_schema={"const": True})]
NotBlank = Annotated[str, Meta(pattern=r"\S")]
Utc = Annotated[str, Meta(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")]


class Sent(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """What the server sends: no other members."""


class Read(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What the host sends: other members are passed over."""


class Text(Sent, frozen=True):
    """A content block."""

    type: Literal["text"]
    text: NotBlank
