"""The store's clock as it is read and kept in the tables; what it decides is in ``clock.py``."""

import msgspec
import sqlalchemy as sa

from mcpl_heartbeat.storage.store import clock as clocks
from mcpl_heartbeat.storage.store import schema
from mcpl_heartbeat.storage.store.clock import ClockRow, Memory, Sample, SteadyClock, Tick
from mcpl_heartbeat.storage.store.ports import StoreError
from mcpl_heartbeat.watch.clock import Gap, Reading

GAPS = 100
"""How many gaps, the newest, a reading holds."""

_CLOCK = schema.clock
_COLUMNS = (_CLOCK.c.source, _CLOCK.c.offset_ms, _CLOCK.c.cut, _CLOCK.c.seen, _CLOCK.c.salt)
_DATABASE_MS = sa.literal_column(
    "floor(extract(epoch from clock_timestamp()) * 1000)::bigint", sa.BigInteger
)
_READ = sa.select(*_COLUMNS)
_READ_BOTH = sa.select(*_COLUMNS, _DATABASE_MS)
_NEWEST = (
    sa.select(schema.gaps.c.began, schema.gaps.c.ended, schema.gaps.c.cut)
    .order_by(schema.gaps.c.began.desc())
    .limit(GAPS)
)
_KEEP = sa.update(_CLOCK)
_SEEN = (
    sa.update(_CLOCK)
    .values(seen=sa.bindparam("real"))
    .where(_CLOCK.c.seen < sa.bindparam("real"), _CLOCK.c.offset_ms == sa.bindparam("anchor"))
)
_INSERT_GAP = sa.insert(schema.gaps)


class Look(msgspec.Struct, frozen=True):
    """The time as a transaction found it: the row kept so far, and what has to be made of it."""

    row: ClockRow
    sample: Sample
    tick: Tick
    salt: bytes

    @property
    def settled(self) -> bool:
        """Whether the row can stay as it is."""
        return self.tick.row == self.row

    @property
    def stale(self) -> bool:
        """Whether the note of the last watch has grown old."""
        return self.tick.real - self.row.seen >= clocks.SEEN_EVERY_MS


class Timekeeper:
    """Reads the time in a transaction, and remembers what the next reading is compared with."""

    def __init__(self, clock: SteadyClock, *, database: bool) -> None:
        """``database``: the database's clock counts, and ``clock`` only shows when it steps."""
        self._clock = clock
        self._database = database
        self._memory: Memory | None = None
        self._gaps: tuple[int, tuple[Gap, ...]] = (0, ())
        self._shift = 0

    def begin(self, conn: sa.Connection, salt: bytes) -> None:
        """Give a store without one its clock; the transaction is a writer's."""
        if conn.execute(_READ).first() is None:
            sample = self._sample(conn)
            row = msgspec.structs.asdict(clocks.first_row(sample))
            conn.execute(sa.insert(_CLOCK), {"id": 1, "salt": salt.hex(), **row})

    def look(self, conn: sa.Connection, gap_ms: int = clocks.GAP_MS) -> Look:
        """Read the time. Raises ``StoreError`` when the store's own row cannot be read."""
        early = self._clock.steady()
        found = conn.execute(_READ_BOTH if self._database else _READ).first()
        if found is None:
            raise StoreError("its clock is missing")
        try:
            row = ClockRow(found.source, found.offset_ms, found.cut, found.seen)
            salt = bytes.fromhex(found.salt)
        except ValueError:
            raise StoreError("its clock cannot be read") from None
        sample = self._told(found[5], early) if self._database else clocks.sample_host(self._clock)
        return Look(row, sample, clocks.tick(row, sample, self._memory, gap_ms), salt)

    def reading(self, conn: sa.Connection, look: Look) -> Reading:
        """Give the time that ``look`` came to, with a gap that is not kept yet as if it were."""
        cut, gaps = self._gaps
        if cut != look.row.cut:
            gaps = tuple(Gap(*row) for row in reversed(conn.execute(_NEWEST).all()))
            self._gaps = look.row.cut, gaps
        tick = look.tick
        if tick.gap is not None:
            gaps = (*gaps, tick.gap)[-GAPS:]
        self._shift = clocks.shift(look.sample.wall, tick.real, self._shift)
        return Reading(tick.real, tick.row.cut, self._shift, gaps)

    def keep(self, conn: sa.Connection, look: Look) -> None:
        """Write what ``look`` came to, in a writer's transaction."""
        conn.execute(_KEEP, msgspec.structs.asdict(look.tick.row))
        if (gap := look.tick.gap) is not None:
            conn.execute(_INSERT_GAP, msgspec.structs.asdict(gap))

    def note(self, conn: sa.Connection, look: Look) -> None:
        """Write that somebody watched at ``look``, unless the clock was anchored anew since."""
        conn.execute(_SEEN, {"real": look.tick.real, "anchor": look.row.offset_ms})

    def remember(self, look: Look, *, watched: bool) -> None:
        """Compare later readings with this one; ``watched``: it showed that we can act."""
        real = look.tick.real
        before = self._memory.watched if self._memory is not None else look.row.seen
        self._memory = Memory(
            look.sample, look.tick.row.offset_ms, real, real if watched else before
        )

    def _sample(self, conn: sa.Connection) -> Sample:
        if not self._database:
            return clocks.sample_host(self._clock)
        early = self._clock.steady()
        return self._told(int(conn.execute(sa.select(_DATABASE_MS)).scalar_one()), early)

    def _told(self, raw: int, early: int) -> Sample:
        return Sample("postgresql", raw, raw, early, self._clock.steady())
