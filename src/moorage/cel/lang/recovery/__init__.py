"""The errors of text that is not correct, found and worded as cel-go's ANTLR parser does.

grammar     cel-go's grammar as data
atn         the augmented transition network of the grammar
prediction  adaptive LL(*): which alternative to take
parser      parse, report, recover
"""

from moorage.cel.lang.recovery.parser import recover

__all__ = ["recover"]
