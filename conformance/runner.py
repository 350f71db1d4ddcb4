"""Replays many transcripts, several side by side; whatever one of them meets is its own affair."""

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed

from conformance import steps
from conformance.outcome import Failure, Outcome, of_rules
from conformance.player import replay
from conformance.real import RealStage
from conformance.stage import Stage
from conformance.transcripts import Transcript

SIDE_BY_SIDE = 8

OpenStage = Callable[[Transcript], Stage]


def replay_one(transcript: Transcript, clock: str, open_stage: OpenStage) -> Outcome:
    """Replay one transcript; what breaks the suite itself is a failure of this one, too."""
    began = time.monotonic()
    try:
        return replay(transcript, clock, open_stage, steps.carry_out)
    except Exception as error:  # the others are still worth their run
        why = f"the suite itself failed: {type(error).__name__}: {error}"
        first = transcript.steps[0] if transcript.steps else None
        return Outcome(
            name=transcript.name,
            title=transcript.title,
            host=transcript.host,
            clock=clock,
            seconds=time.monotonic() - began,
            rules=of_rules(transcript, first),
            failure=Failure(1, "", why),
        )


def replay_real(
    transcripts: Sequence[Transcript], command: Sequence[str], side_by_side: int = SIDE_BY_SIDE
) -> Iterator[Outcome]:
    """Replay against processes of ``command``, yielding each outcome as it comes."""

    def open_stage(transcript: Transcript) -> Stage:
        return RealStage(command, transcript.file_size)

    with ThreadPoolExecutor(side_by_side) as pool:
        futures = [pool.submit(replay_one, each, "real", open_stage) for each in transcripts]
        for future in as_completed(futures):
            yield future.result()


def replay_virtual(transcripts: Sequence[Transcript]) -> Iterator[Outcome]:
    """Replay in process, against this checkout's own session."""
    from conformance.virtual import VirtualStage  # noqa: PLC0415  (a server of their own needs none)

    for transcript in transcripts:
        yield replay_one(transcript, "virtual", lambda each: VirtualStage(each.now))
