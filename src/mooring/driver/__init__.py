"""The SDK: a class with `devices`, `prepare` and `unprepare` is a complete DRA driver."""
