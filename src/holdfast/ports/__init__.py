"""What the engine needs from outside, as Protocols, one module per port. Adapters share no base class, only a contract
suite (`holdfast.testing`); callers never ask which adapter they have."""
