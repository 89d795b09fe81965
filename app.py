"""Starts the page: ``python app.py [--port 7860] [--host 127.0.0.1]``."""

from app.cli import main

if __name__ == "__main__":
    main()
