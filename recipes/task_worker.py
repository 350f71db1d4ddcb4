"""A worker for the tasks of `mcpl-heartbeat serve`, with nothing but the standard library.

HEARTBEAT_URL says where the server is (default http://127.0.0.1:8765), HEARTBEAT_SECRET who asks.
Put your own work into `steps`. What it shows is the rest: a claim is yours until its lease ends or
the server answers 409; 409 means stop and discard; 503, or no answer, means wait and ask again.
"""

import argparse
import contextlib
import http.client
import json
import os
import random
import signal
import sys
import threading
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NoReturn

URL = os.environ.get("HEARTBEAT_URL", "http://127.0.0.1:8765").rstrip("/")
SECRET = os.environ.get("HEARTBEAT_SECRET", "")
TASKS = "/v1/agent-tasks"
PAUSE_S, MOST_S = 0.5, 5.0
"""The first wait after an answer that did not come, and the longest."""
Json = dict[str, Any]
CONTRACT = [{"key": "square", "dataType": "integer", "required": True}]


def steps(snapshot: Any, seconds: float) -> Iterator[Json | None]:
    """Do the work, a step at a time; the last one is the outputs. This squares a number."""
    for _ in range(10):
        time.sleep(seconds / 10)
        yield None
    yield {"square": {"value": snapshot["number"] ** 2, "confidence": 1}}


# --- asking the server -------------------------------------------------------------------------


class Refused(Exception):
    """The server said no, and why: its answer, with `code`, `message` and `next`."""

    def __init__(self, answer: Json) -> None:
        super().__init__(f"{answer['code']}: {answer['message']} {answer['next']}")
        self.code: str = answer["code"]
        self.status: int = answer["status"]


def ask(path: str, body: Json | None = None) -> Json:
    """Make one request, and the same one again until it is answered; 503 is no answer.

    Nothing is done twice by that: a claim has its `idempotency_key`, a new task its `dedupe_key`,
    and to heartbeat or submit again changes nothing.
    """
    pause = PAUSE_S
    while True:
        request = urllib.request.Request(
            URL + path, None if body is None else json.dumps(body).encode()
        )
        request.add_header("Content-Type", "application/json")
        if SECRET:
            request.add_header("Authorization", f"Bearer {SECRET}")
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                found: Json = json.load(answer)
                return found
        except urllib.error.HTTPError as error:
            if error.code not in (502, 503, 504):  # 502 and 504: a proxy that does not find it
                raise Refused(json.load(error)) from None
        except (OSError, http.client.HTTPException):
            pass  # not there, or gone in the middle of it
        time.sleep(pause * random.uniform(0.5, 1))
        pause = min(2 * pause, MOST_S)


def listed(status: str, limit: int) -> list[Json]:
    """List some tasks of a status, the oldest ones."""
    found: list[Json] = ask(f"{TASKS}?status={status}&limit={limit}")["data"]
    return found


def every() -> Iterator[Json]:
    """Go through all tasks."""
    cursor = ""
    while cursor is not None:
        page = ask(f"{TASKS}?limit=100" + (f"&cursor={cursor}" if cursor else ""))
        yield from page["data"]
        cursor = page["pagination"]["next_cursor"]


# --- the worker --------------------------------------------------------------------------------


class Claim:
    """A task that is ours, kept so by a thread of its own for as long as we work on it."""

    def __init__(self, task: Json) -> None:
        self.task = task
        self.path = f"{TASKS}/{task['id']}"
        self.epoch = {"execution_epoch": task["execution_epoch"]}
        self.lost: Refused | None = None
        self.note = ""
        self._over = threading.Event()
        self._keeper = threading.Thread(target=self._keep, daemon=True)
        self._keeper.start()

    def _keep(self) -> None:
        """Heartbeat when a third of what is left of the lease is over, however long that is."""
        left = self.task["seconds_left"]
        while not self._over.wait(left / 3):
            try:
                beat = self.epoch | ({"note": self.note} if self.note else {})
                left = ask(f"{self.path}/heartbeat", beat)["seconds_left"]
            except Refused as why:
                self.lost = why
                return

    def submit(self, outputs: Json) -> None:
        """Hand the result in. Raises `Refused` when it is not wanted any more."""
        self.close()
        ask(f"{self.path}/submit", self.epoch | {"outputs": outputs})

    def release(self) -> None:
        """Give it back, so that nobody has to wait for the lease to end."""
        self.close()
        with contextlib.suppress(Refused):  # it is not ours any more, which is as good
            ask(f"{self.path}/release", self.epoch | {"note": self.note or "not begun"})

    def close(self) -> None:
        """Heartbeat no more."""
        self._over.set()


def work(name: str, seconds: float) -> None:
    """Claim one task after another until all of them are over."""
    while True:
        # The oldest ones only: they are what others lost. Everybody sees the same list; whoever
        # goes through it in an order of their own meets fewer of the others.
        waiting = listed("available", 16)
        random.shuffle(waiting)
        for task in waiting:
            one(name, task["id"], seconds)
        if not waiting:
            # What others hold comes back to us if they die.
            if not listed("claimed", 1):
                say(name, "nothing left to do")
                return
            time.sleep(1)


