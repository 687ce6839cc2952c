"""One module per kind of thing; each has `routes(api)`."""
