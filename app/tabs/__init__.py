"""The views. Each builds its components and attaches its events; none knows of another."""
