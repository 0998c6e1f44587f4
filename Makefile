# Only forwards: `make test` is `python3 dev.py test`. Arguments: make test ARGS="-k quantity"

COMMANDS := setup run test minimum check fmt bench soak docs dist compiled conformance wire lock clean

.PHONY: help $(COMMANDS)

help:
	@python3 dev.py help

$(COMMANDS):
	@python3 dev.py $@ $(ARGS)
