"""How many students can one machine take? N kernels at once, each running a chapter and then moving its sliders.

    python benchmarks/classroom.py [--students 1 5 10 20] [--chapter 05_rope] [--moves 20] [--pause 0.5] [--torch]

Every student's kernel runs the code cells of the chapter one after the other, all kernels at the same time. Then each
student moves the first slider of every live picture, one step, `pause` seconds of thought, and the next step; a step
counts from the message that leaves for the kernel to the new picture. Nothing is drawn on a screen here, so the time in
the browser (benchmarks/browser.py) comes on top. Without --torch the kernels run as where torch is not installed:
chapters 1 to 5 do not need it, but for the cell about RoPE at scale, which is then left out. Reported for every N:

    memory      of a kernel after its moves: proportional set size (shared pages are divided among those who share them)
                on Linux, resident set size elsewhere; median and largest
    picture     from the start of the kernel to its first live picture; median and largest
    chapter     from the start of the kernel to the end of its last cell; largest
    slider      median and 95th percentile of all steps of all students
    failures    kernels that died, cells that raised, steps without a picture

Needs psutil, which JupyterLab's kernel brings along.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import psutil
from jupyter_client import AsyncKernelManager

NOTEBOOKS = Path(__file__).resolve().parent.parent / "notebooks"
PATIENCE = 600  # seconds for one cell, one step

# Runs in the kernel after the chapter: the first slider of every live picture and where it can go.
SLIDERS = """
import gc, json
from posviz.live import Explorer
print(json.dumps([
    {"slider": e.controls[c.name].model_id, "image": e.image.model_id,
     "values": [v for v in c.stops(most=10_000) if v != e.values[c.name]]}
    for e in gc.get_objects() if isinstance(e, Explorer) and e.comm is not None
    for c in [e.view.first_slider] if c.slides]))
"""


class Student:
    """One kernel and the clock beside it."""

    def __init__(self, cells, moves, pause):
        self.cells, self.moves, self.pause = cells, moves, pause
        self.steps, self.failures, self.first_picture = [], [], None

    async def work(self, all_done):
        """Run the chapter, move the sliders, say how much memory that took, wait for the others, leave."""
        self.started = time.perf_counter()
        manager = AsyncKernelManager(kernel_name="python3")
        await manager.start_kernel(
            cwd=str(NOTEBOOKS), env=os.environ | {"OMP_NUM_THREADS": "1"}, stderr=subprocess.DEVNULL
        )  # a note about encryption from each of them
        self.client = manager.client()
        self.client.start_channels()
        try:
            await self.client.wait_for_ready(timeout=PATIENCE)
            for cell in self.cells:
                await self.run(cell)
            self.chapter = time.perf_counter() - self.started
            for picture in json.loads(await self.run(SLIDERS)):
                for value in picture["values"][: self.moves]:  # each once: a state seen before comes from a cache
                    await self.step(picture, value)
                    await asyncio.sleep(self.pause)
            self.memory = memory(manager.provisioner.process.pid)
            await all_done.wait()  # the others still share the machine
        except Exception as problem:
            self.failures.append(f"{type(problem).__name__}: {problem}")
            all_done.abort()
        finally:
            self.client.stop_channels()
            await manager.shutdown_kernel(now=True)

    async def run(self, code):
        """What `code` prints."""
        request = self.client.execute(code, store_history=False)
        text = ""
        while True:
            message = await self.client.get_iopub_msg(timeout=PATIENCE)
            if message["parent_header"].get("msg_id") != request:
                continue
            kind, content = message["msg_type"], message["content"]
            if kind == "stream" and content["name"] == "stdout":
                text += content["text"]
            elif kind == "error":
                self.failures.append(content["evalue"])
            elif kind in ("display_data", "execute_result") and "image/png" in content["data"]:
                self.first_picture = self.first_picture or time.perf_counter() - self.started
            elif kind == "status" and content["execution_state"] == "idle":
                return text

    async def step(self, picture, value):
        """Send the slider's new value the way a browser does, and wait for the picture."""
        data = {"method": "update", "state": {"value": value}, "buffer_paths": []}
        message = self.client.session.msg("comm_msg", {"comm_id": picture["slider"], "data": data})
        began = time.perf_counter()
        self.client.shell_channel.send(message)
        seen = idle = False
        while not (seen and idle):
            answer = await self.client.get_iopub_msg(timeout=PATIENCE)
            content = answer["content"]
            if answer["msg_type"] == "comm_msg" and content["comm_id"] == picture["image"]:
                self.steps.append(time.perf_counter() - began)
                seen = True
            if answer["msg_type"] == "status" and answer["parent_header"].get("msg_id") == message["header"]["msg_id"]:
                idle = content["execution_state"] == "idle" or idle


