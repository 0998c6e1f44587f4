"""Libraries of functions and macros, each a small module with a `library()`."""
