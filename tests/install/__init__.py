"""`make test-install`: the wheel in a bare Debian root, as a person or an image installs it."""
