"""The same for asyncio: each connection has a thread of its own, so the loop never waits.

    async with await clearway.aio.connect("visits") as connection:
        cursor = await connection.execute("SELECT 1")
        print(await cursor.fetchall())
"""

import asyncio
import concurrent.futures

from . import connection as plain


async def connect(database, **options):
    """See `clearway.connect`."""
    executor = concurrent.futures.ThreadPoolExecutor(1, "clearway")
    loop = asyncio.get_running_loop()
    try:
        inner = await loop.run_in_executor(executor, lambda: plain.connect(database, **options))
    except BaseException:
        executor.shutdown(wait=False)
        raise
    return Connection(inner, executor)


class _Threaded:
    def __init__(self, inner, executor):
        self._inner = inner
        self._executor = executor

    async def _run(self, method, *arguments):
        loop = asyncio.get_running_loop()
        work = loop.run_in_executor(self._executor, method, *arguments)
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            # The task is cancelled: the statement is, too, and has ended when this returns.
            connection = getattr(self._inner, "connection", self._inner)
            while not work.done():
                connection.interrupt()
                await asyncio.wait([work], timeout=0.05)
            raise


class Connection(_Threaded):
    """A connection whose methods are coroutines."""

    async def execute(self, sql, parameters=()):
        return Cursor(await self._run(self._inner.execute, sql, parameters), self._executor)

    async def executemany(self, sql, parameters):
        return Cursor(await self._run(self._inner.executemany, sql, parameters), self._executor)

    async def executescript(self, script):
        return Cursor(await self._run(self._inner.executescript, script), self._executor)

    async def commit(self):
        await self._run(self._inner.commit)

    async def rollback(self):
        await self._run(self._inner.rollback)

    async def close(self):
        await self._run(self._inner.close)
        self._executor.shutdown(wait=False)

    def interrupt(self):
        self._inner.interrupt()

    async def __aenter__(self):
        return self

    async def __aexit__(self, kind, *_):
        await (self.commit() if kind is None else self.rollback())
        await self.close()


class Cursor(_Threaded):
    """A cursor whose methods are coroutines."""

    @property
    def description(self):
        return self._inner.description

    @property
    def rowcount(self):
        return self._inner.rowcount

    async def fetchone(self):
        return await self._run(self._inner.fetchone)

    async def fetchmany(self, size=None):
        return await self._run(self._inner.fetchmany, size)

    async def fetchall(self):
        return await self._run(self._inner.fetchall)

    async def close(self):
        await self._run(self._inner.close)

    def __aiter__(self):
        return self

    async def __anext__(self):
        row = await self.fetchone()
        if row is None:
            raise StopAsyncIteration
        return row
