"""The language, in the steps of cel-go: parse, check, plan, evaluate; cost estimates are separate.

errors          errors of expressions, and places in their text
ast             the AST, parsed and checked
types           types of the checker, and well-known messages
values          values at run time
time            timestamps and durations
equality        equality, order and size of values
unordered       lists of which the order says nothing
lexer           text to tokens
parse_tree      the parse tree
descent_parser  tokens to parse tree, for correct text
recovery        the errors of other text, as ANTLR's parser reports them
macros          the macro expander
parser          text to AST
environment     declarations, and dispatch to overloads
inference       type parameters
checker         the types of an AST
metering        whether evaluations may go on, and which took longest
unpaid_work     work of an evaluation that costs nothing, and its bound
interpretable   the plan of an evaluation
literals        lists, maps and structs as steps of a plan
attributes      variables and their qualifiers
planner         AST to plan
code_support    lines of generated code, and what it calls
code_writer     plan to generated code
program         all steps together
costs           ranges, sizes and cost functions
cost_estimator  the estimated cost of an expression
regex_syntax    Go's regular expressions, rewritten for RE2
regex           matching them
library         the standard library and cel-go's extensions
"""
