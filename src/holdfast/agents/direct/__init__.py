"""One model and nothing around it: for programs that bring their own instructions and tools."""
