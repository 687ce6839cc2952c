"""Language models: the port (`port.py`) and one module per way to reach one."""
