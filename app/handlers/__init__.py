"""What happens when a visitor does something: validate, compute, answer with JSON for the page.

``page`` is for the bench, the maps and the neighbors; every other tab has its own module.
``events`` holds what all of them share.
"""
