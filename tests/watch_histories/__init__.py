"""What the store of the watch wing must do, told by a model and by the histories of processes."""
