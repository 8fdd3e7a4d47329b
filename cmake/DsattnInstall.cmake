# Filled in with the installable package.
