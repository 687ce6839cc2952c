"""The agents in the process of the test, on scripted models and tools: crashes, resumed runs, limits."""
