"""The only code that touches the outside: streams, clocks, signals, stderr, environment."""
