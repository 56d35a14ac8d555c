"""The pages of the site that are written from the code: quick-reference cards, API reference, examples."""
