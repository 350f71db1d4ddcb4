"""The model's mail."""

from typing import Any

from tests.watch_histories.facts import Disagrees, Ground, Mail, Told, expect, freed, instant


class Post(Ground):
    """Envelopes, in the order in which they were laid into boxes."""

    def __init__(self, real: int) -> None:
        super().__init__(real)
        self.mail: list[Mail] = []

    def put(self, owner: int, box: str, **more: Any) -> Mail:
        """Lay an envelope into a box."""
        due = more.pop("due", self.real)
        envelope = Mail(owner, box, due, due, len(self.mail), **more)
        self.mail.append(envelope)
        return envelope

    def send(self, args: Told, told: Told, due: int) -> None:
        """Mail to an address."""
        place = self.owner(args["to"])
        if place is None:
            expect("refusal", told.get("code"), "not_registered")
            return
        expect("queued", told["queued"], True)
        self.put(
            *place,
            due=max(due, self.real),
            objective=args["objective"],
            scope=args.get("scope"),
            task_id=told["task_id"],
        )

    def waiting(self, who: int, box: str | None = None) -> list[Mail]:
        """What a poll could be given now, in order."""
        found = [
            mail
            for mail in self.mail
            if mail.owner == who
            and (box is None or mail.box == box)
            and mail.state == "pending"
            and max(mail.visible, mail.due) <= self.real
        ]
        return sorted(found, key=lambda mail: (mail.of is None, mail.due, mail.order))

    def poll(self, who: int, args: Told, told: Told) -> None:
        """The next envelope, hidden from then on."""
        waiting = self.waiting(who, args["box"])
        expect("waiting", told["waiting"], max(0, len(waiting) - 1))
        view = told["envelope"]
        if not waiting:
            expect("envelope", view, None)
            return
        if view is None:
            raise Disagrees(f"no envelope, though {waiting[0]} waits")
        mail = waiting[0]
        if mail.of is not None:
            # Those that came at one instant have no order that anybody could know.
            same = [m for m in waiting if m.of is not None and m.due == mail.due]
            mail = next((m for m in same if self.is_of(m, view)), mail)
            self.expect_alert(mail, view)
        else:
            expect("task_id", view["task_id"], mail.task_id)
            expect("kind", view["kind"], "message")
            expect("objective", view["objective"], mail.objective)
        expect("task_id of an envelope", view["task_id"], mail.task_id or view["task_id"])
        mail.task_id = view["task_id"]
        mail.attempts += 1
        expect("attempts", view["attempts"], mail.attempts)
        if view["delivery_token"] == mail.token:
            raise Disagrees("the delivery token of the time before")
        mail.token = view["delivery_token"]
        mail.visible = self.real + args["visibility_timeout_seconds"] * 1000
        expect("visible again", instant(view["visible_again_at"]), self.told(mail.visible))

    def is_of(self, mail: Mail, view: Told) -> bool:
        """Whether an alert's envelope could be this one."""
        if mail.task_id is not None:
            return bool(mail.task_id == view["task_id"])
        assert mail.of is not None
        sender, death = mail.of
        named = (self.addresses[sender].removeprefix("agent:"), death.scope, death.generation)
        sent_by = (view["sender"] or "").removeprefix("agent:")
        return (sent_by, view.get("scope"), view.get("generation")) == named

    def expect_alert(self, mail: Mail, view: Told) -> None:
        """An alert says who died, when, what was freed, and whether that is over."""
        assert mail.of is not None
        _, death = mail.of
        expect("kind", view["kind"], "alert")
        expect("scope and generation", self.is_of(mail, view), True)
        expect("deadline", instant(view["deadline"]), death.deadline)
        expect("noticed_at", instant(view["noticed_at"]), death.noticed)
        expect("last_beat_at", instant(view["last_beat_at"]), death.last_beat)
        expect("on_expiry", tuple(view["on_expiry"]), death.actions)
        expect("released", freed(view["released"]), death.released)
        expect("marked_failed", view["marked_failed"], "mark_failed" in death.actions)
        if "release_leases" in death.actions:
            expect("unreachable", view["unreachable"], death.unreachable)
        expect("resolution", view.get("resolution"), death.resolution)
        expect("resolved", view.get("resolved_at") is not None, death.resolution is not None)

    def of_task(self, who: int, task_id: str) -> Mail | None:
        """One's own envelope of that id."""
        mine = (mail for mail in self.mail if mail.owner == who and mail.task_id == task_id)
        return next(mine, None)

    def ack(self, who: int, args: Told, told: Told) -> None:
        """Dealt with, unless the token shows that it was handed out again since."""
        mail = self.of_task(who, args["task_id"])
        if mail is None:
            expect("acked", (told["acked"], told["reason"]), (False, "unknown_task"))
        elif mail.state != "pending":
            if "delivery_token" not in args:
                expect("acked again", told["acked"], True)
        elif args.get("delivery_token", mail.token) != mail.token:
            expect("acked", (told["acked"], told["reason"]), (False, "lost_delivery"))
        else:
            expect("acked", told["acked"], True)
            mail.state = args.get("status", "done")

    def nack(self, who: int, args: Told, told: Told) -> None:
        """Given back."""
        mail = self.of_task(who, args["task_id"])
        if mail is None:
            expect("nacked", (told["nacked"], told["reason"]), (False, "unknown_task"))
        elif mail.state != "pending":
            expect("nacked", told["nacked"], False)
        elif args.get("delivery_token", mail.token) != mail.token:
            expect("nacked", (told["nacked"], told["reason"]), (False, "lost_delivery"))
        else:
            expect("nacked", told["nacked"], True)
            mail.visible = self.real + args["delay_seconds"] * 1000
            again = self.told(max(mail.visible, mail.due))
            expect("visible again", instant(told["visible_again_at"]), again)
