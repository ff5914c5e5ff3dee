# SPDX-License-Identifier: Apache-2.0
"""The one exception that a command shows to its user as a sentence instead of a traceback."""


class UserError(Exception):
    """What is wrong, and what the user can do about it."""
