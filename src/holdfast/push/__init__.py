"""Web push (RFC 8030): messages to browsers through the push services of their makers. The port: `ports.push`."""
