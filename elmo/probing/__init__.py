"""Which layers tasks want: probes, learned mixes, measures of context, claims and verdicts.

Reading order: ``linear_probe``, ``probes``, ``probe_tasks``, ``probe_cells``, ``probe_report``;
``metrics`` and ``geometry``; ``sense_neighbors``; ``claims``.
"""
