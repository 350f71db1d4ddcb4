"""What every test shares."""

from hypothesis import HealthCheck, settings

# A deadline would assert timing, which a busy machine breaks; slow generation is no failure either.
settings.register_profile(
    "repo", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
settings.load_profile("repo")
