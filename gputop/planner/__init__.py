"""From a request to a plan that can run, or the sentence why it can't."""
