"""What tasks must do, told by a model and by the histories of processes."""
