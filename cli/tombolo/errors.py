# SPDX-License-Identifier: Apache-2.0
"""The one exception that a command shows to its user as a sentence instead of a traceback."""


class UserError(Exception):
    """An error, with a remedy for the user."""
