"""What every test shares."""

import signal

from hypothesis import HealthCheck, settings

# A shell starts what it puts in the background with SIGINT ignored, and children inherit that; the
# servers under test are told apart from such a shell by nothing else.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A deadline would assert timing, which a busy machine breaks; slow generation is no failure either.
settings.register_profile(
    "repo", deadline=None, suppress_health_check=[HealthCheck.too_slow], print_blob=True
)
# Where another run of the same tests tries as many as ever.
settings.register_profile("few", settings.get_profile("repo"), max_examples=20)
settings.load_profile("repo")