def one(name: str, id: str, seconds: float) -> None:
    """Claim a task if nobody was faster, and carry it through or let it go."""
    attempt = {"agent_id": name, "idempotency_key": str(uuid.uuid4())}
    try:
        claim = Claim(ask(f"{TASKS}/{id}/claim", attempt))
    except Refused as why:
        if why.status != 409:
            raise
        return
    before = claim.task["handover"]
    if before is not None:
        say(name, f"{id} comes from {before['agent_id']} ({before['cause']}): {before['note']}")
    try:
        for number, outputs in enumerate(steps(claim.task["input_snapshot"], seconds)):
            if claim.lost is not None:
                raise claim.lost
            claim.note = f"{number} of 10 steps done"
            if outputs is not None:
                claim.submit(outputs)
                say(name, f"{id} is done, epoch {claim.epoch['execution_epoch']}")
    except Refused as why:
        if why.status != 409:
            raise
        # A hard stop: somebody else has it, or it is over. What we made belongs to nobody.
        say(name, f"{id} is lost, discarded: {why.code}")
    except BaseException:
        claim.release()
        raise
    finally:
        claim.close()


def say(name: str, what: str) -> None:
    """One line for people."""
    print(f"{name}: {what}", flush=True)


# --- the producer, and the audit ---------------------------------------------------------------


def create(count: int, lease: int, batch: str) -> None:
    """Make tasks; with the same name for the `batch` they are made once, however often asked."""

    def one_of_them(number: int) -> bool:
        task = {
            "input_snapshot": {"number": number},
            "output_contract": CONTRACT,
            "instructions": "Square the number.",
            "lease_seconds": lease,
            "dedupe_key": f"{batch}/{number}",
        }
        created: bool = ask(TASKS, task)["created"]
        return created

    with ThreadPoolExecutor(8) as pool:
        made = sum(pool.map(one_of_them, range(count)))
    print(f"{made} tasks made, {count - made} were there")


def audit() -> bool:
    """Print who held which task when, and whether every task has ended, and as it must."""
    wrong = []
    ends: dict[str, int] = {}
    print("task                                 epoch  worker      from          until         end")
    for listed_one in every():
        task = ask(f"{TASKS}/{listed_one['id']}")
        ends[task["status"]] = ends.get(task["status"], 0) + 1
        until = ""
        for held in task["epochs"]:
            begun, ended = held["claimed_at"][11:-1], (held["ended_at"] or "")[11:-1]
            print(
                f"{task['id']} {held['execution_epoch']:>6}  {held['agent_id'] or '-':<10}  "
                f"{begun:<12}  {ended:<12}  {held['cause'] or 'runs'}"
            )
            if held["claimed_at"] < until:
                wrong.append(f"{task['id']} had two holders at {held['claimed_at']}")
            until = held["ended_at"] or "9999"
        submitted = sum(held["cause"] == "submitted" for held in task["epochs"])
        if submitted != (task["status"] == "submitted"):
            wrong.append(f"{task['id']} is {task['status']} and was submitted {submitted} times")
        if submitted and (
            task["outputs"]["square"]["value"] != task["input_snapshot"]["number"] ** 2
        ):
            wrong.append(f"{task['id']} has a wrong result")
    print(", ".join(f"{count} {status}" for status, count in ends.items()) or "no tasks")
    print("\n".join(wrong) or "Every epoch had one holder, and every task that ended did so once.")
    return not wrong


def stopped(_number: int, _frame: object) -> NoReturn:
    """Let SIGTERM end us as Ctrl-C does, so that the claim is given back."""
    raise KeyboardInterrupt


def main() -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--register", action="store_true", help="register; prints the secret")
    parser.add_argument("--create", type=int, metavar="N", help="make N tasks")
    parser.add_argument("--audit", action="store_true", help="print who held which task when")
    parser.add_argument("--name", default=f"worker-{os.getpid()}", help="what others see of us")
    parser.add_argument("--work-seconds", type=float, default=0.2, help="that each task takes")
    parser.add_argument("--lease", type=int, default=30, help="of the tasks made, in seconds")
    parser.add_argument("--batch", default="squares", help="name of the tasks made, together")
    options = parser.parse_args()
    if options.register:
        print(ask("/v1/register", {"label": "squares"})["agent_secret"])
    elif not SECRET:
        print("HEARTBEAT_SECRET is not set; --register makes one.", file=sys.stderr)
        return 2
    elif options.create is not None:
        create(options.create, options.lease, options.batch)
    elif options.audit:
        return 0 if audit() else 1
    else:
        signal.signal(signal.SIGTERM, stopped)
        try:
            work(options.name, options.work_seconds)
        except KeyboardInterrupt:
            return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
