"""A slow line on one machine: a proxy that gives each direction a delay and a rate, and counts what waits in it."""

import asyncio
import contextlib
import socket
import threading
import time


class SlowLine:
    """with SlowLine(port, rate, round_trip) as line: what connects to `line.port` reaches `port` as over a far line.

    rate        bits a second, for each direction, shared by all connections
    round_trip  seconds; half of it in each direction
    `line.waiting` is the number of bytes on their way to the browser now, `line.longest` the most there have been,
    `line.sent` how many have arrived there since the last `line.reset()`.
    """

    def __init__(self, port, rate, round_trip):
        self.target = port
        self.set(rate, round_trip)
        self.free = {"up": 0.0, "down": 0.0}  # when the last byte of each direction will have left
        self.waiting = 0
        self.reset()

    def set(self, rate, round_trip):
        """Another rate and round trip from now on."""
        self.rate, self.delay = rate / 8, round_trip / 2

    def reset(self):
        """Begin to count anew."""
        self.longest, self.sent = self.waiting, 0

    def __enter__(self):
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        started = threading.Event()
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_until_complete, args=(self._serve(started),), daemon=True)
        self.thread.start()
        started.wait(10)
        return self

    def __exit__(self, *exception):
        self.loop.call_soon_threadsafe(self.stop.set)
        self.thread.join(10)

    async def _serve(self, started):
        self.stop = asyncio.Event()
        async with await asyncio.start_server(self._connect, "127.0.0.1", self.port):
            started.set()
            await self.stop.wait()
            others = asyncio.all_tasks() - {asyncio.current_task()}
            for task in others:
                task.cancel()
            await asyncio.gather(*others, return_exceptions=True)

    async def _connect(self, browser_in, browser_out):
        with contextlib.suppress(OSError, asyncio.CancelledError):
            server_in, server_out = await asyncio.open_connection("127.0.0.1", self.target)
            ways = self._pass(browser_in, server_out, "up"), self._pass(server_in, browser_out, "down")
            await asyncio.gather(*ways, return_exceptions=True)

    async def _pass(self, source, goal, way):
        """Everything from `source` to `goal`, each piece after the pieces before it and the delay of the line."""
        pieces = asyncio.Queue()
        reader = asyncio.create_task(self._read(source, pieces, way))
        try:
            while (piece := await pieces.get()) is not None:
                arrives, data = piece
                await asyncio.sleep(max(0.0, arrives - time.monotonic()))
                goal.write(data)
                await goal.drain()
                if way == "down":
                    self.waiting -= len(data)
                    self.sent += len(data)
        finally:
            reader.cancel()
            goal.close()

    async def _read(self, source, pieces, way):
        while data := await source.read(4096):  # small pieces: those of several connections take turns
            self.free[way] = max(self.free[way], time.monotonic()) + len(data) / self.rate
            if way == "down":
                self.waiting += len(data)
                self.longest = max(self.longest, self.waiting)
            pieces.put_nowait((self.free[way] + self.delay, data))
        pieces.put_nowait(None)
