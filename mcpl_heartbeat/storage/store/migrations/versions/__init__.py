"""One module for each step; ``migrate.REVISIONS`` lists them."""
