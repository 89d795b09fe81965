"""The command line of the page: reads options, loads the models, serves."""

from __future__ import annotations

import argparse
import logging
import os
import socket
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from app.settings import Settings

N_THREADS = min(4, os.cpu_count() or 1)

# Read by libraries when they are imported, so set before.
ENVIRONMENT = {
    "GRADIO_ANALYTICS_ENABLED": "False",
    "HF_HUB_OFFLINE": "1",
    # NumPy's products here are small and of several visitors at once: threads would wait for each
    # other, and waiting threads that spin take the processor from those that work.
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_WAIT_POLICY": "passive",
}


def parse_arguments(arguments: list[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="app.py", description="Both Ways, in the browser.")
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on")
    parser.add_argument("--port", type=int, help="port; the first free one from 7860 on if absent")
    parser.add_argument(
        "--models", type=Path, default=Settings.models, help="folder with a folder for each encoder"
    )
    return parser.parse_args(arguments)


def main(arguments: list[str] | None = None) -> None:
    """Blocks until interrupted."""
    options = parse_arguments(arguments)
    logging.basicConfig(format="%(levelname)s %(name)s: %(message)s", level=logging.WARNING)
    logging.getLogger("app").setLevel(logging.INFO)
    os.environ.update(ENVIRONMENT)
    print("Both Ways: loading ...", flush=True)
    settings = Settings(models=options.models)
    # Encoding the examples leaves Python's lock free most of the time; Gradio's import does not.
    with ThreadPoolExecutor(1) as pool:
        loading = pool.submit(_load, settings)
        from app.ui import build, launch_options

        services = loading.result()
    demo = build(services)
    port = options.port or _free_port(options.host)
    demo.launch(
        server_name=options.host,
        server_port=port,
        quiet=True,
        prevent_thread_lock=True,
        **launch_options(),
    )
    host = "localhost" if options.host in ("127.0.0.1", "0.0.0.0") else options.host
    print(f"Both Ways: open http://{host}:{port}", flush=True)
    try:
        demo.block_thread()
    except (KeyboardInterrupt, OSError):
        sys.exit(0)


def _load(settings: Settings):
    import torch

    from app.services import load_services

    torch.set_num_threads(N_THREADS)
    return load_services(settings)


def _free_port(host: str, first: int = 7860) -> int:
    for port in range(first, first + 100):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((host, port))
            except OSError:
                continue
            return port
    raise SystemExit(f"no free port from {first} to {first + 99}; name one with --port")
