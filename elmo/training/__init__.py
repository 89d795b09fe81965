"""From text to weights: corpus, batches, objectives, optimizers, and held-out scores.

Reading order: ``corpus``, ``batches``, ``objectives``, ``sampling``, ``kernels`` (with
``kernels.cpp``), ``optim``, ``trainer``, ``train``, ``evaluate``, ``gaps``, ``curves``.
"""
