"""A coding-agent harness: one model, a set of tools, rules about their use."""

VERSION = "1.0.0"
