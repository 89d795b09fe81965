"""The command line of the page: reads options, loads the models, serves."""

from __future__ import annotations

import argparse
import errno
import importlib.util
import logging
import os
import socket
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NoReturn

from app.memory import stay_small
from app.settings import Settings

FIRST_PORT, N_PORTS = 7860, 100  # where a free one is looked for
REASONS = {  # why a server cannot listen, in other words than the system's
    errno.EADDRINUSE: "another program listens there",
    errno.EADDRNOTAVAIL: "this computer has no such address",
}
N_THREADS = 1  # of torch, in one operation: what runs side by side is several visitors' work

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
    parser.add_argument(
        "--host",
        default=os.environ.get("GRADIO_SERVER_NAME", "127.0.0.1"),
        help="address to listen on",
    )
    parser.add_argument(
        "--lan",
        action="store_true",
        help="listen on all addresses of this computer, so that others in the network can open"
        " the page and its links",
    )
    parser.add_argument(
        "--port", type=_port, help=f"port; the first free one from {FIRST_PORT} on if absent"
    )
    parser.add_argument(
        "--models", type=Path, default=Settings.models, help="folder with a folder for each encoder"
    )
    parser.add_argument(
        "--cache", type=Path, metavar="DIR", help="folder for large banks (default: in ~/.cache)"
    )
    parser.add_argument(
        "--no-wordnet", action="store_true", help="do not open or build WordNet's bank"
    )
    parser.add_argument(
        "--elmo-options",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="options of a biLM in the original format, for the model menu; may be repeated",
    )
    parser.add_argument(
        "--elmo-weights",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="its weights; one for each --elmo-options",
    )
    parser.add_argument(
        "--auth",
        action="append",
        default=[],
        metavar="USER:PASSWORD",
        help="let in only who knows this; may be repeated. Others cannot see it in the list of"
        " processes if it is in the environment instead: BOTH_WAYS_AUTH, separated by spaces",
    )
    parser.add_argument(
        "--root-path", default="", metavar="/PATH", help="where a proxy shows the page, if not at /"
    )
    parser.add_argument(
        "--mcp", action="store_true", help="offer the endpoints as tools for language models (MCP)"
    )
    options = parser.parse_args(arguments)
    options.auth = [*options.auth, *os.environ.get("BOTH_WAYS_AUTH", "").split()]
    for pair in options.auth:
        if not all(pair.partition(":")):
            parser.error("--auth must be USER:PASSWORD, both with at least one character")
    if options.mcp and importlib.util.find_spec("mcp") is None:
        parser.error("--mcp needs a package that is not there: pip install 'gradio[mcp]'")
    if len(options.elmo_options) != len(options.elmo_weights):
        parser.error(
            "--elmo-options and --elmo-weights belong together: got"
            f" {len(options.elmo_options)} and {len(options.elmo_weights)}"
        )
    return options


def _port(text: str) -> int:
    port = int(text) if text.isdecimal() and len(text) < 6 else 0
    if not 1 <= port <= 65535:
        raise argparse.ArgumentTypeError(f"must be a number from 1 to 65535, got {text!r:.40}")
    return port


def main(arguments: list[str] | None = None) -> None:
    """Blocks until interrupted."""
    options = parse_arguments(arguments)
    listen = "0.0.0.0" if options.lan else options.host.strip("[]") or "127.0.0.1"
    _port_of(listen, options.port)  # first: loading takes longer than saying what is wrong
    # Gradio tries this one too, and knows IPv4 only.
    os.environ.pop("GRADIO_SERVER_NAME", None)
    logging.basicConfig(format="%(levelname)s %(name)s: %(message)s", level=logging.WARNING)
    logging.getLogger("app").setLevel(logging.INFO)
    os.environ.update(ENVIRONMENT)
    stay_small()
    print("Both Ways: loading ...", flush=True)
    settings = Settings(
        models=options.models,
        bank_cache=options.cache,
        elmos=tuple(zip(options.elmo_options, options.elmo_weights, strict=True)),
    )
    # Encoding the examples leaves Python's lock free most of the time; Gradio's import does not.
    with ThreadPoolExecutor(1) as pool:
        loading = pool.submit(_load, settings)
        from app.ui import build, launch_options

        try:
            services = loading.result()
        except (ValueError, OSError) as error:
            _end(error)
    if not options.no_wordnet:
        services.wordnet.start()
    port = _port_of(listen, options.port)
    lan = f"http://{_lan_address()}:{port}/" if listen == "0.0.0.0" else None
    demo = build(services, lan)
    name = f"[{listen}]" if ":" in listen else listen  # as addresses have it
    demo.launch(
        server_name=name,
        server_port=port,
        quiet=True,
        prevent_thread_lock=True,
        auth=[tuple(pair.split(":", 1)) for pair in options.auth] or None,
        root_path=options.root_path or None,
        mcp_server=options.mcp,
        **launch_options(services),
    )
    host = "localhost" if listen in ("127.0.0.1", "0.0.0.0", "::") else name
    others = f", or {lan} in this network" if lan else ""
    print(f"Both Ways: open http://{host}:{port}{others}", flush=True)
    try:
        demo.block_thread()
    except (KeyboardInterrupt, OSError):
        sys.exit(0)


def _load(settings: Settings):
    import torch

    from app.services import load_services

    torch.set_num_threads(N_THREADS)
    return load_services(settings)


def _lan_address() -> str:
    """This computer's address in its network; asking the system's routes sends nothing."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # reserved for documentation: nobody is there
            return probe.getsockname()[0]
        except OSError:
            return socket.gethostname()


def _end(error: Exception | str) -> NoReturn:
    print(f"app.py: error: {error}", file=sys.stderr, flush=True)
    sys.exit(2)


def _port_of(host: str, wanted: int | None) -> int:
    """The port wanted, or a free one. Ends with one line where nobody can listen there."""
    try:
        if wanted is None:
            return _free_port(host)
        _try(host, wanted)
        return wanted
    except (OSError, UnicodeError) as error:
        number = error.errno if isinstance(error, OSError) else None
        reason = REASONS.get(number) or getattr(error, "strerror", None) or error
        _end(f"cannot listen on host {host}, port {wanted or FIRST_PORT}: {reason}")


def _free_port(host: str, first: int = FIRST_PORT) -> int:
    for port in range(first, first + N_PORTS):
        try:
            _try(host, port)
        except OSError as error:
            if error.errno in (errno.EADDRINUSE, errno.EACCES):
                continue
            raise
        return port
    last = first + N_PORTS - 1
    _end(f"no free port from {first} to {last} on host {host}; name one with --port")


def _try(host: str, port: int) -> None:
    """Takes all addresses of a host for a moment, as the server will, and the one that Gradio
    tries besides. Raises ``OSError``, or ``UnicodeError`` for what can be no host's name."""
    for name in (host, "127.0.0.1"):
        found = socket.getaddrinfo(name, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        for family, kind, protocol, _, address in found:
            with socket.socket(family, kind, protocol) as probe:
                if os.name == "posix":  # elsewhere it would take a port from who listens there
                    probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                if family == socket.AF_INET6:
                    probe.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
                probe.bind(address)
