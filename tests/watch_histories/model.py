"""A small model of the watch wing, written from its rules alone and kept in plain memory.

It judges rather than predicts: each method is given a call and what the store told, works out what
the rules say, and raises ``Disagrees`` when the two differ. Only what nobody can foresee (fences,
ids, tokens) is learned from what was told. Times are milliseconds; ``watched`` stands still in a
gap.
"""

from tests.watch_histories.facts import (
    DEFAULT,
    Arming,
    Death,
    Disagrees,
    Lock,
    Told,
    expect,
    freed,
    instant,
)
from tests.watch_histories.post import Post

ORDER = ("release_leases", "mark_failed", "queue_alert")
GRACE = 60_000


class Model(Post):
    """Several agents on one store, with their switches, leases and checkpoints."""

    def __init__(self, real: int) -> None:
        super().__init__(real)
        self.switches: dict[tuple[int, str], Arming] = {}
        self.locks: dict[tuple[int, str], Lock] = {}
        self.checkpoints: dict[tuple[int, str], tuple[int, str, str]] = {}

    def gap(self, began: int, ended: int) -> None:
        """The store noted that nobody watched: check that it is so, and hold deadlines back."""
        if not self.watched_until - 2_600 <= began <= self.watched_until:
            raise Disagrees(f"a gap from {began}, though watched until {self.watched_until}")
        expect("end of a gap", ended, self.real)
        if self.gaps:
            expect("gaps in order", self.gaps[-1][1] <= began, True)
        self.gaps.append((began, ended))
        now = self.watched
        for switch in self.switches.values():
            least = now + min(switch.window, GRACE)
            if switch.state == "armed" and now < switch.deadline < least:
                switch.deadline = least
        for lock in self.locks.values():
            least = now + min(lock.ttl, GRACE)
            if lock.held and now < lock.expires < least:
                lock.expires = least

    def attended(self, limit: int) -> None:
        """A server works now; it must have noted a gap if nobody had for over ``limit`` ms."""
        since = max([self.watched_until, *(ended for _, ended in self.gaps)])
        if self.real - since > limit:
            raise Disagrees(f"nobody watched from {since} to {self.real}, and no gap was noted")
        self.watched_until = self.real

    # Switches

    def switch(self, who: int, scope: str) -> Arming:
        """The switch of a scope, settled."""
        found = self.switches.get((who, scope), Arming())
        if found.state == "armed" and found.deadline <= self.watched:
            self.fire(who, scope)
        return found

    def due(self) -> list[tuple[int, str]]:
        """Whose deadline has come, the oldest first."""
        late = [
            (switch.deadline, key)
            for key, switch in self.switches.items()
            if switch.state == "armed" and switch.deadline <= self.watched
        ]
        return [key for _, key in sorted(late)]

    def fire(self, who: int, scope: str) -> None:
        """What a missed beat does, all of it at once."""
        switch = self.switches[who, scope]
        held = [
            (key, lock)
            for (owner, key), lock in self.locks.items()
            if owner == who and self.is_held(lock)
        ]
        released = []
        if "release_leases" in switch.actions:
            for key, lock in held:
                if lock.scope == scope:
                    lock.held = False
                    released.append((key, lock.holder, lock.generation))
        death = Death(
            scope=scope,
            generation=switch.generation,
            deadline=self.told(self.real_of(switch.deadline)),
            noticed=self.told(self.real),
            last_beat=self.told(switch.beat_at),
            actions=switch.actions,
            released=frozenset(released),
            unreachable=sum(lock.scope is None for _, lock in held),
        )
        switch.deaths.append(death)
        switch.state = "fired"
        switch.fires += 1
        switch.fired_generation = switch.generation
        switch.failed = "mark_failed" in switch.actions
        if "queue_alert" in switch.actions and switch.notify is not None:
            owner, box = switch.notify
            self.put(owner, box, of=(who, death), scope=scope)

    def swept(self, fired: int) -> None:
        """A sweep without a bound that matters fires all that is due."""
        due = self.due()
        for who, scope in due:
            self.fire(who, scope)
        expect("fired by the sweep", fired, len(due))

    def heartbeat(self, who: int, args: Told, told: Told) -> None:
        """A beat, or a disarm."""
        scope = args["scope"]
        switch = self.switch(who, scope)
        found_fired = switch.state == "fired"
        if args.get("disarm"):
            self.disarm(switch, found_fired)
        elif not self.beat(who, switch, args, told):
            return
        if switch.generation:
            self.switches[who, scope] = switch
        expect("state", told["state"], switch.state)
        expect("generation", told["generation"], switch.generation)
        expect("fired", told["fired"], found_fired)
        expect("fired_generation", told["fired_generation"], switch.fired_generation)
        expect("failed", told["failed"], switch.failed)
        expect("server_time", instant(told["server_time"]), self.told(self.real))
        if switch.state == "armed":
            self.expect_armed(switch, told)
            expect("seconds left", told["seconds_left"], switch.window / 1000)

    def disarm(self, switch: Arming, found_fired: bool) -> None:
        """Stop; what was fired stays in history, and its alert is resolved."""
        if switch.state in ("armed", "fired"):
            switch.state = "disarmed"
        if found_fired:
            switch.deaths[-1].resolution = "disarmed"

    def beat(self, who: int, switch: Arming, args: Told, told: Told) -> bool:
        """Arm, again or anew; whether it was taken."""
        kept = switch.state == "armed"
        sent = args.get("on_expiry")
        actions = tuple(name for name in ORDER if name in sent) if sent else None
        notify = args.get("notify_address")
        effective = actions or (switch.actions if kept else DEFAULT)
        wrong = set()
        if notify is not None and "queue_alert" not in effective:
            wrong.add("invalid_arguments")
        if notify is not None and self.owner(notify) is None:
            wrong.add("not_registered")
        if wrong:
            expect("refusal", told.get("code") in wrong, True)
            return False
        expect("no refusal", told.get("code"), None)
        if not kept:
            switch.generation += 1
            switch.beats, switch.nudge, switch.label, switch.notify = 0, None, None, None
            if switch.deaths and switch.deaths[-1].recovered is None:
                switch.deaths[-1].recovered = self.told(self.real)
                switch.deaths[-1].resolution = switch.deaths[-1].resolution or "recovered"
        switch.state = "armed"
        switch.actions = effective
        if notify is not None or actions is not None:
            switch.notify = self.owner(notify) if notify is not None else None
        switch.window = args["expect_within_seconds"] * 1000
        switch.deadline = self.watched + switch.window
        switch.beat_at = self.real
        switch.beats += 1
        switch.label = args.get("agent_id", switch.label)
        nudge = args.get("nudge_seconds", switch.nudge)
        switch.nudge = nudge if nudge is not None and nudge * 1000 < switch.window else None
        return True

    def expect_armed(self, switch: Arming, told: Told) -> None:
        """What is told of an armed switch, here and in ``switch_status``."""
        end = self.told(self.real_of(switch.deadline))
        expect("deadline", instant(told["deadline"]), end)
        expect("window", told["expect_within_seconds"], switch.window // 1000)
        expect("on_expiry", tuple(told["on_expiry"]), switch.actions)
        expect("notify", self.owner(told["notify_address"]), switch.notify)
        expect("nudge", told["nudge_seconds"], switch.nudge)

    def status(self, who: int, told: Told) -> None:
        """The list of all switches, none of which may be late and not fired."""
        for owner, scope in self.due():
            if owner == who:
                self.fire(owner, scope)
        mine = {scope: switch for (owner, scope), switch in self.switches.items() if owner == who}
        expect("scopes", [view["scope"] for view in told["switches"]], sorted(mine))
        expect("total", told["total"], len(mine))
        for view in told["switches"]:
            switch = mine[view["scope"]]
            for name, rule in (
                ("state", switch.state),
                ("generation", switch.generation),
                ("fires", switch.fires),
                ("fired_generation", switch.fired_generation),
                ("failed", switch.failed),
                ("beats", switch.beats),
            ):
                expect(f"{name} of {view['scope']}", view[name], rule)
            if switch.state == "armed":
                self.expect_armed(switch, view)
                left = (switch.deadline - self.watched) / 1000
                expect("seconds left", view["seconds_left"], left)

    # Leases

    def is_held(self, lock: Lock) -> bool:
        """Whether somebody holds it now."""
        return lock.held and lock.expires > self.watched

    def lock(self, who: int, key: str) -> Lock:
        """The lease of a name; a switch that is due has freed it before anybody looks."""
        lock = self.locks.get((who, key), Lock())
        if lock.scope is not None:
            self.switch(who, lock.scope)
        return lock

    def lease(self, who: int, args: Told, told: Told) -> None:
        """Take a lock, or with its fence hold it for longer."""
        if args.get("scope") is not None:
            self.switch(who, args["scope"])
        lock = self.lock(who, args["key"])
        if self.is_held(lock) and args.get("fence") != lock.fence:
            expect("acquired", told["acquired"], False)
            expect("reason", told["reason"], "held")
            expect("holder", told["holder"], lock.holder)
            end = self.told(self.real_of(lock.expires))
            expect("expires_at", instant(told["expires_at"]), end)
            expect("fence of another", told.get("fence"), None)
            return
        expect("acquired", told["acquired"], True)
        renewed = self.is_held(lock)
        if not renewed:
            if told["fence"] == lock.fence:
                raise Disagrees("a new acquisition with the fence of the one before")
            lock = Lock(generation=lock.generation + 1, fence=told["fence"], held=True)
            self.locks[who, args["key"]] = lock
        lock.holder = args["holder"]
        lock.scope = args.get("scope", lock.scope)
        lock.ttl = args["ttl_seconds"] * 1000
        lock.expires = self.watched + lock.ttl
        expect("renewed", told["renewed"], renewed)
        self.expect_held(lock, told)

    def expect_held(self, lock: Lock, told: Told) -> None:
        """What a holder is told."""
        expect("fence", told["fence"], lock.fence)
        expect("generation", told["generation"], lock.generation)
        end = self.told(self.real_of(lock.expires))
        expect("expires_at", instant(told["expires_at"]), end)

    def renew(self, who: int, args: Told, told: Told) -> None:
        """Hold it for longer, which only its holder can."""
        lock = self.lock(who, args["key"])
        if self.is_held(lock) and args["fence"] == lock.fence:
            lock.ttl = args["ttl_seconds"] * 1000
            lock.expires = self.watched + lock.ttl
            expect("renewed", told["renewed"], True)
            self.expect_held(lock, told)
            return
        expect("renewed", told["renewed"], False)
        self.expect_reason(lock, args, told)

    def release(self, who: int, args: Told, told: Told) -> None:
        """Let it go, which only its holder can."""
        lock = self.lock(who, args["key"])
        if self.is_held(lock) and args["fence"] == lock.fence:
            lock.held = False
            expect("released", told["released"], True)
            return
        expect("released", told["released"], False)
        self.expect_reason(lock, args, told)

    def expect_reason(self, lock: Lock, args: Told, told: Told) -> None:
        """``expired`` for one's own lease that lapsed; ``not_holder`` for another's."""
        if lock.held and args["fence"] == lock.fence:
            expect("reason", told["reason"], "expired")
        elif self.is_held(lock):
            expect("reason", told["reason"], "not_holder")
        else:
            expect("a reason", told["reason"] in ("expired", "not_holder"), True)

    # What is told of all this

    def checkpoint(self, who: int, args: Told, told: Told) -> None:
        """The last one counts."""
        scope = args["scope"]
        self.switch(who, scope)
        version = self.checkpoints.get((who, scope), (0, "", ""))[0] + 1
        self.checkpoints[who, scope] = (version, args["objective"], args["next_action"])
        expect("saved", (told["saved"], told["version"]), (True, version))

    def whoami(self, who: int, told: Told) -> None:
        """Counts."""
        pending = [mail for mail in self.mail if mail.owner == who and mail.state == "pending"]
        failed = [mail for mail in self.mail if mail.owner == who and mail.state == "failed"]
        held = [lock for (owner, _), lock in self.locks.items() if owner == who]
        expect("address", told["address"], self.addresses[who])
        expect("total", told["total"], len(pending))
        expect("due", told["due"], len(self.waiting(who)))
        expect("dead_lettered", told["dead_lettered"], len(failed))
        expect("leases", told["leases"], sum(map(self.is_held, held)))

    def resume(self, who: int, args: Told, told: Told) -> None:
        """The briefing."""
        scope = args["scope"]
        switch = self.switch(who, scope)
        checkpoint = self.checkpoints.get((who, scope))
        last = switch.deaths[-1] if switch.deaths else None
        over = last is not None and last.recovered is not None
        marked = last is not None and "mark_failed" in last.actions
        expect("failed", told["failed"], marked and not over)
        expect("recovered", told["recovered"], over)
        expect("objective", told["objective"], checkpoint[1] if checkpoint else None)
        expect("next_action", told["next_action"], checkpoint[2] if checkpoint else None)
        deaths = sorted(told["deaths"], key=lambda death: death["generation"])
        expect("deaths", [d["generation"] for d in deaths], [d.generation for d in switch.deaths])
        for view, death in zip(deaths, switch.deaths, strict=True):
            expect("deadline of a death", instant(view["deadline"]), death.deadline)
            expect("noticed_at of a death", instant(view["noticed_at"]), death.noticed)
            expect("released at a death", freed(view["released"]), death.released)
            expect("mark of a death", view["marked_failed"], "mark_failed" in death.actions)
            expect("recovered", view["recovered_at"] is None, death.recovered is None)
        held = {
            (key, lock.holder, lock.generation)
            for (owner, key), lock in self.locks.items()
            if owner == who and lock.scope == scope and self.is_held(lock)
        }
        expect("leases", freed(told["leases"]), held)
        here = [m for m in self.mail if (m.owner, m.box, m.scope) == (who, args["box"], scope)]
        known = {mail.task_id for mail in here if mail.state == "pending"}
        if None not in known:
            arrived = {view["task_id"] for view in told["arrivals"]}
            expect("arrivals that do not wait", arrived - known, set())
        nothing = not (switch.generation or checkpoint or held or told["arrivals"])
        if not nothing:
            expect("empty", told["empty"], False)
