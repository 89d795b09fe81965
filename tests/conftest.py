"""One thread for torch: small models gain nothing from two, and waiting threads would only spin."""

import torch

torch.set_num_threads(1)
