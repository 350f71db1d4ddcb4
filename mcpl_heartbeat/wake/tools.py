"""The six tools of the wake wing, as they are declared to a client."""

from mcpl_heartbeat.mcp.tools import Tool
from mcpl_heartbeat.wake.arguments import (
    AddArguments,
    CancelArguments,
    ConfigureArguments,
    ListArguments,
    NoArguments,
    add_rules,
    configure_rules,
)
from mcpl_heartbeat.wake.results import (
    AddResult,
    CancelResult,
    ConfigureResult,
    ListResult,
    ReminderView,
    StatusResult,
    TriggerResult,
)

__all__ = [
    "HEARTBEAT_CONFIGURE",
    "HEARTBEAT_STATUS",
    "HEARTBEAT_TRIGGER",
    "REMINDER_ADD",
    "REMINDER_CANCEL",
    "REMINDER_LIST",
    "TOOLS",
    "AddArguments",
    "AddResult",
    "CancelArguments",
    "CancelResult",
    "ConfigureArguments",
    "ConfigureResult",
    "ListArguments",
    "ListResult",
    "NoArguments",
    "ReminderView",
    "StatusResult",
    "TriggerResult",
]

_CLASSES = ("control",)

HEARTBEAT_STATUS = Tool(
    name="heartbeat_status",
    title="Heartbeat status",
    description="Shows your heartbeat, the wake that comes to you on a schedule: whether it is "
    "active or paused, its interval, the time to the next one while one is coming, its mode and "
    "message, how many reminders are pending, and whether wakes can reach you at all. Use it to "
    "see when you will next be woken, or why you were not. Changes nothing. Takes no arguments.",
    arguments=NoArguments,
    result=StatusResult,
    read_only=True,
    idempotent=True,
    destructive=False,
    classes=_CLASSES,
)

HEARTBEAT_CONFIGURE = Tool(
    name="heartbeat_configure",
    title="Configure heartbeat",
    description="Changes your heartbeat: how often you are woken, whether at all, in which mode "
    "and with which message. Send only what is to change; with no arguments it just shows the "
    "status. intervalSeconds, intervalMinutes and intervalHours add up to one interval of 60 "
    "seconds or more (at most 8,000 years, ending before the year 10000), and a new one counts "
    "from now. deliveryMode is "
    '"message" or "silent"; message must not be blank. The change is kept over restarts; the '
    "reply says so if it could not be saved. If any argument is wrong, nothing is changed. For "
    "one wake at a certain time use reminder_add.",
    arguments=ConfigureArguments,
    result=ConfigureResult,
    read_only=False,
    idempotent=True,
    # It only replaces settings that the agent itself chose and can choose again.
    destructive=False,
    classes=_CLASSES,
    rules=configure_rules,
)

HEARTBEAT_TRIGGER = Tool(
    name="heartbeat_trigger",
    title="Trigger heartbeat",
    description="Sends one heartbeat now, to test that wakes reach you. The schedule stays as it "
    "is. An error says why if none can be sent. Takes no arguments.",
    arguments=NoArguments,
    result=TriggerResult,
    read_only=False,
    idempotent=False,
    destructive=False,
    classes=_CLASSES,
)

REMINDER_ADD = Tool(
    name="reminder_add",
    title="Add reminder",
    description="Sets a reminder: at its time you are woken and read its message. Say when with a "
    "delay (inSeconds, inMinutes and inHours, which add up to more than 0) or with a moment "
    "(atIso, ahead of now), not both. To repeat it, send an interval (everySeconds, everyMinutes "
    "and everyHours, which add up to 5 seconds or more, at most 8,000 years, ending before the "
    "year 10000); it then first comes "
    "one interval from now, or at the delay or moment if you send one as well. A delay or a moment "
    "is required unless there is an interval. message is required and must not be blank. No "
    "reminder can be due in the year 10000 or later. Reminders outlive restarts; the reply gives "
    "the id and says so if it could not be saved. If any argument is wrong, nothing is set.",
    arguments=AddArguments,
    result=AddResult,
    read_only=False,
    idempotent=False,
    destructive=False,
    classes=_CLASSES,
    rules=add_rules,
)

REMINDER_LIST = Tool(
    name="reminder_list",
    title="List reminders",
    description="Lists your pending reminders with their ids, the soonest first, and says of any "
    "that waits why it does. A long list is cut and names the offset (a whole number of 0 or more) "
    "to send for the next part. Look here before you set a reminder you may have set already. "
    "Changes nothing.",
    arguments=ListArguments,
    result=ListResult,
    read_only=True,
    idempotent=True,
    destructive=False,
    classes=_CLASSES,
)

REMINDER_CANCEL = Tool(
    name="reminder_cancel",
    title="Cancel reminder",
    description="Takes away one pending reminder for good, a recurring one with all its repeats. "
    "id is required: the one that reminder_add or reminder_list gave. An id that no pending "
    "reminder has is an error.",
    arguments=CancelArguments,
    result=CancelResult,
    read_only=False,
    idempotent=True,
    destructive=True,
    classes=_CLASSES,
)

TOOLS = (
    HEARTBEAT_STATUS,
    HEARTBEAT_CONFIGURE,
    HEARTBEAT_TRIGGER,
    REMINDER_ADD,
    REMINDER_LIST,
    REMINDER_CANCEL,
)
