"""The original ELMo's world: its files in and out, its command, its published models.

Reading order: ``options``, ``hdf5``, ``model_files``, ``embed``, ``vector_files``, ``export``,
``fetch``, ``cluster``.
"""
