"""Where state outlives the process: one JSON file kept safe."""
