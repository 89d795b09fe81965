"""Bidirectional language models, concatenated and joint, and what their layers know.

Axis letters, the same in every docstring of this package:

====  =====================================================================
B     sentences in a batch
T     tokens of a sentence (boundaries excluded unless said otherwise)
C     characters of a token, as ids of bytes
L     layers that are returned, the context-free layer 0 included
H     attention heads
D     width of a layer as returned
P     width of one direction (D = 2 P where directions are concatenated)
V     vocabulary
N     rows of a bank of token vectors
K     neighbors
====  =====================================================================

Reading order: ``config``, ``text``, ``char_cnn``, ``bilm``, ``self_attention``,
``scalar_mix``, ``language_model``, ``results``, ``encoders``. Then the folders, each by itself:
``training`` makes the weights, ``original`` speaks the original ELMo's formats, ``banks`` finds
neighbors, ``both_ways`` sets concatenated against joint, ``probing`` asks what layers hold.
"""
