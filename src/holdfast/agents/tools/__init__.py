"""What an agent can do besides talking: the tool port, the policy that decides who is asked, and the tools."""
