"""The protocol in words, pictures and schemas, and what keeps them true to the code.

Belongs to a source checkout and is no part of what is installed.
"""