def memory(pid):
    """Bytes of a process: proportional where the system counts them, resident elsewhere."""
    whole = psutil.Process(pid).memory_full_info()
    return getattr(whole, "pss", whole.rss)


async def class_of(number, cells, moves, pause):
    barrier = asyncio.Barrier(number)
    waiting = Waiting(barrier)
    students = [Student(cells, moves, pause) for _ in range(number)]
    await asyncio.gather(*(student.work(waiting) for student in students))
    return students


class Waiting:
    """A barrier that a student who failed opens for all."""

    def __init__(self, barrier):
        self.barrier, self.aborted = barrier, False

    async def wait(self):
        try:
            await self.barrier.wait()
        except asyncio.BrokenBarrierError:
            pass

    def abort(self):
        asyncio.ensure_future(self.barrier.abort())


def cells_of(chapter, torch):
    """The code cells of a chapter; without torch, those that need it left out and an import of it made to fail."""
    notebook = json.loads((NOTEBOOKS / f"{chapter}.ipynb").read_text(encoding="utf-8"))
    cells = [
        "".join(cell["source"])
        for cell in notebook["cells"]
        if cell["cell_type"] == "code" and (torch or "gpu" not in cell["metadata"].get("tags", []))
    ]
    return cells if torch else ['import sys; sys.modules["torch"] = None', *cells]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--students", nargs="+", type=int, default=[1, 5, 10, 20])
    parser.add_argument("--chapter", default="05_rope")
    parser.add_argument("--moves", type=int, default=20, help="steps of each slider, at most as many as it has")
    parser.add_argument("--pause", type=float, default=0.5, help="seconds between two steps of one student")
    parser.add_argument("--torch", action="store_true", help="let the kernels import torch")
    options = parser.parse_args()
    cells = cells_of(options.chapter, options.torch)
    torch = "with" if options.torch else "without"
    print(
        f"{options.chapter}, {torch} torch, {os.cpu_count()} cores, {psutil.virtual_memory().total / 2**30:.0f} GiB, "
        f"{options.moves} steps a slider, {options.pause} s between steps, load before {os.getloadavg()[0]:.1f}"
    )
    print(" N | memory MB (median, most) | first picture s | chapter s | slider ms (median, 95 %) | steps | failures")
    failed = False
    for number in options.students:
        students = asyncio.run(class_of(number, cells, options.moves, options.pause))
        failures = [problem for student in students for problem in student.failures]
        steps = sorted(1000 * step for student in students for step in student.steps)
        used = [student.memory / 1e6 for student in students if hasattr(student, "memory")]
        chapter = [student.chapter for student in students if hasattr(student, "chapter")]
        first = [student.first_picture for student in students if student.first_picture]
        if failures:
            print("\n".join(failures[:5]), file=sys.stderr)
            failed = True
        if used and first and steps:
            print(
                f"{number:2} | {statistics.median(used):.0f}, {max(used):.0f} | {statistics.median(first):.1f}, "
                f"{max(first):.1f} | {max(chapter):.1f} | "
                f"{statistics.median(steps):.0f}, {steps[int(0.95 * (len(steps) - 1))]:.0f} | {len(steps)} | "
                f"{len(failures)}",
                flush=True,
            )
    sys.exit(failed)


if __name__ == "__main__":
    main()
