"""Tokens in context to look neighbors up in, and similarity under any mix of layers.

Reading order: ``mixing`` (the closed form), ``bank``, ``neighbors``, ``candidates`` (with
``bernstein``), ``triangle``, ``projection``; then where sentences come from: ``sources``,
``wordnet``, ``uploads``, ``tagged``; then banks on disk: ``bank_build``, ``bank_files``,
``vector_store``.
"""
