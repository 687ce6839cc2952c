"""Reading a page of the public web, and nothing that is not public."""
