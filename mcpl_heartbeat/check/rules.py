"""Everything that can be wrong in a config before anything is started. Pure."""

from mcpl_heartbeat.check import grants, launch, store_rules
from mcpl_heartbeat.check.case import Case
from mcpl_heartbeat.check.findings import Finding, error


def judge(case: Case) -> list[Finding]:
    """Give everything that is wrong in the entry."""
    rules = (*launch.RULES, *store_rules.RULES, *grants.RULES)
    return [finding for rule in rules for finding in rule(case)]


def judge_together(cases: list[Case]) -> list[Finding]:
    """Find servers of one config that would work on the same file."""
    users: dict[str, list[str]] = {}
    for case in cases:
        for fact in case.facts.files.values():
            users.setdefault(fact.real, []).append(case.entry.id)
    found = []
    for path, ids in users.items():
        if len(set(ids)) > 1:
            names = " and ".join(dict.fromkeys(ids))
            found.append(
                error(
                    "shared-file",
                    names,
                    f"They work on one file, {path}; only one of them wakes.",
                    "Give each server files of its own.",
                )
            )
    return found
