"""The command line: one module per command, which parses, calls and prints.

main             `moor` itself, with the list of commands
__main__         the program: the commands, or the completion of a command line (`shell`)
Commands         cel, claims, completion, control_plane, controllers, devices, down, examples,
                 explain, fit, kubeconfig, lint, metrics, node, plan, profiles, record, reset, run,
                 scheduler, schema, server, simulate, snapshot, status, store, ui, up, validate,
                 whatif
driver           `moor driver` and its subcommands: driver_check, driver_classes, driver_devices,
                 driver_new, driver_run
command_classes  classes for click: groups that load lazily, options in sections, durations
errors           exit statuses, and how a command ends with an error
cluster_options  the options with which every command reads a cluster and manifests
reports          the reports of -o sarif, junit and github; plan_report: that of `moor plan`
collection       objects with their source text, for commands that report lines
terminal         the only way to print, with unprintable characters escaped
output           tables, JSON, YAML, warnings, ages, progress; the option -o
apply_fix        `explain --apply-fix`: shows, asks, applies; live_fix: the steps of a fix
live_hint        the cluster that runs here, for who cannot reach the one of --live
object_argument  the argument KIND/NAME
scheduler_file   the file of --config and --scheduler-config
device_trees     devices as JSON, YAML and pictures
Options          change_options, driver_options, gate_options, program_options, server_options,
                 simulated_nodes
"""

# The same for every command, also when it is called on its own.
CONTEXT = {"help_option_names": ["-h", "--help"]}
