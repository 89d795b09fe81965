"""How the page's own events behave: one place for what they share."""

from __future__ import annotations

from typing import Any

# No veil while waiting; of several quick clicks the last one counts; several visitors at once; not
# an endpoint for programs (those are in ``endpoints``).
QUIET: dict[str, Any] = {
    "show_progress": "hidden",
    "trigger_mode": "always_last",
    "concurrency_limit": 4,
    "api_visibility": "private",
}

# After a failure the page no longer says that it is reading (the feed does so after a success).
DONE = "() => bothways.emit('busy', false)"
