"""What the page is told, as JSON values: pure functions from results, without Gradio or torch.

One module a view. The browser draws it: the script of the same name in ``app/static/``.
"""
