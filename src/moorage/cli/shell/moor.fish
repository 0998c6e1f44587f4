# Completion of moor in fish: moor completion fish > ~/.config/fish/completions/moor.fish

function __moor_complete
    set -l words (commandline -opc)
    set -l current (commandline -ct)
    set -l answer ($words[1] __complete -- $words[2..-1] "$current" 2>/dev/null)
    test (count $answer) -gt 0; or return
    set -l directive (string sub -s 2 -- $answer[-1])
    set -e answer[-1]
    if test (count $answer) -gt 0
        printf '%s\n' $answer
    else if contains -- $directive 16
        __fish_complete_directories "$current"
    else if contains -- $directive 0
        __fish_complete_path "$current"
    end
end

complete -c moor -f -a '(__moor_complete)'
