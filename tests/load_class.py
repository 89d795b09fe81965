"""How long does a class wait? A hundred visitors, each with sentences of their own, press Run.

    python tests/load_class.py [--visitors 100] [--seconds 10] [--updates 500] [options of app.py]

Starts ``app.py`` as a user would and speaks to it as a browser does: every visitor opens the page,
then presses Run at a moment drawn from the first seconds, and waits for maps and neighbors. After
that the same visitors make further updates, every one with a text of its own, and the server's
memory is read before, half-way and after. Nothing leaves the machine.

The last line is one JSON document: ``p50_s``, ``p95_s`` and ``max_s`` from Run to result,
``errors``, ``cpu_ms_per_run`` of the server's
processor time (which other work on the machine does not change much), ``rss_mb`` by stage, and
what it was measured on. The exit status is 1 where a visitor
got an error or nothing within ``--limit`` seconds.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import platform
import random
import subprocess
import sys
import time
from pathlib import Path
from uuid import uuid4

import httpx
import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"

from bench_app import free_port, wait_for_server  # noqa: E402

NOUNS = ["river", "bank", "house", "letter", "play", "light", "stone", "winter", "child", "paper"]
OTHERS = ["the", "old", "was", "near", "saw", "left", "quiet", "under", "a", "kept", "bright", "to"]


def sentences_of(number: int) -> str:
    """Two sentences that no other visitor and no other update has."""
    draw = random.Random(number)
    lines = [[draw.choice(NOUNS + OTHERS) for _ in range(draw.randint(6, 14))] for _ in range(2)]
    lines[1].append(f"number{number}")
    return "\n".join(" ".join(line).capitalize() + " ." for line in lines)


class Visitor:
    """One browser: a session of its own, a stream of events from the queue."""

    def __init__(self, client: httpx.AsyncClient, fn_index: int) -> None:
        self.client, self.fn_index = client, fn_index
        self.session = uuid4().hex

    async def open(self) -> float:
        """Seconds to read the page and its configuration."""
        start = time.perf_counter()
        for path in ("/", "/config"):
            (await self.client.get(path)).raise_for_status()
        return time.perf_counter() - start

    async def run(self, text: str) -> float:
        """Seconds from Run to the result. Raises where the server answers with an error."""
        start = time.perf_counter()
        body = {
            "data": [text, False, None],
            "fn_index": self.fn_index,
            "session_hash": self.session,
            "event_data": None,
            "trigger_id": None,
        }
        answer = await self.client.post("/gradio_api/queue/join", json=body)
        answer.raise_for_status()
        data = {"session_hash": self.session}
        async with self.client.stream("GET", "/gradio_api/queue/data", params=data) as stream:
            async for line in stream.aiter_lines():
                if not line.startswith("data:"):
                    continue
                message = json.loads(line[5:])
                if message["msg"] == "process_completed":
                    self._check(message, text)
                    return time.perf_counter() - start
        raise RuntimeError("the stream ended without a result")

    @staticmethod
    def _check(message: dict, text: str) -> None:
        if not message["success"]:
            raise RuntimeError(str(message["output"])[:200])
        news = json.loads(message["output"]["data"][1])
        shown = "\n".join(" ".join(tokens) for tokens in news["run"]["sentences"])
        if shown != text:
            raise RuntimeError(f"asked for {text!r:.60}, got {shown!r:.60}")
        if not {"maps", "query", "near"} <= set(news):
            raise RuntimeError(f"the result has only {sorted(news)}")


def rss_mb(pid: int) -> float:
    """Resident memory in megabytes."""
    pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    return round(pages * os.sysconf("SC_PAGE_SIZE") / 1e6, 1)


def cpu_seconds(pid: int) -> float:
    """Of the process so far, all threads."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def press_run(visitors: list[Visitor], seconds: float, limit: float, first: int) -> list:
    """Everyone's seconds from Run to result, or the exception."""

    async def later(i: int, visitor: Visitor):
        await asyncio.sleep(seconds * random.Random(first + i).random())
        return await asyncio.wait_for(visitor.run(sentences_of(first + i)), limit)

    tasks = (later(i, visitor) for i, visitor in enumerate(visitors))
    return await asyncio.gather(*tasks, return_exceptions=True)


