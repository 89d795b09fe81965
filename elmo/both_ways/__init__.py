"""What "not truly joint" means, exactly: influence, interaction, gaps, attention, learning.

Reading order: ``variants``, ``influence``, ``reach``, ``interaction`` (all with the results in
``arithmetic``), ``cloze``, ``attention_maps``, ``learning_signal``.
"""
