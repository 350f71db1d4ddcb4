"""MCPL 0.5: the capability vocabulary, the manifest and the policy that the host negotiates."""
