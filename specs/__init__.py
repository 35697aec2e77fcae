"""The built-in templates (`privspec templates`)."""