async def first_answer(client: httpx.AsyncClient) -> dict:
    """The page's configuration, as soon as the server gives it."""
    while True:
        try:
            return (await client.get("/config")).raise_for_status().json()
        except httpx.HTTPError:
            await asyncio.sleep(0.2)


async def measure(port: int, pid: int, options: argparse.Namespace) -> dict:
    url = f"http://127.0.0.1:{port}"
    # The server closes a connection that has rested for 5 seconds, maybe just when it is used.
    limits = httpx.Limits(max_connections=None, keepalive_expiry=2)
    async with httpx.AsyncClient(base_url=url, timeout=options.limit, limits=limits) as client:
        config = await first_answer(client)
        (fn_index,) = (d["id"] for d in config["dependencies"] if d["api_name"] == "run")
        await Visitor(client, fn_index).run(sentences_of(-1))
        rss = {"start": rss_mb(pid)}
        visitors = [Visitor(client, fn_index) for _ in range(options.visitors)]
        opened = await asyncio.gather(*(visitor.open() for visitor in visitors))
        load, used = os.getloadavg()[0], cpu_seconds(pid)
        found = await press_run(visitors, options.seconds, options.limit, 0)
        used = cpu_seconds(pid) - used
        rss["class"] = rss_mb(pid)
        done, updates, errors = len(found), [], [e for e in found if isinstance(e, BaseException)]
        while len(updates) < options.updates:
            n = min(len(visitors), options.updates - len(updates))
            more = await press_run(visitors[:n], 0, 10 * options.limit, done)
            updates, done = updates + more, done + n
            if len(updates) <= options.updates / 2:
                rss["half"] = rss_mb(pid)
        errors += [e for e in updates if isinstance(e, BaseException)]
        rss["end"] = rss_mb(pid)
    times = [t for t in found if isinstance(t, float)] or [float("nan")]
    return {
        "p50_s": round(float(np.percentile(times, 50)), 2),
        "p95_s": round(float(np.percentile(times, 95)), 2),
        "max_s": round(max(times), 2),
        "n_results": len(found) - sum(isinstance(t, BaseException) for t in found),
        "cpu_ms_per_run": round(1000 * used / len(found)),
        "open_p95_s": round(float(np.percentile(opened, 95)), 2),
        "n_updates": len(updates),
        "errors": sorted({f"{type(e).__name__}: {e}"[:200] for e in errors}),
        "n_errors": len(errors),
        "rss_mb": rss,
        "load": round(load, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--visitors", type=int, default=100)
    parser.add_argument("--seconds", type=float, default=10.0, help="in which all press Run")
    parser.add_argument("--updates", type=int, default=500, help="afterwards, by all together")
    parser.add_argument("--limit", type=float, default=60.0, help="the longest wait for a result")
    parser.add_argument("--deadline", type=float, default=400.0, help="of everything, in seconds")
    options, further = parser.parse_known_args()
    port = free_port()
    command = [sys.executable, "app.py", "--port", str(port), "--no-wordnet", *further]
    process = subprocess.Popen(command, cwd=ROOT)
    try:
        wait_for_server(port, process)
        report = asyncio.run(
            asyncio.wait_for(measure(port, process.pid, options), options.deadline)
        )
    finally:
        process.terminate()
        process.wait()
    machine = platform.processor() or platform.machine()
    print(json.dumps(report | {"n_cpus": os.cpu_count(), "machine": machine}))
    sys.exit(bool(report["n_errors"]))


if __name__ == "__main__":
    main()
