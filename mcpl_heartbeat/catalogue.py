"""The tools of the wings that stand on the shared store, as every door has them."""

from mcpl_heartbeat.tasks import texts as tasks_texts
from mcpl_heartbeat.tasks import tools as tasks
from mcpl_heartbeat.watch import texts as watch_texts
from mcpl_heartbeat.watch import tools as watch
from mcpl_heartbeat.watch.failures import Failure
from mcpl_heartbeat.watch.results import Result

TOOLS = watch.TOOLS + tasks.TOOLS
BY_NAME = {tool.name: tool for tool in TOOLS}

READS = watch.READS | tasks.READS
"""The tools that only read."""
REQUIRES_SECRET = watch.REQUIRES_SECRET | frozenset(tasks.BY_NAME)
"""The tools that need to know who is asking."""


def text_of(tool: str, result: Result | Failure) -> str:
    """Word what a call of ``tool`` came to."""
    if tool in tasks.BY_NAME:
        return tasks_texts.text_of(tool, result)
    return watch_texts.text_of(tool, result)
