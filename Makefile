# make run: install and start the app.  make test: install and run every test, browser included.

PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python

.PHONY: run test lint format clean chromium

run: $(VENV)/installed
	$(PY) app.py

test: $(VENV)/installed-test chromium
	$(PY) -m pytest tests

lint: $(VENV)/installed-test
	$(VENV)/bin/ruff check && $(VENV)/bin/ruff format --check

format: $(VENV)/installed-test
	$(VENV)/bin/ruff check --fix && $(VENV)/bin/ruff format

$(VENV)/installed: requirements.txt
	test -x $(PY) || $(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet --disable-pip-version-check -r requirements.txt
	touch $@

$(VENV)/installed-test: $(VENV)/installed requirements-test.txt
	$(PY) -m pip install --quiet --disable-pip-version-check -r requirements-test.txt
	touch $@

# The browser tests use the system's Chromium or Chrome; Debian and Ubuntu get it here.
chromium:
	@command -v chromium chromium-browser google-chrome >/dev/null 2>&1 \
	|| { command -v apt-get >/dev/null && test "$$(id -u)" = 0 \
	     && apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium; } \
	|| $(PY) -m playwright install chromium

clean:
	rm -rf $(VENV) .pytest_cache .ruff_cache
