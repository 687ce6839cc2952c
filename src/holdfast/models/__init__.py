"""Language models: one module per way to reach one. The port is `ports/model.py`."""
