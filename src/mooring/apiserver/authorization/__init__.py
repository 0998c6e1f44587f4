"""Who may do what: roles and bindings, nodes, and the words for a no. All of it is pure."""
